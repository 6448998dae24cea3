# SPDX-License-Identifier: Apache-2.0
"""Calling a reward by name: a rollout is judged, and each parameter is filled from whatever has that name.

    the conversation and its truth > the config's params > the run's resources > facts about the rollout > columns

What the rollout is (`messages`, `response`, `model`, `finish_reason` …) comes from the rollout, or from the params
where the operator says so; never from a column. A column of such a name is read as `columns["response"]`. A reward with
`**kwargs` is handed every other column; a plain function only the parameters it names. Resources (`RESOURCES`) and
facts (`FACTS`) are handed over only to a reward that names them. A parameter marked `Operator` is filled by the params.

`Arguments` are what one call is handed, as plain data, so that they can cross into a worker process.
"""

from __future__ import annotations

import copy
import inspect
import logging
import os
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from reward_kit.errors import ConfigError, RewardError, boundary
from reward_kit.models import EvaluateResult, Message, Rollout
from reward_kit.redaction import secret_values, sent
from reward_kit.reward_names import load_reward, reward_path
from reward_kit.typed_interface import (
    BelowFolder,
    Mode,
    checked,
    is_async,
    marks_of,
    name_of,
    signature_of,
    takes_number,
)
from reward_kit.utils.event_loop import CODE_OF_OTHERS, run_sync, tried_to_end
from reward_kit.utils.trusted import copied

__all__ = [
    "Arguments",
    "OnInvalid",
    "RewardCall",
    "concurrency_of",
    "is_async",
    "is_remote",
    "mode_of",
    "run_blocking",
    "size_of",
    "timeout_of",
    "unshared",
    "verdict_or_raise",
    "wants",
]

_log = logging.getLogger(__name__)

T = TypeVar("T")

OnInvalid = Literal["failure", "score"]
"""What a result with `is_score_valid=False` is that names no error: no verdict, or a verdict like any other."""

Arguments: TypeAlias = dict[str, Any]
"""What one call of a reward is handed beside its params and resources, by name: plain data, but for a `rollout`."""

RESERVED = frozenset({"messages", "rollouts_messages", "ground_truth"})
"""Names that nothing but the rollout fills, not even a param."""

RESOURCES = ("sandbox", "isolated_python", "judge", "world")
"""What a run hands to a reward that names it, and what no column stands in for."""

MADE_WITH = "_reward_function_made_with"
"""Of a function that has this attribute, what it holds makes the reward from the params: whether the reward is
asynchronous, and what it asks for, then depends on them."""

FACTS: dict[str, Callable[[Rollout], Any]] = {
    "response": lambda rollout: rollout.text,
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
    "rollout": lambda rollout: rollout,
}
"""What a reward may ask to know about a rollout, by naming it; `response` is the answer as text. A reward that judges
groups is given a list of each, one entry per rollout. Only a param comes before it, and never a column."""

_OF_A_GROUP = {"responses": "response", "rollouts": "rollout"}
"""Plural names, which a reward that judges groups may use."""

NOT_COLUMNS = RESERVED | FACTS.keys() | _OF_A_GROUP.keys() | {"columns"}
"""Names that say what is judged. A column of such a name stays in `columns`, which a reward may name."""


def size_of(arguments: Arguments) -> int:
    """How many answers one call judges."""
    size: int = arguments.get(_SIZE, 1)
    return size


def unshared(arguments: Arguments) -> Arguments:
    """The arguments with no list or object in them that others hold: a reward may change what it is handed."""
    return {name: copy.deepcopy(v) if isinstance(v, (dict, list)) else v for name, v in arguments.items()}


