"""Several rewards as one: how each part is named, called, and told of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reward_kit.errors import ConfigError, ItemError
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.reward_call import FACTS, RESOURCES, Payload, RewardCall
from reward_kit.typed_interface import name_of

__all__ = ["Outcome", "Part", "read_parts"]

_ASKED_FOR = frozenset(FACTS) | {"resources"}
"""What is handed only to a reward that names it."""


class PartSettings(BaseModel):
    """One part, as a config says it."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    reward: Any
    """A function, an import path, or a name in the library: `math_reward`."""
    name: str | None = None
    weight: float = 1.0
    params: dict[str, Any] = Field(default_factory=dict)
    gate: bool = False
    """A gate weighs nothing: where it is not passed, the whole is 0.0 and what comes after it is not run."""
    threshold: float = 1.0
    """The score from which on the part counts as passed."""
    decides: Literal["always", "pass", "fail"] = "always"
    """For `first_decisive`: on which of its verdicts the part has the last word."""


class Part(NamedTuple):
    """A part, ready to be called. Its settings stand here as plain values for the digest of the whole to see."""

    name: str
    call: RewardCall
    function: Callable[..., Any]
    params: Mapping[str, Any]
    weight: float
    gate: bool
    threshold: float
    decides: str

    def run(self, messages: list[Message], ground_truth: Any, given: Mapping[str, Any]) -> Outcome:
        """What the part says; of an asynchronous part, once it has come to its end."""
        try:
            return Outcome(self, self.call.judge(self._payload(messages, ground_truth, given), _resources(given)))
        except ItemError as error:
            return Outcome(self, None, error)

    async def run_async(self, messages: list[Message], ground_truth: Any, given: Mapping[str, Any]) -> Outcome:
        """The same, for the event loop; a synchronous part runs in a thread."""
        if not self.call.is_async:
            return await asyncio.to_thread(self.run, messages, ground_truth, given)
        try:
            payload = self._payload(messages, ground_truth, given)
            return Outcome(self, await self.call.judge_async(payload, _resources(given)))
        except ItemError as error:
            return Outcome(self, None, error)

    def _payload(self, messages: list[Message], ground_truth: Any, given: Mapping[str, Any]) -> Payload:
        columns = {name: value for name, value in given.items() if name not in RESOURCES}
        fitting = {name: value for name, value in columns.items() if name not in _ASKED_FOR or self.call.wants(name)}
        return Payload(messages=messages, ground_truth=ground_truth, columns=fitting)


def _resources(given: Mapping[str, Any]) -> dict[str, Any]:
    """What of all that the whole was given is a resource."""
    return {name: value for name, value in given.items() if name in RESOURCES and value is not None}


class Outcome(NamedTuple):
    """What a part said."""

    part: Part
    result: EvaluateResult | None
    error: ItemError | None = None

    @property
    def passed(self) -> bool:
        """Whether it gave a verdict, and that reached the threshold."""
        return self.result is not None and self.result.score >= self.part.threshold

    @property
    def decisive(self) -> bool:
        """Whether the part has the last word."""
        wanted = self.part.decides
        return self.result is not None and (wanted == "always" or (wanted == "pass") == self.passed)

    def metrics(self) -> dict[str, MetricResult]:
        """The part's score under its name, and its own metrics under that name and theirs."""
        name = self.part.name
        if self.result is None:
            return {name: MetricResult(score=0.0, reason=f"no verdict: {self.error}", is_score_valid=False)}
        score = min(1.0, max(0.0, self.result.score))
        reason = f"{self.result.score:g}: {self.result.reason or 'no reason given'}"
        inner = {f"{name}.{key}": metric for key, metric in self.result.metrics.items()}
        return {name: MetricResult(score=score, reason=reason, is_score_valid=self.passed), **inner}


def read_parts(parts: object) -> list[Part]:
    """The parts, from a list of them or a mapping from name to part; what cannot be a part is a `ConfigError`."""
    named: list[tuple[str | None, Any]] = []
    if isinstance(parts, Mapping):
        named = [(str(name), part) for name, part in parts.items()]
    elif isinstance(parts, Sequence) and not isinstance(parts, str):
        named = [(None, part) for part in parts]
    if not named:
        raise ConfigError(f"A composite reward has parts, and was given {parts!r}. List some rewards.")
    found = [_part(name, part) for name, part in named]
    names = [part.name for part in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"Two parts of a composite reward are called {twice[0]!r}. Give one another `name`.")
    return found


def _part(name: str | None, part: object) -> Part:
    settings = part if isinstance(part, Mapping) else {"reward": part}
    try:
        told = PartSettings.model_validate(dict(settings))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        known = ", ".join(PartSettings.model_fields)
        raise ConfigError(
            f"The part {name or part!r} of a composite reward has a problem with {place!r}: {problem['msg']}. "
            f"A part has: {known}."
        ) from None
    try:
        call = RewardCall(_function(told.reward), told.params)
    except ImportError as error:
        raise ConfigError(f"A part of a composite reward cannot be loaded: {error}") from error
    if call.mode == "batch":
        raise ConfigError(f"{call.name!r} judges all rollouts of a sample at once, and cannot be a part. Run it alone.")
    called = name or told.name or name_of(call.func)
    return Part(called, call, call.func, told.params, told.weight, told.gate, told.threshold, told.decides)


def _function(reward: Any) -> Callable[..., Any] | str:
    """The function given, or the import path or name as it is."""
    if isinstance(reward, str) or callable(reward):
        named: Callable[..., Any] | str = reward
        return named
    raise ConfigError(f"{reward!r} is no reward. Give a function, an import path, or a name in the library.")
