# SPDX-License-Identifier: Apache-2.0
"""Our rewards in TRL's trainers, on a model made here: every trainer that calls a reward calls ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer
from trl.experimental.online_dpo import OnlineDPOConfig, OnlineDPOTrainer

from reward_kit.errors import ConfigError
from reward_kit.integrations.trl import create_trl_adapter
from reward_kit.rewards.math import math_reward
from tests.training.conftest import ON_A_CPU, make_tokenizer
from tests.training.rewards import digits, digits_async, ranks, treacherous

PLAIN = [{"prompt": f"{n} + {n} = ", "answer": str(2 * n), "level": "easy"} for n in range(8)]
CHAT = [{**row, "prompt": [{"role": "user", "content": row["prompt"]}]} for row in PLAIN]


def grpo(model: Path, rewards: Any, rows: list[dict[str, Any]], out: Path, **settings: Any) -> GRPOTrainer:
    config: dict[str, Any] = {
        **ON_A_CPU,
        "output_dir": str(out),
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 6,
        "max_steps": 1,
        **settings,
    }
    return GRPOTrainer(
        model=str(model), reward_funcs=rewards, args=GRPOConfig(**config),
        train_dataset=Dataset.from_list(rows), processing_class=make_tokenizer(),
    )  # fmt: skip


def logged(trainer: Any) -> dict[str, Any]:
    """Everything the trainer logged, the latest value of each name."""
    return {name: value for entry in trainer.state.log_history for name, value in entry.items()}


# ── it learns ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_grpo_learns_what_a_library_reward_rewards(tiny_model: Path, tmp_path: Path) -> None:
    adapter = create_trl_adapter("reward_kit.rewards.math:math_reward", {"answer": "ground_truth"})
    rows = [{"prompt": prompt, "answer": "7"} for prompt in "abcd"] * 8
    trainer = grpo(
        tiny_model, [adapter], rows, tmp_path, max_steps=150, seed=1, learning_rate=1e-2, lr_scheduler_type="linear",
        per_device_train_batch_size=64, num_generations=16,
    )  # fmt: skip
    trainer.train()
    name = "rewards/math_reward/mean"
    curve = [entry[name] for entry in trainer.state.log_history if name in entry]
    assert len(curve) == 150
    start, end = sum(curve[:5]) / 5, sum(curve[-5:]) / 5
    assert start < 0.15, curve
    assert end > 0.7, curve
    assert logged(trainer)["math_reward/failed"] == adapter.failures == 0


# ── every trainer ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rows", [PLAIN, CHAT], ids=["plain", "conversational"])
def test_grpo_with_rewards_of_every_kind(tiny_model: Path, tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    right = create_trl_adapter("reward_kit.rewards.math:math_reward", {"answer": "ground_truth"})
    rewards = [right, create_trl_adapter(digits_async).async_, create_trl_adapter(ranks), create_trl_adapter(digits)]
    trainer = grpo(tiny_model, rewards, rows, tmp_path, log_completions=True)
    trainer.train()
    found = logged(trainer)
    assert {f"rewards/{name}/mean" for name in ("math_reward", "digits_async", "ranks", "digits")} <= found.keys()
    assert found["digits/nonempty"] >= 0.0
    assert found["ranks/failed"] == 0.0


def test_the_reasons_stand_beside_the_completions(tiny_model: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    grpo(tiny_model, [create_trl_adapter(ranks)], CHAT, tmp_path, log_completions=True).train()
    (file,) = (tmp_path / "completions").glob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    assert [row["ranks/reason"] for row in rows] == ["of 4"] * 8, "a group is what one prompt was answered with"


def test_a_bad_completion_neither_stalls_nor_ends_the_training(tiny_model: Path, tmp_path: Path) -> None:
    adapter = create_trl_adapter(treacherous, name="bad")
    trainer = grpo(tiny_model, [adapter, create_trl_adapter(digits)], PLAIN, tmp_path, max_steps=2)
    trainer.train()
    assert adapter.failures > 0
    assert 0 < logged(trainer)["bad/failed"] <= 1


def test_a_column_that_is_not_there_ends_it_at_once(tiny_model: Path, tmp_path: Path) -> None:
    adapter = create_trl_adapter(math_reward, {"solution": "ground_truth"})
    with pytest.raises(ConfigError, match="no column 'solution'"):
        grpo(tiny_model, [adapter], PLAIN, tmp_path).train()


def test_rloo(tiny_model: Path, tmp_path: Path) -> None:
    config = RLOOConfig(
        **ON_A_CPU, output_dir=str(tmp_path), per_device_train_batch_size=8, num_generations=4, max_steps=1,
        max_completion_length=6,
    )  # fmt: skip
    rewards = [create_trl_adapter(digits), create_trl_adapter(ranks).async_]
    trainer = RLOOTrainer(
        model=str(tiny_model), reward_funcs=rewards, args=config, train_dataset=Dataset.from_list(CHAT),
        processing_class=make_tokenizer(),
    )  # fmt: skip
    trainer.train()
    assert logged(trainer).keys() >= {"rewards/digits/mean", "rewards/ranks/mean", "digits/nonempty", "ranks/failed"}


def test_online_dpo(tiny_model: Path, tmp_path: Path) -> None:
    config = OnlineDPOConfig(
        **ON_A_CPU, output_dir=str(tmp_path), per_device_train_batch_size=4, max_steps=1, max_new_tokens=6
    )
    adapters = [create_trl_adapter(digits), create_trl_adapter(digits_async), create_trl_adapter(ranks)]
    trainer = OnlineDPOTrainer(
        model=str(tiny_model), reward_funcs=list(adapters), args=config, train_dataset=Dataset.from_list(CHAT),
        processing_class=make_tokenizer(),
    )  # fmt: skip
    trainer.train()
    assert trainer.state.global_step == 1
    assert [adapter.failures for adapter in adapters] == [0, 0, 0]
