# SPDX-License-Identifier: Apache-2.0
"""Models that are asked through the package litellm: `litellm/PROVIDER/NAME`, for providers without a prefix here.

    body of chat completions ─▶ litellm.acompletion ─▶ its answer, or its error, as a reply of an endpoint

The limits, retries, cache and refusals of every endpoint hold: litellm's own retries are off, and it drops nothing by
itself. It finds keys in the environment, under its own names for them.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from reward_kit.config_models import ApiParamsConfig
from reward_kit.errors import ConfigError, ProviderError
from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.http.retry import Timing
from reward_kit.models import Completion, Failure
from reward_kit.redaction import remember, sent
from reward_kit.utils import exact_json

if TYPE_CHECKING:
    from reward_kit.http.exchange import Reply

__all__ = ["LiteLLMClient"]


class LiteLLMClient(OpenAICompatibleClient):
    """The client of a model that litellm knows how to ask: `PROVIDER/NAME` in its own spelling."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        api_params: ApiParamsConfig | None = None,
        n_mode: Literal["auto", "native", "fanout"] = "auto",
        timing: Timing | None = None,
    ) -> None:
        """Remember whom to ask. litellm, which takes seconds to import, is not imported before the first request."""
        params = api_params or ApiParamsConfig()
        self._through = _Carrier(model, api_key, params.timeout)
        super().__init__(
            model, api_base="litellm", api_params=params, n_mode=n_mode, timing=timing, carrier=self._through
        )

    def completions(self, answer: dict[str, Any], most: int, latency_ms: float) -> list[Completion | Failure]:
        """As anywhere, with what litellm has put elsewhere in its place again.

        A refusal of Claude it calls a filter's work, and Claude's API has none.
        """
        for choice in answer.get("choices") or ():
            if "claude" in self.model and choice.get("finish_reason") == "content_filter":
                choice.setdefault("native_finish_reason", "refusal")
            if self._through.passes_messages_on and isinstance(choice.get("message"), dict):
                choice["message"] = _as_it_came(choice["message"])
        return super().completions(answer, most, latency_ms)


class _Carrier:
    """Carries bodies to litellm, and its answers and errors back as replies."""

    def __init__(self, model: str, api_key: str | None, timeout: float) -> None:
        self._model = model
        self._given: dict[str, Any] = {"timeout": timeout, "num_retries": 0, "max_retries": 0, "drop_params": False}
        if api_key is not None:
            remember(api_key)
            self._given["api_key"] = api_key
        self._timeout = timeout
        self._litellm: Any = None
        self.passes_messages_on = False
        """Whether litellm hands the provider messages as they are, and does not write them anew."""

    async def post(self, data: bytes) -> Reply:
        """The answer to one body; litellm's error as the reply that it stands for."""
        from reward_kit.http.exchange import Reply

        if self._litellm is None:
            self._litellm = _imported(self._model)
            self.passes_messages_on = _speaks_as_openai(self._litellm, self._model)
            sent(self._given.get("api_key") or _own_key(self._model))
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._litellm.acompletion(**exact_json.loads(data), **self._given)
        except TimeoutError:
            raise ProviderError(
                f"{self._model} gave no whole answer within {self._timeout:g} s. Raise api_params.timeout."
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever litellm raises stands for a reply
            return Reply(_status_of(error), _headers_of(error), _as_error(error))
        return Reply(200, {}, exact_json.dumps(answer.model_dump(exclude_none=True), default=str))

    def check_reachable(self, attempts_per_call: int) -> None:
        """Nothing is known here of connections."""

    async def close(self) -> None:
        """litellm keeps its connections to itself."""


def _imported(model: str) -> Any:
    """The package litellm, quiet; a `ConfigError` where it is missing or does not know the provider."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches a table of prices on import
    try:
        import litellm
    except ImportError as error:
        raise ConfigError(
            f"A model called 'litellm/{model}' needs litellm ({error}): pip install 'reward-kit[litellm]'"
        ) from None
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)  # what it says there, it also raises
    try:
        litellm.get_llm_provider(model)
    except litellm.exceptions.BadRequestError:
        raise ConfigError(
            f"litellm knows no provider for {model!r}. Write litellm/PROVIDER/NAME, with a provider of its list."
        ) from None
    return litellm


def _speaks_as_openai(litellm: Any, model: str) -> bool:
    """Whether the provider's API is one of chat completions, by what litellm knows of it."""
    known, usual = litellm.get_llm_provider(model), getattr(litellm, "OpenAIGPTConfig", None)
    if known is None or usual is None or known[1] not in set(litellm.LlmProviders):
        return False
    provider = litellm.LlmProviders(known[1])
    config = litellm.utils.ProviderConfigManager.get_provider_chat_config(model=known[0], provider=provider)
    return isinstance(config, usual)


def _as_it_came(message: dict[str, Any]) -> dict[str, Any]:
    """A message as the provider wrote it: litellm moves what it does not know, and renames what a model thought."""
    moved = message.get("provider_specific_fields")
    if not isinstance(moved, dict):
        return message
    kept = {name: held for name, held in message.items() if name != "provider_specific_fields"}
    if (
        "reasoning" in moved
        and "reasoning_content" not in moved
        and kept.get("reasoning_content") == moved["reasoning"]
    ):
        kept.pop("reasoning_content", None)
    return {name: held for name, held in moved.items() if held is not None} | kept


def _own_key(model: str) -> str | None:
    """The key that litellm finds in the environment for the model's provider."""
    return os.environ.get(f"{model.partition('/')[0].upper()}_API_KEY")


def _status_of(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and 400 <= status < 600 else 500


def _headers_of(error: Exception) -> Mapping[str, str]:
    headers = getattr(error, "litellm_response_headers", None)
    return {name.title(): value for name, value in headers.items()} if headers else {}


def _as_error(error: Exception) -> bytes:
    message = getattr(error, "message", None) or str(error)
    named = {"message": message, "type": type(error).__name__, "param": getattr(error, "param", None)}
    begins = message.find("{")
    if begins >= 0 and message.rstrip().endswith("}"):  # litellm puts the provider's own reply behind its words
        named["metadata"] = {"raw": message[begins:]}
    return exact_json.dumps({"error": named}, default=str)
