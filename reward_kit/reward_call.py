# SPDX-License-Identifier: Apache-2.0
"""Calling a reward by name: each parameter is filled from whatever has that name.

    the rollout > the config's params > the run's resources > the sample's columns > facts about the rollout

`messages` (batch: `rollouts_messages`) and `ground_truth` come from the rollout and from nowhere else. A reward with
`**kwargs` is handed every column; a plain function only the parameters it names. Resources (`RESOURCES`) and
facts (`response`, the answer as text; `finish_reason`; `model` …) are handed over only to a reward that names them.

A payload is what one call needs, as plain data, so that it can cross into a worker process.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, get_args

from pydantic import ValidationError

from reward_kit.errors import ConfigError, RewardError, boundary
from reward_kit.models import EvaluateResult, Message, Rollout, Step
from reward_kit.reward_names import load_reward, reward_path
from reward_kit.typed_interface import Mode, checked, is_async, name_of, signature_of
from reward_kit.utils.event_loop import run_sync
from reward_kit.utils.trusted import copied

__all__ = [
    "OnInvalid",
    "Payload",
    "RewardCall",
    "concurrency_of",
    "copied_payload",
    "is_async",
    "is_remote",
    "mode_of",
    "run_blocking",
    "timeout_of",
    "verdict_or_raise",
    "wants",
]

T = TypeVar("T")

OnInvalid = Literal["failure", "score"]
"""What a result with `is_score_valid=False` is that names no error: no verdict, or a verdict like any other."""

RESERVED = frozenset({"messages", "rollouts_messages", "ground_truth"})
"""Names that only the rollout fills."""

RESOURCES = ("sandbox", "isolated_python", "judge", "world")
"""What a run hands to a reward that names it, and what no column stands in for."""

MADE_WITH = "_reward_function_made_with"
"""Of a function that has this attribute, what it holds makes the reward from the params: whether the reward is
asynchronous, and what it asks for, then depends on them."""

FACTS: dict[str, Callable[[Rollout], Any]] = {
    "sample_id": lambda rollout: rollout.sample.id,
    "response_index": lambda rollout: rollout.response_index,
    "split": lambda rollout: rollout.sample.split,
    "tools": lambda rollout: rollout.sample.tools,
    "model": lambda rollout: rollout.model,
    "finish_reason": lambda rollout: rollout.finish_reason,
    "steps": lambda rollout: rollout.steps,
    "facts": lambda rollout: rollout.facts,
    "ended": lambda rollout: rollout.ended,
    "truncated": lambda rollout: rollout.truncated,
}
"""What else a reward may ask to know about a rollout, by naming it. A column or a param of that name comes first."""


class Payload(TypedDict, total=False):
    """What one call of a reward is made from: plain data, which can be sent to a worker process."""

    messages: Sequence[Message | Mapping[str, Any]]
    """Pointwise: the whole conversation."""
    rollouts_messages: Sequence[Sequence[Message | Mapping[str, Any]]]
    """Batch: the conversations of all rollouts of the sample."""
    ground_truth: Any
    columns: Mapping[str, Any]
    facts: Mapping[str, Any]
    """Those of `FACTS` that the reward names; in batch mode each is a list, one entry a rollout."""


def copied_payload(payload: Payload) -> Payload:
    """The payload with nothing in it that others hold: a reward may change what it is handed."""
    columns, truth = payload.get("columns", {}), payload.get("ground_truth")
    copies = {name: copy.deepcopy(value) for name, value in columns.items() if isinstance(value, (dict, list))}
    if not copies and not isinstance(truth, (dict, list)):
        return payload  # as it mostly is: plain values can be shared
    return Payload(**{**payload, "columns": {**columns, **copies}, "ground_truth": copy.deepcopy(truth)})


# ── what a reward says of itself ─────────────────────────────────────────────────────────────────────────────────────


def mode_of(func: Callable[..., Any]) -> Mode:
    """How the reward judges. An undecorated function that names `rollouts_messages` judges in batches."""
    declared: Mode | None = getattr(func, "_reward_function_mode", None)
    return declared or ("batch" if wants(func, "rollouts_messages") else "pointwise")


def timeout_of(func: Callable[..., Any]) -> float | None:
    """The seconds one call may take, where the reward says so."""
    timeout: float | None = getattr(func, "_reward_function_timeout", None)
    return timeout


def concurrency_of(func: Callable[..., Any]) -> int | None:
    """How many calls the reward wants at a time, where it says so."""
    concurrency: int | None = getattr(func, "_reward_function_concurrency", None)
    return concurrency


def is_remote(func: Callable[..., Any]) -> bool:
    """Whether the reward is served somewhere: a call goes there, and may have to be paid for."""
    return bool(getattr(func, "_reward_function_is_remote", False))


def wants(func: Callable[..., Any], name: str) -> bool:
    """Whether the reward names the parameter `name`; that it would take anything as `**kwargs` does not count."""
    parameter = signature_of(func).parameters.get(name)
    return parameter is not None and parameter.kind not in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL}


def verdict_or_raise(result: EvaluateResult, name: str = "the reward") -> EvaluateResult:
    """The result if it is a verdict; a `RewardError` with its reason if it says that it is none. Never a zero."""
    if result.is_score_valid and result.error is None:
        return result
    reason = result.error or result.reason or "it gave no reason; set `error` or `reason` to say why"
    refused = RewardError(f"{name} gave no verdict: {reason}")
    refused.invalid_result = result
    if not _names_an_error(result):
        refused.invalid_score = result.score
    raise refused


def _names_an_error(result: EvaluateResult) -> bool:
    """Whether a result says that judging failed, in the field `error` or, as the library's rewards do, in a metric."""
    return result.error is not None or "error" in result.metrics


