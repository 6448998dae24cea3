# SPDX-License-Identifier: Apache-2.0
"""The figures of a run as it goes, kept by the stages and read by whoever shows progress."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from reward_kit.agent.watch import EpisodeWatch
from reward_kit.generation.judge import JudgeUse
from reward_kit.models import EvaluateResult, Rollout, Verdict

if TYPE_CHECKING:
    from reward_kit.generation.cache.responses import Earlier

__all__ = ["BatchWatch", "MirrorWatch", "RunCounters"]


@dataclass
class BatchWatch:
    """What goes on with the batches of a run."""

    doing: str = "preparing requests"
    """In words, for whoever watches."""
    requests: int = 0
    """Requests in all files."""
    files: int = 0
    ended: int = 0
    """Files whose batches have ended."""
    answered: int = 0
    """Requests that were dealt with, as far as the provider says."""
    failed: int = 0
    since: float | None = None
    """When the provider was first asked how it goes, and how many were answered then."""
    answered_then: int = 0

    def look(self, answered: int, failed: int) -> None:
        """Take account of what the provider says now."""
        self.answered, self.failed = answered, failed
        if self.since is None:
            self.since, self.answered_then = time.monotonic(), answered

    @property
    def seconds_left(self) -> float | None:
        """At the rate since the first look; None where that is not known."""
        done = self.answered - self.answered_then
        if self.since is None or done <= 0:
            return None
        return max(0, self.requests - self.answered) * (time.monotonic() - self.since) / done


class MirrorWatch(Protocol):
    """Tells how a mirror keeps up."""

    def lag(self) -> str | None:
        """How far it is behind, in words; None where it keeps up."""


@dataclass
class RunCounters:
    """Plain numbers. The stages add to them; nothing here decides anything."""

    phase: str = "both"
    expected: int | None = None
    """Rollouts the run will have in the end, where that can be known beforehand."""
    found_rollouts: int = 0
    """Rollouts that were on disk already."""
    found_results: int = 0
    """Results that were on disk already."""
    generated: int = 0
    """Rollouts made since the run was entered, failed ones included."""
    generation_failures: int = 0
    cached: int = 0
    """How many of the generated ones came from the response cache."""
    earlier: Earlier | None = None
    """Of those, the ones that were made before the run was entered."""
    judged: int = 0
    """Rollouts judged since the run was entered."""
    failed: int = 0
    """Rollouts that could not be judged, for whatever reason, since the run was entered."""
    invalid: int = 0
    """How many of those failed because the result said `is_score_valid=False` and named no error."""
    score_sum: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """Money spent since the run was entered, a judge's apart."""
    cost_is_at_most: bool = False
    """Whether some replies did not tell what they used: they count with the most that it may have been."""
    judge: JudgeUse | None = None
    """What the reward asks of a judge, where it has one."""
    skipped_rows: int = 0
    called_for: int | None = None
    """Answers that the dataset and n call for, once all of it was gone through."""
    sandbox: str | None = None
    """The backend that the reward's sandboxes are made with, where it has any."""
    in_flight: int = 0
    """Samples being generated."""
    episodes: EpisodeWatch | None = None
    """What goes on in the episodes of an agent, where there is one."""
    batches: BatchWatch | None = None
    """What goes on with batches, as long as they are waited for."""
    mirror: MirrorWatch | None = None
    """How the mirror of the run keeps up, where it has one."""
    started: float = field(default_factory=time.monotonic)
    stopping: str | None = None
    """Why the run is coming to an early end, once it is."""

    @property
    def seconds(self) -> float:
        """Since the run was entered."""
        return time.monotonic() - self.started

    @property
    def unjudged(self) -> int:
        """Rollouts the run will have that nobody has judged yet, as far as is known."""
        return max(0, (self.expected or 0) - self.found_results - self.scored)

    @property
    def scored(self) -> int:
        """Rollouts the score stage has dealt with."""
        return self.judged + self.failed

    def count_rollout(self, rollout: Rollout, before: Rollout | None = None) -> None:
        """Take account of a rollout the generate stage made; what was paid `before` is in it, and not of this entry."""
        if before is not None:
            self.cost -= before.cost or 0.0
            if before.usage is not None:
                self.prompt_tokens -= before.usage.prompt_tokens
                self.completion_tokens -= before.usage.completion_tokens
        self.generated += 1
        if rollout.failure is not None:
            self.generation_failures += 1
        if rollout.cached:
            self.cached += 1
        elif rollout.usage is not None:
            self.prompt_tokens += rollout.usage.prompt_tokens
            self.completion_tokens += rollout.usage.completion_tokens
            self.cost_is_at_most = self.cost_is_at_most or bool(rollout.usage.at_most)
        self.cost += rollout.cost or 0.0

    def count_verdict(self, verdict: Verdict) -> None:
        """Take account of what the score stage said of a rollout."""
        if isinstance(verdict, EvaluateResult):
            self.judged += 1
            self.score_sum += verdict.score
        else:
            self.failed += 1
            self.invalid += verdict.invalid_score is not None
