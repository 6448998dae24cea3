# SPDX-License-Identifier: Apache-2.0
"""Several rewards as one: a weighted sum, the least of them, or the first that decides; with gates before them.

In a config:

    reward:
      function_path: reward_kit.rewards.composite:composite_reward
      params:
        parts:
          format: {reward: format_reward, gate: true}
          answer: {reward: math_reward, weight: 3}
          style: {reward: judge_reward, weight: 1, params: {rubric: "Is it concise?"}}

In Python, `composite({...})` makes the same reward. It is asynchronous if any part is, and is handed whatever its parts
ask for: columns, a sandbox, a judge.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reward_kit.errors import ConfigError, ItemError, RewardError
from reward_kit.models import EvaluateResult, Message, MetricResult, Rollout
from reward_kit.reward_call import MADE_WITH, RESOURCES, RewardCall, run_blocking
from reward_kit.rewards._support.verdicts import reply_of
from reward_kit.typed_interface import OPERATORS, Operator, name_of, reward_function
from reward_kit.utils.tasks import together

__all__ = ["composite", "composite_reward"]

How = Literal["weighted_sum", "min", "first_decisive"]
"""How the parts become one score."""

_DEFAULT_SECONDS = 60.0


@reward_function
def composite_reward(
    messages: list[Message], ground_truth: Any = None, *, parts: Operator[Any], how: How = "weighted_sum", **kwargs: Any
) -> EvaluateResult:
    """The score of several rewards together.

    `parts` is a list of rewards, or a mapping from names to them. A part is a function, an import path, the name of a
    reward of the library, or a mapping of these with `weight`, `params`, `gate`, `threshold` and `decides`.

    `weighted_sum`: the sum of weight × score over the sum of the weights. `min`: the least score. `first_decisive`: the
    score of the first part that gives a verdict and, where `decides` is `pass` or `fail`, that verdict. A part with
    `gate: true` has no weight; if its score is below its `threshold` (1.0), the score of the whole is 0.0 and later
    parts are not run. If a part gives no verdict, the whole gives none, unless another part decides.

    Metrics: each part's score under its name, and its own metrics as `name.metric`.
    Cost: that of its parts.
    Does not detect: parts that measure the same thing twice. In an asynchronous composite a synchronous part runs in a
    thread and cannot be killed: a part that may hang should have a run of its own.

    >>> def short(messages, **kwargs): return float(len(messages[-1].text) < 20)
    >>> def polite(messages, **kwargs): return float("please" in messages[-1].text)
    >>> reply = Message(role="assistant", content="Wait a moment.")
    >>> result = composite_reward([reply], parts={"short": short, "polite": {"reward": polite, "weight": 3}})
    >>> result.score, result.metrics["short"].score, result.metrics["polite"].score
    (0.25, 1.0, 0.0)
    """
    reward = composite(parts, how=how)
    result = reward(messages=messages, ground_truth=ground_truth, **kwargs)
    found: EvaluateResult = run_blocking(result) if inspect.iscoroutine(result) else result
    return found


def composite(parts: Any, *, how: How = "weighted_sum") -> Callable[..., Any]:
    """A reward made of others, to be given to `evaluate`, a trainer, or another composite. See `composite_reward`."""
    if how not in get_args(How):
        raise ConfigError(f"how is {how!r}; a composite reward knows {', '.join(get_args(How))}. Choose one of them.")
    found = read_parts(parts)
    if how == "weighted_sum" and sum(_weight(part) for part in found if _weight(part) > 0) <= 0:
        raise ConfigError(
            "No part of the composite reward has a weight above zero. Give one to a part that is not a gate."
        )
    make = _asynchronous if any(part.call.is_async for part in found) else _synchronous
    reward = make(found, how)
    reward.__signature__ = _signature(found)
    seconds = sum(part.call.timeout or _DEFAULT_SECONDS for part in found)
    whole: Callable[..., Any] = reward_function(reward, id="composite_reward", timeout=seconds)
    return whole


def _synchronous(parts: Sequence[Part], how: How) -> Any:
    def composite_reward(
        messages: list[Message], ground_truth: Any = None, rollout: Rollout | None = None, **kwargs: Any
    ) -> EvaluateResult:
        reply_of(messages)
        judged, resources = _judged(messages, ground_truth, rollout, kwargs), _resources(kwargs)
        outcomes: list[PartOutcome] = []
        for part in _in_turn(parts):
            outcomes.append(part.run(judged, resources))
            if _is_over(outcomes[-1], how):
                break
        return _combined(parts, outcomes, how)

    return composite_reward


def _asynchronous(parts: Sequence[Part], how: How) -> Any:
    async def composite_reward(
        messages: list[Message], ground_truth: Any = None, rollout: Rollout | None = None, **kwargs: Any
    ) -> EvaluateResult:
        reply_of(messages)
        judged, resources = _judged(messages, ground_truth, rollout, kwargs), _resources(kwargs)
        outcomes: list[PartOutcome] = []
        one_by_one = [part for part in _in_turn(parts) if part.gate or how == "first_decisive"]
        for part in one_by_one:
            outcomes.append(await part.run_async(judged, resources))
            if _is_over(outcomes[-1], how):
                return _combined(parts, outcomes, how)
        others = [part for part in _in_turn(parts) if part not in one_by_one]
        outcomes += await together(part.run_async(judged, resources) for part in others)
        return _combined(parts, outcomes, how)

    return composite_reward


def _in_turn(parts: Sequence[Part]) -> list[Part]:
    """Gates first, each group in its order."""
    return sorted(parts, key=lambda part: not part.gate)


def _is_over(outcome: PartOutcome, how: How) -> bool:
    """Whether nothing that comes later can change the verdict."""
    if outcome.part.gate:
        return not outcome.passed
    return how == "first_decisive" and outcome.decisive


def _combined(parts: Sequence[Part], outcomes: Sequence[PartOutcome], how: How) -> EvaluateResult:
    metrics = {name: metric for outcome in outcomes for name, metric in outcome.metrics().items()}
    heard = {outcome.part.name for outcome in outcomes}
    skipped = MetricResult(score=0.0, reason="not run", is_score_valid=False)
    metrics |= {part.name: skipped for part in parts if part.name not in heard}
    gates = [outcome for outcome in outcomes if outcome.part.gate]
    for gate in gates:
        if gate.result is None:
            raise _without(gate)
        if not gate.passed:
            reason = f"The gate {gate.part.name!r} is not passed: {gate.result.reason or gate.result.score}"
            return EvaluateResult(score=0.0, reason=reason, metrics=metrics)
    score, reason = _score([outcome for outcome in outcomes if not outcome.part.gate], how)
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


def _score(outcomes: Sequence[PartOutcome], how: How) -> tuple[float, str]:
    if how == "first_decisive":
        decided = next((outcome for outcome in outcomes if outcome.decisive), None)
        if decided is None or decided.result is None:
            raise _without(*outcomes)
        return decided.result.score, f"{decided.part.name!r} decides: {decided.result.reason or decided.result.score}"
    missing = [outcome for outcome in outcomes if outcome.result is None]
    if missing:
        raise _without(*missing)
    scores = {outcome.part.name: outcome.result.score for outcome in outcomes if outcome.result is not None}
    shown = ", ".join(f"{name} {score:g}" for name, score in scores.items())
    if how == "min":
        return min(scores.values(), default=1.0), f"the least of {shown or 'no part beside the gates'}"
    weights = {outcome.part.name: _weight(outcome.part) for outcome in outcomes}
    total = sum(weight for weight in weights.values() if weight > 0)
    return sum(weights[name] * score for name, score in scores.items()) / total, f"weighted sum of {shown}"


def _weight(part: Part) -> float:
    return 0.0 if part.gate else part.weight


def _without(*outcomes: PartOutcome) -> RewardError:
    reasons = "; ".join(f"{outcome.part.name!r}: {outcome.error or 'undecided'}" for outcome in outcomes)
    again = any(outcome.error is not None and outcome.error.retryable for outcome in outcomes)
    error = RewardError(f"A part of the composite reward gave no verdict: {reasons}", retryable=again)
    for failed in (outcome.error for outcome in outcomes if outcome.error is not None):
        error.raised = error.raised or failed.raised
        error.unread_replies += failed.unread_replies if isinstance(failed, RewardError) else ()
    return error


def _signature(parts: Sequence[Part]) -> inspect.Signature:
    """The rollout, from which each part is called, the resources that parts ask for, and what no column may fill."""
    wanted = [name for name in RESOURCES if any(part.call.wants(name) for part in parts)]
    operators = {name for part in parts for name in part.call.operators}
    kind = inspect.Parameter
    return inspect.Signature(
        [
            kind("messages", kind.POSITIONAL_OR_KEYWORD, annotation=list[Message]),
            kind("ground_truth", kind.POSITIONAL_OR_KEYWORD, default=None),
            *(kind(name, kind.KEYWORD_ONLY, default=None) for name in ("rollout", *wanted) if name not in operators),
            *(kind(name, kind.KEYWORD_ONLY, default=None, annotation=OPERATORS) for name in sorted(operators)),
            kind("kwargs", kind.VAR_KEYWORD),
        ]
    )


def _made_with(params: Mapping[str, Any]) -> Callable[..., Any]:
    """The reward that a config's params describe; every other param is given to each part that takes it."""
    own = {name: value for name, value in params.items() if name in {"parts", "how"}}
    if "parts" not in own:
        raise ConfigError("composite_reward needs `parts`. List the rewards it is made of in `reward.params.parts`.")
    if unknown := sorted(params.keys() - own.keys()):
        raise ConfigError(f"composite_reward has no param {unknown[0]!r}. Put it into the `params` of a part.")
    return composite(**own)


