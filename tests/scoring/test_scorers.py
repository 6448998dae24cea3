# SPDX-License-Identifier: Apache-2.0
"""Scorers: one verdict per rollout, in order, wherever the reward runs and whoever else judges groups."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import PipelineConfig, RewardConfig, SandboxConfig
from reward_kit.models import EvaluateResult, Failure, Message, Rollout, Sample, Verdict
from reward_kit.scoring.rewards import Reward, Rewards
from reward_kit.scoring.scorers import open_rewards, open_scorer


def rollout(answer: str, draw: int = 0, split: str | None = None) -> Rollout:
    sample = Sample(id="s", messages=[Message(role="user", content="?")], ground_truth="4", split=split)
    return Rollout(sample=sample, response_index=draw, turns=[Message(role="assistant", content=answer)])


def judge(response: str, ground_truth: str) -> float:
    if response == "bad":
        raise ValueError("bad answer")
    return float(response == ground_truth)


async def judge_async(response: str, ground_truth: str) -> float:
    await asyncio.sleep(0)
    return judge(response, ground_truth)


def ranks(rollouts_messages: list[Any], responses: list[str]) -> list[dict[str, float]]:
    return [{"score": float(sorted(responses).index(response))} for response in responses]


async def slow(response: str) -> float:
    await asyncio.sleep(600)
    return 1.0


def reward(function: Any, **settings: Any) -> Reward:
    return Reward(RewardConfig(function_path="given", workers=1, **settings), function)


def scores(verdicts: Any) -> list[float | str]:
    return [verdict.score if isinstance(verdict, EvaluateResult) else verdict.type for verdict in verdicts]


@pytest.mark.parametrize("function", [judge, judge_async])
async def test_a_pointwise_reward_judges_each_alone_also_when_they_come_as_a_group(
    tmp_path: Path, function: Any
) -> None:
    group = [rollout("4"), rollout("bad", 1), rollout("5", 2)]
    async with open_scorer(reward(function), tmp_path, SandboxConfig()) as scorer:
        together = await scorer.score(group)
        alone: list[Verdict] = [verdict for each in group for verdict in await scorer.score([each])]
    assert scores(together) == scores(alone) == [1.0, "RewardError", 0.0]


async def test_a_call_that_is_too_slow_is_a_failure_of_its_rollout(tmp_path: Path) -> None:
    async with open_scorer(reward(slow, timeout=0.05), tmp_path, SandboxConfig()) as scorer:
        (verdict,) = await scorer.score([rollout("4")])
    assert isinstance(verdict, Failure) and "Raise `reward.timeout`" in verdict.message


async def test_no_more_calls_are_made_at_a_time_than_was_asked_for(tmp_path: Path) -> None:
    under_way, most = 0, 0

    async def watched(response: str) -> float:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(5):
            await asyncio.sleep(0)
        under_way -= 1
        return 1.0

    async with open_scorer(reward(watched, concurrency=3), tmp_path, SandboxConfig()) as scorer:
        await asyncio.gather(*(scorer.score([rollout("4", draw)]) for draw in range(20)))
    assert (scorer.concurrency, most) == (3, 3)


async def test_each_split_has_its_reward(tmp_path: Path) -> None:
    rewards = Rewards(reward(judge_async), {"ranked": reward(ranks)})
    assert rewards.judge_groups
    async with open_rewards(rewards, PipelineConfig(reward=rewards.others.config), tmp_path) as scorer:
        ranked = await scorer.score([rollout("b", 0, "ranked"), rollout("a", 1, "ranked")])
        others = await scorer.score([rollout("4"), rollout("5", 1, "unknown")])
    assert scores(ranked) == [1.0, 0.0]
    assert scores(others) == [1.0, 0.0]
