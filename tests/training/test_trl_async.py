# SPDX-License-Identifier: Apache-2.0
"""AsyncGRPO scores groups in a spawned child. Its trainer needs vLLM and a GPU; its scoring is real here."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from accelerate import PartialState
from trl.experimental.async_grpo.async_rollout_worker import RolloutGroup, TrainingSequence, _AsyncRolloutLoop

from reward_kit.integrations.trl import create_trl_adapter
from tests.training.rewards import digits, digits_async, ranks, treacherous

ANSWERS = ["12", "ab", "1b", "abc"]


def group() -> RolloutGroup:
    """What the rollout loop has when a prompt has been answered four times."""
    sequence = TrainingSequence(input_ids=[1, 2], completion_mask=[0, 1], old_log_probs=[0.0, -1.0], rollout_id=0)
    return RolloutGroup(
        prompts=[[{"role": "user", "content": "a number"}]] * 4,
        reward_kwargs={"answer": ["12"] * 4},
        completions=[[{"role": "assistant", "content": answer}] for answer in ANSWERS],
        completions_ids=[[5]] * 4,
        completions_sequences=[[sequence]] * 4,
        tool_call_counts=[0] * 4,
        tool_failure_counts=[0] * 4,
        model_version=0,
        group_id=0,
        env_rewards=[],
        rollout_rewards=[None] * 4,
    )


def score(rewards: list[Any]) -> list[dict[str, float]]:
    """The child: it has been given the rewards by pickle, as AsyncGRPO gives them to its own."""
    PartialState()
    loop = _AsyncRolloutLoop.__new__(_AsyncRolloutLoop)
    loop.reward_funcs = rewards
    loop.reward_func_names = [reward.__name__ for reward in rewards]
    loop._env_reward_types = []
    return [sample.metrics for sample in asyncio.run(loop._score_group(group()))]


def test_adapters_score_in_a_spawned_child() -> None:
    right = create_trl_adapter("reward_kit.rewards.math:math_reward", {"answer": "ground_truth"})
    rewards = [
        right, create_trl_adapter(digits), create_trl_adapter(digits_async).async_, create_trl_adapter(ranks),
        create_trl_adapter(treacherous).async_,
    ]  # fmt: skip
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as child:
        metrics = child.submit(score, rewards).result(timeout=100)
    assert [each["rewards/math_reward"] for each in metrics] == [1.0, 0.0, 0.0, 0.0]
    assert [each["rewards/digits"] for each in metrics] == [1.0, 0.0, 0.5, 0.0]
    assert [each["rewards/digits_async"] for each in metrics] == [1.0, 0.0, 0.5, 0.0]
    assert [each["rewards/ranks"] for each in metrics] == [1.0, 0.0, 0.0, 0.0]
    assert [each["rewards/treacherous"] for each in metrics[:3]] == [2.0, 2.0, 2.0]
    assert math.isnan(metrics[3]["rewards/treacherous"]), "what could not be judged is left out"
