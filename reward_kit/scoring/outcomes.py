# SPDX-License-Identifier: Apache-2.0
"""What a worker process sent back, or what became of it, as verdicts. A result that comes in is checked here, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reward_kit.errors import ItemError, RewardError, RewardKitError, RewardTimeoutError, message_of
from reward_kit.models import EvaluateResult, Failure, Rollout, Verdict
from reward_kit.redaction import mask
from reward_kit.reward_call import Arguments, RewardCall
from reward_kit.scoring.worker_call import PlainVerdict, Unusable
from reward_kit.workers import Died, Done, Outcome, Raised, TimedOut, WorkerPool

__all__ = ["judged_by", "too_slow", "verdicts_of"]


async def judged_by(
    pool: WorkerPool, call: RewardCall, groups: Sequence[Sequence[Rollout]], *, until: float,
    setting: str = "reward.timeout", unpack: Callable[[Outcome], Outcome] | None = None,
) -> list[Sequence[Verdict] | None]:  # fmt: skip
    """The verdicts on the rollouts of each call; None where there were none at the time `until` (monotonic).

    `unpack` takes from an outcome what came with it.
    """
    judged: list[Sequence[Verdict] | None] = [None] * len(groups)
    calls: list[tuple[Arguments]] = []
    places: list[int] = []
    for place, rollouts in enumerate(groups):
        try:
            calls.append((call.arguments_of(rollouts, plain=True),))
            places.append(place)
        except ItemError as error:
            judged[place] = [Failure.of(error, "score")] * len(rollouts)
    for place, outcome in zip(places, await pool.submit_all(calls, until=until), strict=True):
        if outcome is not None:
            judged[place] = verdicts_of(unpack(outcome) if unpack else outcome, call.name, len(groups[place]), setting)
    return judged


def verdicts_of(outcome: Outcome, name: str, answers: int, setting: str = "reward.timeout") -> list[Verdict]:
    """One verdict per answer that the reward called `name` was to judge in one call.

    `setting` is what its caller would raise to give a call more time. A reward that cannot work at all is an error.
    """
    match outcome:
        case Done(value):  # the usual case, for which trainers wait: one test of what kind it is
            if isinstance(value, Unusable):
                raise RewardKitError(value.message)
            try:
                return [_verdict(each) for each in value]
            except (ValueError, TypeError) as problem:
                error = RewardError(f"{name!r} returned something that is not a result: {message_of(problem)}")
        case TimedOut(seconds=seconds):
            error = RewardTimeoutError(too_slow(name, seconds, setting))
        case Raised(type=kind, message=message):
            error = RewardError(f"{name!r} raised {kind}: {message}")
        case Died(reason=reason):
            error = RewardError(f"{name!r} ended its worker process: it {reason}")
    return [Failure.of(error, "score")] * answers


def too_slow(name: str, seconds: float, setting: str) -> str:
    """What is said of a call that took too long."""
    return f"{name!r} did not return within {seconds:g} s. Raise `{setting}` if it needs longer."


def _verdict(plain: PlainVerdict) -> Verdict:
    if isinstance(plain, dict):
        return EvaluateResult.model_validate(plain)
    if len(plain) == 1:
        return _failure(plain[0])
    score, reason = plain
    return EvaluateResult(score=score, reason=reason)


def _failure(fields: dict[str, Any]) -> Failure:
    """A failure from a worker process, which knows fewer credentials than this one."""
    failure = Failure.model_validate(fields)
    trace, replies = failure.traceback, failure.unread_replies
    masked = {
        "message": mask(failure.message),
        "traceback": None if trace is None else mask(trace),
        "unread_replies": None if replies is None else [mask(reply) for reply in replies],
    }
    return failure.model_copy(update=masked)