# ── the call ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class RewardCall:
    """A reward with its params, ready to be called by name. Built once a run; it pickles if the reward does."""

    def __init__(
        self,
        reward: Callable[..., Any] | str,
        params: Mapping[str, Any] | None = None,
        on_invalid: OnInvalid = "failure",
    ) -> None:
        """Take the reward, its import path, name or address, and the params that every call is given."""
        if on_invalid not in get_args(OnInvalid):
            raise ConfigError(f"Unknown on_invalid {on_invalid!r}; use 'failure' or 'score'.")
        self.on_invalid: OnInvalid = on_invalid
        reward = reward_path(reward) if isinstance(reward, str) else reward
        self.reward = reward
        self.given_params = dict(params or {})
        """The params, as they were given."""
        named = load_reward(reward) if isinstance(reward, str) else reward
        make: Callable[[dict[str, Any]], Callable[..., Any]] | None = getattr(named, MADE_WITH, None)
        self.params = dict(self.given_params) if make is None else {}
        self.func = func = named if make is None else make(self.given_params)
        """The reward itself, as its author left it, or as it was made with the params."""
        self.name = name_of(func)
        self._quoted = repr(self.name)
        self._foreign = boundary(RewardError, self._quoted)
        self.mode = mode_of(func)
        self.is_async = is_async(func)
        self.is_remote = is_remote(func)
        self.timeout = timeout_of(func)
        self.concurrency = concurrency_of(func)
        self.function = func if _is_decorated(func) else checked(func, self.mode)
        """The reward with its arguments and its return checked, decorated or not."""
        self._read_signature(func)

    def __reduce__(self) -> tuple[type[RewardCall], tuple[Any, dict[str, Any], OnInvalid]]:
        return RewardCall, (self.reward, self.given_params, self.on_invalid)

    def _read_signature(self, func: Callable[..., Any]) -> None:
        parameters = signature_of(func).parameters.values()
        by_name = [p for p in parameters if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}]
        self._named = frozenset(parameter.name for parameter in by_name)
        self._takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        self._facts = [name for name in FACTS if name in self._named]
        self._named_answers = ("response" if self.mode == "pointwise" else "responses") in self._named
        # Filled by the decorator, with clients for which no column must stand in.
        declared = {"resources"} if getattr(func, "_reward_function_resources", None) else set()
        self._hidden = RESERVED | declared
        self._not_columns = self._hidden | self._named.intersection(RESOURCES)
        self._required = [p.name for p in by_name if p.default is p.empty and p.name not in declared]
        if by_position := [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]:
            raise ConfigError(
                f"Reward {self.name!r} takes {by_position[0]!r} by position only, and rewards are called by name. "
                "Remove the `/` from its signature, or wrap it in a function with named parameters."
            )
        self._check_params()

    def _check_params(self) -> None:
        if taken := sorted(self._hidden & self.params.keys()):
            raise ConfigError(
                f"The params of reward {self.name!r} set {taken[0]!r}, which comes from each rollout. Rename the param."
            )
        unknown = sorted(self.params.keys() - self._named)
        if unknown and not self._takes_any:
            raise ConfigError(
                f"Reward {self.name!r} has no parameter {unknown[0]!r}; it names {sorted(self._named)}. "
                "Correct the param's name, or add **kwargs to the function."
            )

    def wants(self, name: str) -> bool:
        """Whether the reward names the parameter `name`, and the params do not fill it already."""
        return name in self._named and name not in self.params

    def requires(self, name: str) -> bool:
        """Whether the reward wants `name`, and has no default for it."""
        return self.wants(name) and name in self._required

    @property
    def takes_any(self) -> bool:
        """Whether it is handed every column, and not only those that it names."""
        return self._takes_any

    @property
    def columns_named(self) -> dict[str, bool]:
        """The columns and facts that it names, and whether each must be given."""
        given = self._hidden.union(RESOURCES, self.params)
        answers = {"response", "responses"}
        return {name: name in self._required and name not in answers for name in sorted(self._named - given)}

    def unfilled(self, columns: Collection[str]) -> list[str]:
        """The parameters that must be given, and that neither the rollout, the params nor these columns fill."""
        answers = {"responses"} if self.mode == "batch" else {"response"}
        given = {*RESERVED, *answers, *self.params, *self._facts, *columns}
        return [name for name in self._required if name not in given]

    # -- payloads

    def payload_of(self, rollout: Rollout) -> Payload:
        """What a pointwise call for `rollout` needs, as plain data."""
        payload = Payload(
            messages=[_plain(message) for message in rollout.messages],
            ground_truth=rollout.sample.ground_truth,
            columns=rollout.sample.columns,
        )
        if self._facts:
            payload["facts"] = {name: FACTS[name](rollout) for name in self._facts}
        return payload

    def own_payload_of(self, rollout: Rollout) -> Payload:
        """The same for a call in this process, with nothing in it that others hold: a reward may change it."""
        sample = rollout.sample
        payload: Payload = {
            "messages": [*map(_copied, sample.messages), *map(_copied, rollout.turns)],
            "ground_truth": sample.ground_truth,
            "columns": sample.columns,
        }
        if self._facts:
            payload["facts"] = {name: FACTS[name](rollout) for name in self._facts}
        return copied_payload(payload)

    def group_payload_of(self, rollouts: Sequence[Rollout]) -> Payload:
        """What a batch call for all rollouts of one sample needs, as plain data."""
        sample = rollouts[0].sample
        payload = Payload(
            rollouts_messages=[[_plain(message) for message in rollout.messages] for rollout in rollouts],
            ground_truth=sample.ground_truth,
            columns=sample.columns,
        )
        if self._facts:
            payload["facts"] = {name: [FACTS[name](rollout) for rollout in rollouts] for name in self._facts}
        return payload

    def asked_payload(
        self, conversations: Sequence[Sequence[Mapping[str, Any]]], ground_truth: Any, columns: Mapping[str, Any],
        sample_id: str | None = None,
    ) -> Payload:  # fmt: skip
        """What a call needs that was asked for from outside, where there is no rollout: most facts are unknown then.

        A pointwise reward is given one conversation; one that judges groups, all of those of a sample.
        """
        if "steps" in self._facts and "steps" in columns:
            columns = {**columns, "steps": _as_steps(columns["steps"])}
        payload = Payload(ground_truth=ground_truth, columns=columns)
        if self.mode == "batch":
            payload["rollouts_messages"] = conversations
        else:
            (payload["messages"],) = conversations
        if self._facts:
            known = {"sample_id": sample_id}
            facts = {name: known.get(name) for name in self._facts}
            in_group = self.mode == "batch"
            payload["facts"] = {k: [v] * len(conversations) for k, v in facts.items()} if in_group else facts
        return payload

    def arguments_for(self, payload: Payload, resources: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The keyword arguments of one call; a parameter that nothing fills is a `RewardError` that names it."""
        given = self._answer_texts(payload) if self._named_answers else {}
        if facts := payload.get("facts"):
            given |= facts
        if columns := payload.get("columns"):
            given |= {name: value for name, value in columns.items() if name not in self._not_columns}
        if resources:
            given |= {name: value for name, value in resources.items() if name in self._named}
        given |= self.params
        subject = "rollouts_messages" if self.mode == "batch" else "messages"
        given[subject] = payload[subject]  # type: ignore[literal-required]  # one of its two keys
        given["ground_truth"] = payload.get("ground_truth")
        if not self._takes_any:
            given = {name: value for name, value in given.items() if name in self._named}
        for name in self._required:
            if name not in given:
                raise self._unfilled(name, columns or {})
        return given

    def _answer_texts(self, payload: Payload) -> dict[str, Any]:
        """The answers as plain text, for a reward that names `response` (batch: `responses`)."""
        if self.mode == "pointwise":
            return {"response": _last_text(payload["messages"])}
        return {"responses": [_last_text(messages) for messages in payload["rollouts_messages"]]}

    def _unfilled(self, name: str, columns: Mapping[str, Any]) -> RewardError:
        available = ", ".join(sorted({*columns, *self.params, *FACTS, "messages", "response", "ground_truth"}))
        return RewardError(
            f"Reward {self.name!r} needs {name!r}, and nothing of that name is given; there are: {available}. "
            f"Add a column {name!r} to the dataset, set `reward.params.{name}`, or give the parameter a default."
        )

    # -- verdicts

    def judge(self, payload: Payload, resources: Mapping[str, Any] | None = None) -> EvaluateResult:
        """The verdict on one rollout, or a `RewardError`. An asynchronous reward is run to its end."""
        if self.is_async:
            return run_blocking(self.judge_async(payload, resources))
        return self.verdict(self.call(payload, resources))

    async def judge_async(self, payload: Payload, resources: Mapping[str, Any] | None = None) -> EvaluateResult:
        """The same, for the event loop."""
        arguments = self.arguments_for(payload, resources)
        with self._foreign:
            result = self.function(**arguments)
            if self.is_async:
                result = await result
        return self.verdict(result)

    def verdict(self, result: EvaluateResult) -> EvaluateResult:
        """What the reward returned, as a verdict; a `RewardError` where it is none."""
        if self.on_invalid == "score" and not result.is_score_valid and not _names_an_error(result):
            return result.model_copy(update={"is_score_valid": True})
        return verdict_or_raise(result, self._quoted)

    def judge_group(self, payload: Payload, resources: Mapping[str, Any] | None = None) -> list[EvaluateResult]:
        """The results of all rollouts of a sample. Pass each through `verdict`: some may be no verdict."""
        if self.is_async:
            return run_blocking(self.judge_group_async(payload, resources))
        results: list[EvaluateResult] = self.call(payload, resources)
        return results

    async def judge_group_async(
        self, payload: Payload, resources: Mapping[str, Any] | None = None
    ) -> list[EvaluateResult]:
        """The same, for the event loop."""
        results: list[EvaluateResult] = await self.call_async(payload, resources)
        return results

    def call(self, payload: Payload, resources: Mapping[str, Any] | None = None) -> Any:
        """What the reward returned, verdict or not: a result, in batch mode a list of them. Not for async rewards."""
        arguments = self.arguments_for(payload, resources)
        with self._foreign:
            return self.function(**arguments)

    async def call_async(self, payload: Payload, resources: Mapping[str, Any] | None = None) -> Any:
        """The same, for the event loop; it also takes a reward that is not asynchronous."""
        if not self.is_async:
            return self.call(payload, resources)
        arguments = self.arguments_for(payload, resources)
        with self._foreign:
            return await self.function(**arguments)


def _as_steps(told: Any) -> Any:
    """An agent's steps as a run has them, where that is what was told; in a group, a list of them per rollout."""
    if isinstance(told, list) and told and all(isinstance(each, list) for each in told):
        return [_as_steps(each) for each in told]
    if not isinstance(told, list) or not all(isinstance(each, dict) for each in told):
        return told
    try:
        return [Step.model_validate(each) for each in told]
    except ValidationError:
        return told


def _last_text(messages: Sequence[Message | Mapping[str, Any]]) -> str:
    last = messages[-1] if messages else Message(role="user")
    message = last if isinstance(last, Message) else Message.model_validate(last)
    return message.text if message.role == "assistant" else ""


def _plain(message: Message) -> dict[str, Any]:
    """The fields of a turn that were set, as plain data that nobody else holds."""
    if type(message.content) is not str or message.tool_calls or message.function_call:
        return message.model_dump(exclude_unset=True)
    given = message.model_fields_set
    return {name: value for name, value in message.__dict__.items() if name in given}  # a third of what a dump costs


def _copied(message: Message) -> Message:
    """The same turn, sharing nothing that can be changed."""
    if type(message) is not Message or type(message.content) is not str or message.tool_calls or message.function_call:
        return message.model_copy(deep=True)
    return copied(message)


def _is_decorated(func: Callable[..., Any]) -> bool:
    return getattr(func, "_reward_function_mode", None) is not None


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also where an event loop is running already."""
    return run_sync(lambda: coroutine)