_SIZE = "\0size"
"""Where the arguments of a group say how many answers it has. No parameter can have such a name."""


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
        parameters = signature_of(func).parameters
        by_name = [p for p in parameters.values() if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}]
        if by_position := [p.name for p in parameters.values() if p.kind is p.POSITIONAL_ONLY]:
            raise ConfigError(
                f"Reward {self.name!r} takes {by_position[0]!r} by position only, and rewards are called by name. "
                "Remove the `/` from its signature, or wrap it in a function with named parameters."
            )
        self._named = frozenset(parameter.name for parameter in by_name)
        self._takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        # Filled by the decorator, with clients for which no column must stand in.
        declared = {"resources"} if getattr(func, "_reward_function_resources", None) else set()
        self._hidden = RESERVED | declared
        self._required = [p.name for p in by_name if p.default is p.empty and p.name not in declared]
        self._check_params()
        marks = marks_of(func)
        for value in secret_values({name: self.params[name] for name in marks.operators & self.params.keys()}):
            sent(value)
        self._operators = marks.operators - self.params.keys()
        self._below: dict[str, BelowFolder] = {n: mark for n, mark in marks.below.items() if n not in self.params}
        self._not_columns = NOT_COLUMNS | self._hidden | self._named.intersection(RESOURCES) | self.params.keys()
        filled = self._operators | self.params.keys()
        groups = _OF_A_GROUP if self.mode == "batch" else {}
        self._facts = {n: FACTS[groups.get(n, n)] for n in self._named - filled if groups.get(n, n) in FACTS}
        self._gives_columns = "columns" in self._named and "columns" not in filled
        self._subject = "rollouts_messages" if self.mode == "batch" else "messages"
        self._gives_messages = self._takes_any or self._subject in self._named
        truth = parameters.get("ground_truth")
        self._gives_truth = self._takes_any or truth is not None
        self.takes_number_truth = truth is not None and takes_number(func, truth)
        self._has_spoken: set[str] = set()

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
    def operators(self) -> frozenset[str]:
        """The parameters that only the params may fill, and do not."""
        return self._operators

    @property
    def needs_ids(self) -> bool:
        """Whether the reward looks at the ids of samples, or judges those together that have the same."""
        return self.mode == "batch" or self.is_remote or not self._facts.keys().isdisjoint({"sample_id", "rollout"})

    @property
    def takes_any(self) -> bool:
        """Whether it is handed every column, and not only those that it names."""
        return self._takes_any

    @property
    def columns_named(self) -> dict[str, bool]:
        """The columns and facts that it names, and whether each must be given; not what the operator alone fills."""
        given = self._hidden.union(RESOURCES, self.params, self._operators)
        return {name: name in self._required and name not in self._facts for name in sorted(self._named - given)}

    def unfilled(self, columns: Collection[str]) -> list[str]:
        """The parameters that must be given, and that neither the rollout, the params nor these names fill.

        The names are those of columns, and of resources where somebody will hand them over.
        """
        named = {name for name in columns if name not in self._not_columns or name in RESOURCES}
        given = {*RESERVED, *self.params, *self._facts, *named}
        if self._gives_columns:
            given.add("columns")
        operators = self._operators.difference(RESOURCES)
        return [name for name in self._required if name not in given or name in operators]

    def refused(self, columns: Mapping[str, Any]) -> str | None:
        """Why these columns cannot be had, in a sentence: one of them names what only the operator may choose."""
        for name in self._operators.intersection(columns) - NOT_COLUMNS:
            if columns[name] is not None:
                setting = f"the section `{name}`" if name in RESOURCES else f"`reward.params.{name}`"
                return (
                    f"The data give {name!r}, which reward {self.name!r} takes from its operator alone, because it "
                    f"chooses what runs, is opened or is paid for here. Set {setting}, or rename the column."
                )
        return None

    # -- what a call is handed

    def arguments_of(
        self, rollouts: Sequence[Rollout], *, plain: bool = False, owned: bool = False,
        given: Mapping[str, Any] | None = None,
    ) -> Arguments:  # fmt: skip
        """What a call that judges these rollouts is handed: one rollout, or in batch mode all those of a sample.

        `plain`: as data that are copied on their way, into a worker process. Otherwise nothing is shared that the
        reward could change, unless they are `owned`: nobody else looks at them any more. `given` is what a caller in
        Python gives by name: like params, but of this one call.
        """
        sample = rollouts[0].sample
        handed = self._from_columns(sample.columns) if sample.columns else {}
        if self._gives_truth:
            handed["ground_truth"] = self._truth_of(rollouts[0])
        if handed and not plain and not owned:
            handed = unshared(handed)
        if self.mode == "batch":
            handed |= {name: [fact(rollout) for rollout in rollouts] for name, fact in self._facts.items()}
            handed[_SIZE] = len(rollouts)
            if self._gives_messages:
                handed[self._subject] = [_turns(rollout, plain=plain, owned=owned) for rollout in rollouts]
        else:
            for name, fact in self._facts.items():
                handed[name] = fact(rollouts[0])
            if self._gives_messages:
                handed[self._subject] = _turns(rollouts[0], plain=plain, owned=owned)
        if given:
            handed |= {n: v for n, v in given.items() if n not in RESERVED and (self._takes_any or n in self._named)}
        for name in self._required:
            if name not in handed and name not in self.params and name not in RESOURCES:
                raise self._unfilled(name, sample.columns)
        return handed

    def _from_columns(self, columns: Mapping[str, Any]) -> Arguments:
        """The columns that the reward is handed by name."""
        if self._operators and (why := self.refused(columns)):
            raise RewardError(why)
        if not self._takes_any:
            given = {name: columns[name] for name in self._named.intersection(columns) if name not in self._not_columns}
        elif self._not_columns.isdisjoint(columns):
            given = dict(columns)
        else:
            given = {name: value for name, value in columns.items() if name not in self._not_columns}
        for name in self._operators.intersection(given):
            del given[name]
        for name in self._below.keys() & given.keys():
            given[name] = self._path(name, given[name])
        if self._gives_columns:
            given["columns"] = dict(columns)
        if not NOT_COLUMNS.isdisjoint(columns):
            self._say_which_are_kept_back(columns)
        return given

    def _path(self, name: str, value: Any) -> Any:
        """The path that a column names, below the folder that the params allow."""
        setting = self._below[name].folder
        folder = self.params.get(setting)
        if value is None:
            return None
        if folder is None:
            raise RewardError(
                f"The data give {name!r}, a path on this machine, to reward {self.name!r}. Set "
                f"`reward.params.{setting}` to the folder below which data may name files, or `reward.params.{name}`."
            )
        top = os.path.realpath(str(folder))
        path = os.path.realpath(os.path.join(top, value)) if isinstance(value, str) and "\0" not in value else ""
        if not path.startswith(os.path.join(top, "")):
            raise RewardError(
                f"The data give {name!r} as {value!r}, which is no path below {str(folder)!r} "
                f"(`reward.params.{setting}`). Correct the path, or name another folder."
            )
        return path

    def _truth_of(self, rollout: Rollout) -> Any:
        """The ground truth; a number or bool as the text that the file has, unless the reward asks for a number."""
        sample = rollout.sample
        truth = sample.ground_truth
        if self.takes_number_truth or not isinstance(truth, (int, float)):
            return truth
        text = str(truth) if sample.ground_truth_text is None else sample.ground_truth_text
        if "number" not in self._has_spoken:
            self._has_spoken.add("number")
            if self._takes_untyped_truth:
                _log.warning(
                    "The ground truth of sample %r is the %s %s, and %r is handed it as the text %r. For a number "
                    "write its type into the signature: `ground_truth: float`.",
                    sample.id, "bool" if isinstance(truth, bool) else "number", text, self.name, text,
                )  # fmt: skip
        return text

    @property
    def _takes_untyped_truth(self) -> bool:
        truth = signature_of(self.func).parameters.get("ground_truth")
        return truth is not None and truth.annotation is inspect.Parameter.empty

    def _say_which_are_kept_back(self, columns: Mapping[str, Any]) -> None:
        """Say once of each column that has the name of what is judged, where the reward might look for it."""
        for name in sorted(NOT_COLUMNS.intersection(columns) - self.params.keys() - self._has_spoken):
            self._has_spoken.add(name)
            if self._takes_any or name in self._named:
                _log.warning(
                    "The data have a column %r. A reward's %r is what the rollout says, so %r reads the column as "
                    "`columns[%r]`.", name, name, self.name, name,
                )  # fmt: skip

    def _unfilled(self, name: str, columns: Mapping[str, Any]) -> RewardError:
        if name in self._operators:
            return RewardError(
                f"Reward {self.name!r} needs {name!r}, which only its params give. Set `reward.params.{name}`."
            )
        available = ", ".join(sorted({*columns, *self.params, *FACTS, "messages", "ground_truth"}))
        return RewardError(
            f"Reward {self.name!r} needs {name!r}, and nothing of that name is given; there are: {available}. "
            f"Add a column {name!r} to the dataset, set `reward.params.{name}`, or give the parameter a default."
        )

    def _with(self, arguments: Arguments, resources: Mapping[str, Any] | None) -> Arguments:
        """All that the function is called with."""
        given = {**arguments, **self.params}
        given.pop(_SIZE, None)
        if resources:
            given |= {name: v for name, v in resources.items() if name in self._named and name not in self.params}
        for name in self._required:
            if name not in given:
                raise self._unfilled(name, {})
        return given

    # -- verdicts

    def judge(self, arguments: Arguments, resources: Mapping[str, Any] | None = None) -> EvaluateResult:
        """The verdict on one rollout, or a `RewardError`. An asynchronous reward is run to its end."""
        if self.is_async:
            return run_blocking(self.judge_async(arguments, resources))
        return self.verdict(self.call(arguments, resources))

    async def judge_async(self, arguments: Arguments, resources: Mapping[str, Any] | None = None) -> EvaluateResult:
        """The same, for the event loop."""
        given = self._with(arguments, resources)
        with self._foreign:
            result = self.function(**given)
            if self.is_async:
                CODE_OF_OTHERS.set(code := result)
                result = await code
                self._check_the_loop(code)
        return self.verdict(result)

    def verdict(self, result: EvaluateResult) -> EvaluateResult:
        """What the reward returned, as a verdict; a `RewardError` where it is none."""
        if self.on_invalid == "score" and not result.is_score_valid and not _names_an_error(result):
            return result.model_copy(update={"is_score_valid": True})
        return verdict_or_raise(result, self._quoted)

    def judge_group(self, arguments: Arguments, resources: Mapping[str, Any] | None = None) -> list[EvaluateResult]:
        """The results of all rollouts of a sample. Pass each through `verdict`: some may be no verdict."""
        if self.is_async:
            return run_blocking(self.judge_group_async(arguments, resources))
        results: list[EvaluateResult] = self.call(arguments, resources)
        return results

    async def judge_group_async(
        self, arguments: Arguments, resources: Mapping[str, Any] | None = None
    ) -> list[EvaluateResult]:
        """The same, for the event loop."""
        results: list[EvaluateResult] = await self.call_async(arguments, resources)
        return results

    def call(self, arguments: Arguments, resources: Mapping[str, Any] | None = None) -> Any:
        """What the reward returned, verdict or not: a result, in batch mode a list of them. Not for async rewards."""
        given = self._with(arguments, resources)
        with self._foreign:
            return self.function(**given)

    async def call_async(self, arguments: Arguments, resources: Mapping[str, Any] | None = None) -> Any:
        """The same, for the event loop; it also takes a reward that is not asynchronous."""
        if not self.is_async:
            return self.call(arguments, resources)
        given = self._with(arguments, resources)
        with self._foreign:
            CODE_OF_OTHERS.set(code := self.function(**given))
            result = await code
            self._check_the_loop(code)
            return result

    def _check_the_loop(self, code: Any) -> None:
        if tried_to_end(code):
            raise RewardError(
                f"{self.name!r} tried to end the event loop, which has other work. Let it return, or raise, instead."
            )


def _turns(rollout: Rollout, *, plain: bool, owned: bool) -> list[Any]:
    """The whole conversation, which shares nothing with the rollout unless that is `owned`."""
    if owned and not plain:
        return rollout.messages
    turn = _plain if plain else _copied
    return [*map(turn, rollout.sample.messages), *map(turn, rollout.turns)]


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
