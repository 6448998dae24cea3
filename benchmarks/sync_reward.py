# SPDX-License-Identifier: Apache-2.0
"""Synchronous rewards in worker processes, beside a bare loop on one core."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.bare_processes import bare_processes
from benchmarks.own_rewards import busy, contains_answer_sync, spin
from benchmarks.report import Report, Row
from benchmarks.scene import Workshop, interleaved, rows, timed_run, workshop
from reward_kit.config_models import PipelineConfig, RewardConfig, SandboxConfig
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.models import Message, Rollout, Sample
from reward_kit.scoring.rewards import Reward
from reward_kit.scoring.scorers import open_scorer

__all__ = ["main"]

GOAL_SPEED = 1.6
GOAL_MICROSECONDS = 60.0
WORKERS = 2
ROUNDS = 3
_START_SECONDS = 0.5
ANSWER = Message(role="assistant", content="The answer is \\boxed{42}.")


def main(*, quick: bool = False) -> Report:
    """Measure a reward of one millisecond, then one that does next to nothing."""
    count, rounds = (200, 1) if quick else (10_000, ROUNDS)
    with workshop() as shop:
        judge = Judge(shop, count)
        found = [*_one_millisecond(judge, rounds), *_trivial(judge, rounds)]
    return Report("sync_reward", f"a synchronous reward over {count:,} rollouts, {WORKERS} worker processes", found)


class Judge:
    """Has the same rollouts judged in three ways: bare, by a scorer, and by the execution phase of a run."""

    def __init__(self, shop: Workshop, count: int) -> None:
        self.count = count
        self._shop = shop
        self._rollouts = [rollout(number, row) for number, row in enumerate(rows(count))]
        mock = {"responses": [ANSWER.text]}
        config = shop.config(count, {"model_name": "mock", "mock": mock, "cache": {"enabled": False}})
        EvaluationPipeline(config, phase="inference").run()
        self._file = Path(config.output.output_dir) / "rollouts.jsonl"

    def bare(self, function: Callable[..., float], **arguments: Any) -> float:
        """Seconds of a loop over the plain function."""
        conversations = [each.messages for each in self._rollouts]
        start = time.perf_counter()
        for messages in conversations:
            function(messages, **arguments)
        return time.perf_counter() - start

    def scorer(self, function: Callable[..., float], **params: Any) -> float:
        """Seconds until a scorer has judged all rollouts; its workers are warm."""
        return uvloop.run(self._score_all(self._reward(function, params)))

    def phase(self, function: Callable[..., float], **params: Any) -> float:
        """Seconds of a whole execution phase: rollouts read, judged, journaled, summarised."""
        config = self._shop.config(self.count, {"enabled": False})
        updates = {"rollouts_file": str(self._file), "reward": self._reward(function, params), "dataset": None}
        return timed_run(PipelineConfig.model_copy(config, update=updates), self.count)

    @staticmethod
    def _reward(function: Callable[..., float], params: dict[str, Any]) -> RewardConfig:
        return RewardConfig(function_path=f"benchmarks.own_rewards:{function.__name__}", params=params, workers=WORKERS)

    async def _score_all(self, config: RewardConfig) -> float:
        opening = open_scorer(Reward(config), self._shop.directory, SandboxConfig(), at_hand=self.count)
        async with opening as scorer:

            async def hand() -> None:
                for each in waiting:
                    await scorer.score([each])

            waiting = iter(self._rollouts[:100])
            await hand()
            await asyncio.sleep(_START_SECONDS)  # by now the other worker is up, too
            waiting = iter(self._rollouts)
            start = time.perf_counter()
            await asyncio.gather(*[hand() for _ in range(scorer.concurrency)])
            return time.perf_counter() - start


def rollout(number: int, row: dict[str, str]) -> Rollout:
    """A rollout as a run makes it."""
    question = Message(role="user", content=row["user_query"])
    sample = Sample(id=row["id"], messages=[question], ground_truth="42", position=number)
    return Rollout(sample=sample, response_index=0, turns=[ANSWER])


def _one_millisecond(judge: Judge, rounds: int) -> list[Row]:
    steps = _steps_for(0.001)
    part = (judge.count // WORKERS, steps)
    with bare_processes(_spin_often, WORKERS) as in_bare_processes:
        in_bare_processes([(1, 1)] * WORKERS)  # they are up
        times = interleaved(
            {
                "bare": lambda: judge.bare(busy, steps=steps),
                "processes": lambda: in_bare_processes([part] * WORKERS),
                "scorer": lambda: judge.scorer(busy, steps=steps),
                "phase": lambda: judge.phase(busy, steps=steps),
            },
            rounds,
        )
    bare, floor, scorer, phase = (times[kind].best for kind in ("bare", "processes", "scorer", "phase"))
    what = "1 ms of computing"
    return [
        Row(f"{what}, execution phase, of one core", bare / phase, f"{phase:.2f} s of {bare:.2f} s", GOAL_SPEED),
        Row(f"{what}, scorer alone, of one core", bare / scorer, f"{scorer:.2f} s of {bare:.2f} s"),
        Row(f"{what}, {WORKERS} bare processes, of one core", bare / floor, f"{floor:.2f} s of {bare:.2f} s"),
    ]


def _spin_often(part: tuple[int, int]) -> None:
    times, steps = part
    for _ in range(times):
        spin(steps)


def _trivial(judge: Judge, rounds: int) -> list[Row]:
    times = interleaved(
        {
            "bare": lambda: judge.bare(contains_answer_sync, ground_truth="42"),
            "scorer": lambda: judge.scorer(contains_answer_sync),
            "phase": lambda: judge.phase(contains_answer_sync),
        },
        rounds,
    )
    bare, scorer, phase = (times[kind].best / judge.count * 1e6 for kind in ("bare", "scorer", "phase"))
    return [
        Row(
            "trivial, per call over the bare call",
            scorer - bare,
            f"{scorer:.1f} µs per call by the scorer, {bare:.1f} µs bare",
            at_most=GOAL_MICROSECONDS,
            unit="µs",
        ),
        Row("trivial, per record in the execution phase", phase, "read, judged, journaled, summarised", unit="µs"),
    ]


def _steps_for(seconds: float) -> int:
    """How many steps take this long when nothing disturbs them."""
    steps = 20_000
    took = []
    for _ in range(50):
        start = time.perf_counter()
        spin(steps)
        took.append(time.perf_counter() - start)
    return max(1, int(steps * seconds / min(took)))
