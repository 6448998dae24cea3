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
from typing import NamedTuple

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


class _Call(NamedTuple):
    """One call of the reward, and which of the answers it judges."""

    payload: Payload
    places: Sequence[int]


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
            if count == 1 and self._alone is not None and self._alone.has_room:
                return [*await self._alone.judge(self._payload(asked))]
            return await self._judge_many(asked, began + self._seconds)
        finally:
            self.held -= count
            self._usual_seconds += _NEWS_WEIGHT * (time.monotonic() - began - self._usual_seconds)

    async def _judge_many(self, asked: Sequence[Asked], until: float) -> list[Verdict]:
        calls = self._calls(asked)
        judged = await self._scorer.judge_all([call.payload for call in calls], until=until)
        verdicts: list[Verdict | None] = [None] * len(asked)
        for call, found in zip(calls, judged, strict=True):
            for place, verdict in zip(call.places, found or (), strict=False):
                verdicts[place] = verdict
        return [self._late() if verdict is None else verdict for verdict in verdicts]

    def _calls(self, asked: Sequence[Asked]) -> list[_Call]:
        if not self._groups:
            return [_Call(self._payload([each]), (place,)) for place, each in enumerate(asked)]
        groups: dict[str | None, list[int]] = {}
        for place, each in enumerate(asked):
            groups.setdefault(each.sample_id, []).append(place)
        if None in groups and len(groups) > 1:
            raise BadRequest(
                "Some answers have a sample_id and others have none, and this reward judges all answers to a prompt "
                "together. Give each a sample_id, or none of them."
            )
        return [_Call(self._payload([asked[place] for place in places]), places) for places in groups.values()]

    def _payload(self, asked: Sequence[Asked]) -> Payload:
        first = asked[0]
        if any(each.ground_truth != first.ground_truth for each in asked[1:]):
            raise BadRequest("Answers to one prompt have different ground truths. Send the same, or other sample_ids.")
        return self._call.asked_payload(
            [each.messages for each in asked], first.ground_truth, first.columns, first.sample_id
        )

    def _late(self) -> Failure:
        message = (
            f"{self._call.name!r} had not judged this when the request had taken {self._seconds:g} s. Ask again, send "
            "less at once, or raise the server's `limits.request_seconds`."
        )
        return Failure.of(RewardTimeoutError(message, retryable=True), "score")


@contextlib.asynccontextmanager
async def open_judging(name: str, reward: Reward, settings: ServeSettings) -> AsyncIterator[Judging]:
    """Open what the reward needs; closed in the end. What cannot work is said here, before anything is served."""
    async with open_scorer(reward, None, settings.sandbox, settings.judge) as scorer:
        yield Judging(name, reward, scorer, settings)
