# SPDX-License-Identifier: Apache-2.0
"""A reward that is served: opened once, with its workers, sandboxes and judge, and asked many times.

    rollouts ─▶ groups ─▶ the scoring engine ─▶ one verdict each, in order

A pointwise reward judges each answer alone. One that judges groups is given all answers to a prompt at once: those of
the same sample.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Sequence

from reward_kit.errors import RewardTimeoutError
from reward_kit.models import Failure, Rollout, Verdict
from reward_kit.scoring.on_the_loop import OnTheLoop
from reward_kit.scoring.rewards import Reward
from reward_kit.scoring.scorers import InWorkers, open_scorer
from reward_kit.serving.dialect import BadRequest
from reward_kit.serving.refusals import Refusal
from reward_kit.serving.settings import ServeSettings

__all__ = ["Judging", "open_judging"]

_NEWS_WEIGHT = 0.1


class Judging:
    """One reward of a server, ready to judge. What waits for it is bounded."""

    def __init__(self, name: str, reward: Reward, scorer: OnTheLoop | InWorkers, settings: ServeSettings) -> None:
        self.name = name
        self._call = reward.call
        self._scorer = scorer
        self._alone = scorer if isinstance(scorer, OnTheLoop) else None
        self._groups = reward.judges_groups
        self._most = settings.limits.queue
        self._seconds = settings.limits.request_seconds
        self._usual_seconds = 0.0
        self.held = 0
        """Answers that are being judged, or wait for it."""

    @property
    def is_full(self) -> bool:
        """Whether one answer more would be refused."""
        return self.held >= self._most

    async def judge(self, asked: Sequence[Rollout | Failure]) -> list[Verdict]:
        """One verdict each, in order; a `Refusal` where too much waits already."""
        rollouts = [each for each in asked if isinstance(each, Rollout)]
        self._check(rollouts)
        count = len(rollouts)
        if self.held and self.held + count > self._most:
            raise Refusal.busy(self._usual_seconds)
        self.held += count
        began = time.monotonic()
        try:
            if count == 1 and self._alone is not None and not self._groups and self._alone.has_room:
                verdicts = [*await self._alone.score(rollouts)]
            else:
                verdicts = await self._judge_many(rollouts, began + self._seconds)
        finally:
            self.held -= count
            self._usual_seconds += _NEWS_WEIGHT * (time.monotonic() - began - self._usual_seconds)
        if len(verdicts) == len(asked):
            return verdicts
        judged = iter(verdicts)
        return [each if isinstance(each, Failure) else next(judged) for each in asked]

    def _check(self, rollouts: Sequence[Rollout]) -> None:
        """Refuse a request that says what only the operator may choose."""
        for rollout in rollouts:
            if rollout.sample.columns and (why := self._call.refused(rollout.sample.columns)):
                raise BadRequest(why)

    async def _judge_many(self, rollouts: Sequence[Rollout], until: float) -> list[Verdict]:
        groups = _groups(rollouts) if self._groups else [[place] for place in range(len(rollouts))]
        judged = await self._scorer.judge_all([[rollouts[place] for place in group] for group in groups], until=until)
        verdicts: dict[int, Verdict] = {}
        for places, found in zip(groups, judged, strict=True):
            verdicts |= zip(places, found or (), strict=False)
        return [verdicts.get(place) or self._late() for place in range(len(rollouts))]

    def _late(self) -> Failure:
        message = (
            f"{self._call.name!r} had not judged this when the request had taken {self._seconds:g} s. Ask again, send "
            "less at once, or raise the server's `limits.request_seconds`."
        )
        return Failure.of(RewardTimeoutError(message, retryable=True), "score")


def _groups(rollouts: Sequence[Rollout]) -> list[list[int]]:
    """Which answers belong together, each by its place: those of one sample."""
    groups: dict[str, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        groups.setdefault(rollout.sample.id, []).append(place)
    for places in groups.values():
        first = rollouts[places[0]].sample
        if any(rollouts[place].sample.ground_truth != first.ground_truth for place in places):
            raise BadRequest(
                "Answers to one prompt have different ground truths. Send the same ground truth, or another sample_id."
            )
    return list(groups.values())


@contextlib.asynccontextmanager
async def open_judging(name: str, reward: Reward, settings: ServeSettings) -> AsyncIterator[Judging]:
    """Open what the reward needs; closed in the end. What cannot work is said here, before anything is served."""
    async with open_scorer(reward, None, settings.sandbox, settings.judge, owned=True) as scorer:
        yield Judging(name, reward, scorer, settings)
