# SPDX-License-Identifier: Apache-2.0
"""What a call of a reward comes to, in this process: one verdict per answer, whatever the reward does.

`WorkerCall` is the same as a function of plain data, for worker processes. They import this module, so it stays light.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from reward_kit.errors import ItemError, RewardError, RewardKitError
from reward_kit.models import EvaluateResult, Failure, Rollout, Verdict
from reward_kit.reward_call import Arguments, OnInvalid, RewardCall, size_of, unshared
from reward_kit.utils.module_loader import loading_within
from reward_kit.utils.opened_files import OpenedFiles

__all__ = ["OpenResources", "PlainVerdict", "Unusable", "WithNews", "WorkerCall", "verdicts", "verdicts_async"]


def verdicts(
    call: RewardCall, rollouts: Sequence[Rollout], resources: Mapping[str, Any] | None = None
) -> list[Verdict]:
    """One per rollout: each a failure where the call fails. What is no failure of an item is raised."""
    try:
        return _verdicts(call, call.arguments_of(rollouts), resources)
    except ItemError as error:
        return [Failure.of(error, "score")] * len(rollouts)


def _verdicts(call: RewardCall, arguments: Arguments, resources: Mapping[str, Any] | None = None) -> list[Verdict]:
    try:
        if call.mode == "batch":
            return [_verdict(call, result) for result in call.judge_group(arguments, resources)]
        return [call.judge(arguments, resources)]
    except ItemError as error:
        return [Failure.of(error, "score")] * size_of(arguments)


async def verdicts_async(
    call: RewardCall, rollouts: Sequence[Rollout], resources: Mapping[str, Any] | None = None, *, owned: bool = False
) -> list[Verdict]:
    """The same, for the event loop."""
    try:
        arguments = call.arguments_of(rollouts, owned=owned)
        if call.mode == "batch":
            return [_verdict(call, result) for result in await call.judge_group_async(arguments, resources)]
        return [await call.judge_async(arguments, resources)]
    except ItemError as error:
        return [Failure.of(error, "score")] * len(rollouts)


def _verdict(call: RewardCall, result: EvaluateResult) -> Verdict:
    try:
        return call.verdict(result)
    except RewardError as error:
        return Failure.of(error, "score")


# ── in a worker process ──────────────────────────────────────────────────────────────────────────────────────────────

OpenResources: TypeAlias = Callable[[], Mapping[str, Any]]
"""Gives what a reward is handed in this process. It is called before each call, and opens what is not open yet."""

PlainVerdict: TypeAlias = tuple[float, str | None] | dict[str, Any] | tuple[dict[str, Any]]
"""A verdict as it travels: score and reason of a result, or all its fields where it has more; or, in a tuple of their
own, the fields of a failure."""


class Unusable(NamedTuple):
    """The reward cannot work at all: a package or a key is missing. As an exception it would lose its meaning here."""

    message: str


class WithNews(NamedTuple):
    """What a call came to, and the files that were read and written in this process and not told of before."""

    value: list[PlainVerdict] | Unusable
    read: list[str]
    written: list[str]


class WorkerCall:
    """A reward as a function of plain data: the arguments of a call in, its verdicts out."""

    def __init__(
        self,
        reward: Callable[..., Any] | str,
        params: Mapping[str, Any] | None = None,
        resources: OpenResources | None = None,
        loading_seconds: float | None = None,
        *,
        shared: bool = False,
        on_invalid: OnInvalid = "failure",
        watch: bool = False,
    ) -> None:
        """Take the reward, or its import path, which must load in time; its params; and what gives its resources.

        `shared`: calls may be handed the same objects, and are handed copies, because a reward may change them.
        `watch`: say which files were opened in this process.
        """
        self._opened = OpenedFiles()
        if watch:
            self._opened.watch_everywhere()
        if loading_seconds is None:
            self._call = RewardCall(reward, params, on_invalid)
        else:
            with loading_within(loading_seconds):
                self._call = RewardCall(reward, params, on_invalid)
        self._resources = resources
        self._shared = shared

    def __call__(self, arguments: Arguments) -> list[PlainVerdict] | Unusable | WithNews:
        """One verdict per answer, as plain data; `Unusable` where the reward cannot work at all.

        Where files were opened that nobody was told of, they come with it.
        """
        judged = self._judged(arguments)
        return WithNews(judged, *self._opened.take()) if self._opened.has_news else judged

    def _judged(self, arguments: Arguments) -> list[PlainVerdict] | Unusable:
        try:
            resources = None if self._resources is None else self._resources()
            given = unshared(arguments) if self._shared else arguments
            return [_plain(verdict) for verdict in _verdicts(self._call, given, resources)]
        except ItemError as error:
            return [_plain(Failure.of(error, "score"))] * size_of(arguments)
        except RewardKitError as error:
            return Unusable(str(error))


def _plain(verdict: Verdict) -> PlainVerdict:
    if isinstance(verdict, Failure):
        return (dict(verdict),)
    if type(verdict) is EvaluateResult and not verdict.metrics and verdict.step_outputs is None:
        return verdict.score, verdict.reason  # a fraction of what a dump costs
    return verdict.model_dump()
