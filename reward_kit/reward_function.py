# SPDX-License-Identifier: Apache-2.0
"""`RewardFunction`: one object for a reward that is here, behind an endpoint, or hosted by Fireworks.

The decorator `reward_function` and the names for calling a reward (`RewardCall`, `wants` …) can be imported from
here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from reward_kit.errors import EndpointError, RewardError
from reward_kit.models import EvaluateResult, Message, Rollout
from reward_kit.remote.reward import RemoteReward
from reward_kit.reward_call import (
    RewardCall,
    concurrency_of,
    is_async,
    mode_of,
    run_blocking,
    timeout_of,
    verdict_or_raise,
    wants,
)
from reward_kit.typed_interface import as_messages, marks_of, reward_function

if TYPE_CHECKING:
    from reward_kit.integrations.trl import TRLAdapter

__all__ = [
    "RewardCall",
    "RewardFunction",
    "concurrency_of",
    "is_async",
    "mode_of",
    "reward_function",
    "run_blocking",
    "timeout_of",
    "verdict_or_raise",
    "wants",
]

FIREWORKS_REWARDS = "https://api.fireworks.ai/v1"
"""Where rewards known to Fireworks by name or by model answer."""

Turns = Sequence[Message | Mapping[str, Any]]
"""A conversation, as messages or as dicts."""


class RewardFunction:
    """A reward to be called with messages, wherever it runs.

    `local` takes `func` or its import path `func_path`; `remote` an `endpoint`, or the `name` of a reward that
    Fireworks serves; `fireworks_hosted` the `model_id` of a reward model. Further keywords are defaults of every call.

    Connections to an endpoint stay open, and temporary failures are tried again. The key of Fireworks is only sent to
    Fireworks and to servers on this machine. For any other host, name the variable that holds its key:
    `remote={"api_key_env": "MY_KEY"}`.
    """

    def __init__(
        self,
        func: Callable[..., Any] | None = None,
        func_path: str | None = None,
        mode: Literal["local", "remote", "fireworks_hosted"] = "local",
        endpoint: str | None = None,
        name: str | None = None,
        model_id: str | None = None,
        *,
        request_timeout: float = 60.0,
        remote: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Find the reward; a path that does not load is an ImportError, anything else missing a ValueError.

        `remote` holds settings like those of `reward.remote` in a run: how to sign in, how often to try again.
        """
        self.func = func
        self.func_path = func_path
        self.mode = mode
        self.endpoint = endpoint
        self.name = name
        self.model_id = model_id
        self.request_timeout = request_timeout
        self.kwargs = kwargs
        self._local: RewardCall | None = None
        self._remote: RemoteReward | None = None
        if mode == "local":
            self._local = self._load()
        elif mode in {"remote", "fireworks_hosted"}:
            self.endpoint = self._find_endpoint()
            settings = {"timeout": request_timeout, **(remote or {})}
            self._remote = RemoteReward(self.endpoint, settings, inherited_key=True)
        else:
            raise ValueError(f"Unknown mode {mode!r}; use 'local', 'remote' or 'fireworks_hosted'.")

    def _load(self) -> RewardCall:
        reward = self.func if self.func is not None else self.func_path
        if reward is None:
            raise ValueError("A local RewardFunction needs `func` or `func_path`; give one of them.")
        call = RewardCall(reward)
        if call.mode == "batch":
            raise ValueError(
                f"{call.name!r} judges all rollouts of a sample at once, and a RewardFunction judges one conversation. "
                "Call it directly, or give it to reward_kit.evaluate."
            )
        self.func = call.func
        return call

    def _find_endpoint(self) -> str:
        if self.mode == "fireworks_hosted":
            if self.model_id is None:
                raise ValueError("A Fireworks-hosted RewardFunction needs `model_id`; give the reward model's id.")
            return f"{FIREWORKS_REWARDS}/models/{self.model_id}/reward"
        if self.endpoint is None and self.name is None:
            raise ValueError("A remote RewardFunction needs `endpoint` or `name`; give one of them.")
        endpoint = self.endpoint or f"{FIREWORKS_REWARDS}/reward/{self.name}"
        if urlsplit(endpoint).scheme not in {"http", "https"}:
            raise ValueError(f"The endpoint {endpoint!r} is not the URL of a web service; start it with https://.")
        return endpoint

    def __call__(self, messages: Turns, ground_truth: Any = None, **kwargs: Any) -> Any:
        """The `EvaluateResult` (for an `async def` reward: something to await). Without ground truth: the prompt."""
        if ground_truth is None:
            ground_truth = messages[:-1]
        given = {**self.kwargs, **kwargs}
        if self._remote is not None:
            return self._ask(self._remote, {"messages": messages, "ground_truth": ground_truth, **given})
        if self._local is None:
            raise AssertionError("a reward is here or there")
        rollout = Rollout.of_conversation(as_messages(messages), ground_truth)
        return self._local.function(**self._local.arguments_of([rollout], given=given))

    def _ask(self, remote: RemoteReward, given: Mapping[str, Any]) -> EvaluateResult:
        try:
            return remote.judge(given)
        except EndpointError as error:  # for a run it is the end; here it is what this one call came to
            raise RewardError(str(error)) from None

    def get_trl_adapter(self, **options: Any) -> TRLAdapter:
        """This reward as a trainer calls it: `f(prompts, completions=None, **columns) -> list[float | None]`.

        The options are those of `TRLAdapter`: `on_error`, `on_invalid`, `workers`, `timeout`, `step_timeout`.
        """
        from reward_kit.integrations.trainer_batch import BatchReader
        from reward_kit.integrations.trl import TRLAdapter

        reward = self.func if self._remote is None else self._remote
        if reward is None:
            raise AssertionError("a reward is here or there")
        marks = marks_of(reward)
        operators = (marks.operators | marks.below.keys()) & self.kwargs.keys()
        call = RewardCall(reward, {name: self.kwargs[name] for name in operators})
        name = self.name or call.name
        reading = BatchReader(call, defaults={n: v for n, v in self.kwargs.items() if n not in operators})
        return TRLAdapter(reading, **{"name": name, **options})