setattr(composite_reward, MADE_WITH, _made_with)


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


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

    def run(self, rollout: Rollout, resources: Mapping[str, Any]) -> PartOutcome:
        """What the part says; of an asynchronous part, once it has come to its end."""
        try:
            return PartOutcome(self, self.call.judge(self.call.arguments_of([rollout]), resources))
        except ItemError as error:
            return PartOutcome(self, None, error)

    async def run_async(self, rollout: Rollout, resources: Mapping[str, Any]) -> PartOutcome:
        """The same, for the event loop; a synchronous part runs in a thread."""
        if not self.call.is_async:
            return await asyncio.to_thread(self.run, rollout, resources)
        try:
            return PartOutcome(self, await self.call.judge_async(self.call.arguments_of([rollout]), resources))
        except ItemError as error:
            return PartOutcome(self, None, error)


_KNOWN_OF_AN_ATTEMPT = ("model", "finish_reason", "steps", "facts", "ended", "truncated")


def _judged(messages: list[Message], ground_truth: Any, rollout: Rollout | None, given: Mapping[str, Any]) -> Rollout:
    """What the parts judge: the rollout, or, where somebody calls the whole by hand, what was given in its place."""
    if rollout is not None:
        return rollout
    columns = {name: value for name, value in given.items() if name not in RESOURCES}
    made = Rollout.of_conversation(messages, ground_truth, columns)
    sample = made.sample.model_copy(update={name: given[name] for name in ("tools", "split") if name in given})
    known = {name: given[name] for name in _KNOWN_OF_AN_ATTEMPT if name in given}
    return made.model_copy(update={"sample": sample, **known})


