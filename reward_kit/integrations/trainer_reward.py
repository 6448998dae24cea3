# SPDX-License-Identifier: Apache-2.0
"""A reward for trainers that have no word for "not judged": they must be told what such a completion earns.

verl, OpenRLHF, SkyRL, Tinker and their like take a number for each completion and know nothing else: a NaN would spoil
the batch, and an exception may end the training. So `failed_score` is asked for, with no default: a number, which is
what a completion that cannot be judged earns, or `None`, which lets the error out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from reward_kit.errors import ConfigError, RewardError
from reward_kit.integrations.scoring import Scoring, hint_of
from reward_kit.models import EvaluateResult, Failure, Rollout, Verdict
from reward_kit.reward_call import RewardCall
from reward_kit.scoring.failure_log import traceback_lines

__all__ = ["Earned", "TrainerReward"]

_logger = logging.getLogger(__name__)


class Earned(NamedTuple):
    """What a trainer is told of one completion: its score, why, and the error where it could not be judged."""

    score: float
    reason: str | None = None
    metrics: Mapping[str, float] = {}
    """The score of each metric, by name."""
    error: str | None = None
    """Why it could not be judged, where that is so; the score is then the `failed_score`."""


class TrainerReward:
    """Judges rollouts one or many at a time, and always has a number to say. It pickles if the reward does."""

    def __init__(
        self,
        reward: Callable[..., Any] | str,
        *,
        failed_score: float | None,
        params: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Take a pointwise reward, or its import path, and its params; the options are those of `Scoring`."""
        self.call = RewardCall(reward, params)
        if self.call.mode == "batch":
            raise ConfigError(
                f"{self.call.name!r} judges all rollouts of a sample at once, and this trainer asks for one at a time. "
                "Give a pointwise reward."
            )
        self.failed_score = failed_score
        self._scoring = Scoring(self.call, **options)
        self.failures = 0
        """Completions that could not be judged so far."""

    def judge(self, attempts: Sequence[Rollout | Failure]) -> list[Earned]:
        """What each rollout earns; a failure in a rollout's place is what it came to."""
        return self._all_earned(attempts, self._scoring.score(_alone(attempts)))

    async def judge_async(self, attempts: Sequence[Rollout | Failure]) -> list[Earned]:
        """The same, for an event loop."""
        return self._all_earned(attempts, await self._scoring.score_async(_alone(attempts)))

    def _all_earned(self, attempts: Sequence[Rollout | Failure], judged: Sequence[Sequence[Verdict]]) -> list[Earned]:
        verdicts = iter(judged)
        return [self._earned(each if isinstance(each, Failure) else next(verdicts)[0]) for each in attempts]

    def close(self) -> None:
        """End the worker processes now rather than with the trainer."""
        self._scoring.close()

    def _earned(self, verdict: Verdict) -> Earned:
        if isinstance(verdict, EvaluateResult):
            metrics = {name: metric.score for name, metric in verdict.metrics.items()}
            return Earned(verdict.score, verdict.reason, metrics)
        message, trace = verdict.message.rstrip("."), traceback_lines(verdict)
        if self.failed_score is None:
            error = RewardError(f"{message}. Set failed_score to give such a completion that score instead.")
            if trace:
                error.add_note(trace.lstrip())
            raise error
        self.failures += 1
        if self.failures == 1:
            _logger.warning(
                "%s. It earns %g (failed_score); further failures are only counted.%s%s",
                message, self.failed_score, hint_of(verdict), trace,
            )  # fmt: skip
        return Earned(self.failed_score, error=verdict.message)


def _alone(attempts: Sequence[Rollout | Failure]) -> list[list[Rollout]]:
    return [[each] for each in attempts if isinstance(each, Rollout)]
