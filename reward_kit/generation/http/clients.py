# SPDX-License-Identifier: Apache-2.0
"""The clients of endpoints that speak OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from reward_kit.auth import get_fireworks_api_base, resolve_api_key
from reward_kit.config_models import ApiParamsConfig, Sampling
from reward_kit.generation.http.endpoint import Carrier, EndpointClient
from reward_kit.generation.presets import PLAIN, RequestRules, address_elsewhere
from reward_kit.generation.token_data import asking_for
from reward_kit.generation.wire import Prompt, derived_seed, read_completions, settings_of, without_sent_back
from reward_kit.http.retry import Timing
from reward_kit.http.transport import CHAT_ROUTE
from reward_kit.models import Completion, Failure

__all__ = ["FireworksModelClient", "OpenAICompatibleClient"]

_OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Where an endpoint refuses the one, it takes the other."""
_NEEDS = {"top_logprobs": "logprobs"}
"""Parameters that are refused without another one."""


class OpenAICompatibleClient(EndpointClient):
    """The client of any endpoint that speaks OpenAI's chat completions."""

    def __init__(  # noqa: PLR0913 - one parameter a part
        self,
        model: str,
        *,
        api_base: str,
        api_key: str | None = None,
        api_params: ApiParamsConfig | None = None,
        n_mode: Literal["auto", "native", "fanout"] = "auto",
        headers: Mapping[str, str] | None = None,
        timing: Timing | None = None,
        route: str = CHAT_ROUTE,
        rules: RequestRules = PLAIN,
        carrier: Carrier | None = None,
    ) -> None:
        """Remember whom to ask; nothing is opened before the first request."""
        super().__init__(
            model, api_base=api_base, api_key=api_key, api_params=api_params, n_mode=n_mode, headers=headers,
            timing=timing, route=route, carrier=carrier,
        )  # fmt: skip
        self._rules = rules
        self._seed_name = ""

    def body(self, prompt: Prompt, draws: Sequence[int]) -> dict[str, Any]:
        """The body of a request for these draws of a prompt."""
        sampling = prompt.sampling
        settings = self._sent_settings(sampling)
        messages = without_sent_back(prompt.messages, self._refused) if self._refused else prompt.messages
        body = {"model": self.model, "messages": messages, **settings}
        if prompt.tools:
            body["tools"] = prompt.tools
        else:
            body.pop("tool_choice", None)  # refused where there is nothing to choose from
        if len(draws) > 1:
            body["n"] = len(draws)
        if sampling.seed is not None and self._seed_name:
            body[self._seed_name] = derived_seed(sampling.seed, prompt.sample_id, draws[0])
        return body

    def completions(self, answer: dict[str, Any], most: int, latency_ms: float) -> list[Completion | Failure]:
        """Up to `most` answers of a reply."""
        return read_completions(answer, asked_model=self.model, most=most, latency_ms=latency_ms, by=self._speaker)

    def _accepted_of(self, sampling: Sampling) -> dict[str, Any]:
        seed = {} if sampling.seed is None else self._accepted({"seed": sampling.seed})
        self._seed_name = next(iter(seed), "")
        return self._accepted({**asking_for(sampling.tokens, self._rules.token_ids), **settings_of(sampling)})

    def _accepted(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings without those the endpoint refuses; some have another name that it may take."""
        accepted = {}
        for name, value in settings.items():
            if name in self._rules.refuses:
                self._record(name, self._rules.refuses[name])
            elif _NEEDS.get(name) in self._refused:
                self._record(name, f"it needs {_NEEDS[name]}, and that is refused")
            elif sent_as := self._accepted_name(name):
                accepted[sent_as] = value
        return accepted

    def _accepted_name(self, name: str) -> str | None:
        """Under which name the endpoint takes a parameter, as far as is known; None where under none."""
        name = self._rules.names.get(name, name)
        names = (name, _OTHER_NAMES.get(name, name))
        return next((each for each in names if each not in self._refused), None)


class FireworksModelClient(OpenAICompatibleClient):
    """The client of Fireworks' inference API, with the key from `FIREWORKS_API_KEY` or `~/.fireworks/auth.ini`."""

    def __init__(
        self,
        model_name: str,
        *,
        api_key: str | None = None,
        api_base: str | None = None,
        api_params: ApiParamsConfig | None = None,
        n_mode: Literal["auto", "native", "fanout"] = "auto",
        headers: Mapping[str, str] | None = None,
        timing: Timing | None = None,
    ) -> None:
        """Ask `model_name`; without `api_base`, where the environment says, or `https://api.fireworks.ai/inference/v1`."""
        base = api_base or address_elsewhere("fireworks") or f"{get_fireworks_api_base()}/inference/v1"
        super().__init__(
            model_name,
            api_base=base,
            api_key=api_key or resolve_api_key(base),
            api_params=api_params,
            n_mode=n_mode,
            headers=headers,
            timing=timing,
            rules=RequestRules(),
        )
