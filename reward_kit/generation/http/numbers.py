# SPDX-License-Identifier: Apache-2.0
"""Models that answer with numbers: embeddings, and reward models behind vLLM's pooling, classify and score.

    messages ─▶ the request of that API ─▶ retry, limits, transport as for chat ─▶ a completion whose text is JSON

The numbers are a completion's text, so that the cache, the budget and the run's accounts hold for them as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from reward_kit.config_models import ApiParamsConfig
from reward_kit.errors import UnreadableReplyError
from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.generation.wire import Prompt
from reward_kit.http.retry import Timing
from reward_kit.models import Completion, Failure

__all__ = ["NumbersApi", "NumbersClient"]

NumbersApi = Literal["embeddings", "pooling", "classify", "score"]


class NumbersClient(OpenAICompatibleClient):
    """The client of an endpoint that gives numbers. A completion's text is their JSON: `[0.1, 0.2]`."""

    _writes = False

    def __init__(
        self,
        model: str,
        *,
        api: NumbersApi,
        api_base: str,
        api_key: str | None = None,
        api_params: ApiParamsConfig | None = None,
        timing: Timing | None = None,
    ) -> None:
        """Remember whom to ask; nothing is opened before the first request."""
        self.api = api
        # vLLM has its own routes beside /v1, not under it.
        base = api_base.rstrip("/") if api == "embeddings" else api_base.rstrip("/").removesuffix("/v1")
        super().__init__(
            model, api_base=base, api_key=api_key, api_params=api_params, n_mode="fanout", timing=timing,
            route=f"/{api}",
        )  # fmt: skip

    @property
    def identity(self) -> Mapping[str, Any]:
        """The endpoint, its API and the model."""
        return {**super().identity, "api": self.api}

    def body(self, prompt: Prompt, draws: Sequence[int]) -> dict[str, Any]:
        """The body of a request: the prompt in the fields of this API."""
        body = {"model": self.model, **self._prompt_fields(prompt.messages), **prompt.sampling.extra_body}
        return {name: value for name, value in body.items() if name not in self._refused}

    def _prompt_fields(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        if self.api == "embeddings":
            return {"input": messages[-1]["content"], "encoding_format": "float"}
        if self.api == "score":
            question = "\n\n".join(str(message["content"] or "") for message in messages[:-1])
            return {"text_1": question, "text_2": messages[-1]["content"]}
        return {"messages": list(messages)}

    def completions(self, answer: dict[str, Any], most: int, latency_ms: float) -> list[Completion | Failure]:
        """Up to `most` answers of a reply."""
        chat = {**answer, "choices": [{"message": {"content": json.dumps(self._numbers(answer))}}]}
        return super().completions(chat, most, latency_ms)

    def _numbers(self, answer: Mapping[str, Any]) -> list[float]:
        field = {"embeddings": "embedding", "pooling": "data", "classify": "probs", "score": "score"}[self.api]
        data = answer.get("data")
        entry = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
        found = entry.get(field)
        numbers: list[Any] = found if isinstance(found, list) else [found]
        while numbers and isinstance(numbers[-1], list):  # a vector per token: the last token's judges the whole
            numbers = numbers[-1]
        if not numbers or not all(_is_number(value) for value in numbers):
            raise UnreadableReplyError(f"The answer of {self.api_base} has no numbers in {field!r}. Check `judge.api`.")
        return [float(value) for value in numbers]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