def _resources(given: Mapping[str, Any]) -> dict[str, Any]:
    """What of all that the whole was given is a resource."""
    return {name: value for name, value in given.items() if name in RESOURCES and value is not None}


class PartOutcome(NamedTuple):
    """What one part of a composite reward came to: its result, or the error in its place."""

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
        read = PartSettings.model_validate(dict(settings))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        known = ", ".join(PartSettings.model_fields)
        raise ConfigError(
            f"The part {name or part!r} of a composite reward has a problem with {place!r}: {problem['msg']}. "
            f"A part has: {known}."
        ) from None
    try:
        call = RewardCall(_function(read.reward), read.params)
    except ImportError as error:
        raise ConfigError(f"A part of a composite reward cannot be loaded: {error}") from error
    if call.mode == "batch":
        raise ConfigError(f"{call.name!r} judges all rollouts of a sample at once, and cannot be a part. Run it alone.")
    called = name or read.name or name_of(call.func)
    return Part(called, call, call.func, read.params, read.weight, read.gate, read.threshold, read.decides)


def _function(reward: Any) -> Callable[..., Any] | str:
    """The function given, or the import path or name as it is."""
    if isinstance(reward, str) or callable(reward):
        named: Callable[..., Any] | str = reward
        return named
    raise ConfigError(f"{reward!r} is not a reward. Give a function, an import path, or a name of the library.")
