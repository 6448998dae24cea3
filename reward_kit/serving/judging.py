# SPDX-License-Identifier: Apache-2.0
"""A reward that is served: opened once, with its workers, sandboxes and judge, and asked many times.

    Asked, Asked, … ─▶ payloads ─▶ the scoring engine ─▶ one verdict each, in order

A pointwise reward judges each answer alone. One that judges groups is given all answers to a prompt at once: those
with the same `sample_id`, or all of the request where none has one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Sequence

from reward_kit.errors import RewardTimeoutError
from reward_kit.models import Failure, Verdict
from reward_kit.reward_call import Payload
from reward_kit.scoring.on_the_loop import OnTheLoop
from reward_kit.scoring.rewards import Reward
from reward_kit.scoring.scorers import InWorkers, open_scorer
from reward_kit.serving.dialect import Asked, BadRequest
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

    async def judge(self, asked: Sequence[Asked]) -> list[Verdict]:
        """One verdict per answer, in order; a `Refusal` where too much waits already."""
        count = len(asked)
        if self.held and self.held + count > self._most:
            raise Refusal.busy(self._usual_seconds)
        self.held += count
        began = time.monotonic()
        try:
            if count == 1 and self._alone is not None and not self._groups and self._alone.has_room:
                return [*await self._alone.judge(self._payload(asked[0]))]
            return await self._judge_many(asked, began + self._seconds)
        finally:
            self.held -= count
            self._usual_seconds += _NEWS_WEIGHT * (time.monotonic() - began - self._usual_seconds)

    async def _judge_many(self, asked: Sequence[Asked], until: float) -> list[Verdict]:
        if self._groups:
            return await self._judge_groups(asked, until)
        judged = await self._scorer.judge_all([self._payload(each) for each in asked], until=until)
        return [self._late() if found is None else found[0] for found in judged]

    async def _judge_groups(self, asked: Sequence[Asked], until: float) -> list[Verdict]:
        groups = _groups(asked)
        judged = await self._scorer.judge_all([self._group_payload(asked, places) for places in groups], until=until)
        verdicts: dict[int, Verdict] = {}
        for places, found in zip(groups, judged, strict=True):
            verdicts |= zip(places, found or (), strict=False)
        return [verdicts.get(place) or self._late() for place in range(len(asked))]

    def _payload(self, asked: Asked) -> Payload:
        messages, truth, columns, sample_id = asked
        return self._call.asked_payload((messages,), truth, columns, sample_id)

    def _group_payload(self, asked: Sequence[Asked], places: Sequence[int]) -> Payload:
        group = [asked[place] for place in places]
        first = group[0]
        if any(each.ground_truth != first.ground_truth for each in group):
            raise BadRequest(
                "Answers to one prompt have different ground truths. Send the same ground truth, or another sample_id."
            )
        conversations = [each.messages for each in group]
        return self._call.asked_payload(conversations, first.ground_truth, first.columns, first.sample_id)

    def _late(self) -> Failure:
        message = (
            f"{self._call.name!r} had not judged this when the request had taken {self._seconds:g} s. Ask again, send "
            "less at once, or raise the server's `limits.request_seconds`."
        )
        return Failure.of(RewardTimeoutError(message, retryable=True), "score")


def _groups(asked: Sequence[Asked]) -> list[list[int]]:
    """Which answers belong together, each by its place."""
    groups: dict[str | None, list[int]] = {}
    for place, each in enumerate(asked):
        groups.setdefault(each.sample_id, []).append(place)
    if None in groups and len(groups) > 1:
        raise BadRequest(
            "Some answers have a sample_id and others have none, but this reward judges all answers to a prompt "
            "together. Give every answer a sample_id, or none."
        )
    return list(groups.values())


@contextlib.asynccontextmanager
async def open_judging(name: str, reward: Reward, settings: ServeSettings) -> AsyncIterator[Judging]:
    """Open what the reward needs; closed in the end. What cannot work is said here, before anything is served."""
    async with open_scorer(reward, None, settings.sandbox, settings.judge) as scorer:
        yield Judging(name, reward, scorer, settings)
