# SPDX-License-Identifier: Apache-2.0
"""What `reward-kit export` writes: each of TRL's trainers takes a step on its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from trl import (
    DPOConfig,
    DPOTrainer,
    KTOConfig,
    KTOTrainer,
    RewardConfig,
    RewardTrainer,
    SFTConfig,
    SFTTrainer,
)

from reward_kit.evaluation import evaluate
from tests.training.conftest import ON_A_CPU, make_tokenizer

KINDS = {"sft": "sft", "dpo": "preference", "kto": "kto", "reward": "rm"}
"""A trainer, and what `reward-kit export --to` calls its data."""

TRAINERS: dict[str, tuple[Any, Any]] = {
    "sft": (SFTTrainer, SFTConfig),
    "dpo": (DPOTrainer, DPOConfig),
    "kto": (KTOTrainer, KTOConfig),
    "reward": (RewardTrainer, RewardConfig),
}


def train(kind: str, rows: list[dict[str, Any]], model: Path, out: Path) -> Any:
    """One step of the trainer for `kind` on `rows`."""
    trainer_class, config_class = TRAINERS[kind]
    config = config_class(**ON_A_CPU, output_dir=str(out), per_device_train_batch_size=4, max_steps=1)
    trainer = trainer_class(
        model=str(model), args=config, train_dataset=Dataset.from_list(rows), processing_class=make_tokenizer()
    )
    trainer.train()
    return trainer


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four questions with a right and a wrong answer each, judged."""
    questions = [{"user_query": f"Say {number}", "ground_truth": str(number)} for number in range(1, 5)]
    model = {"rules": [{"pattern": r"Say (\d+)", "response": [r"\1", r"9\1"]}]}
    path = tmp_path_factory.mktemp("judged") / "run"
    evaluate(questions, "math_reward", model="mock", n=2, output_dir=path, generation={"mock": model})
    return path


def exported(kind: str, run: Path, out: Path) -> list[dict[str, Any]]:
    """What the command writes for a trainer."""
    file = out / "rows.jsonl"
    command = [sys.executable, "-m", "reward_kit", "export", str(run), "--to", kind, "-o", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("trainer", KINDS)
def test_what_is_exported_trains(trainer: str, judged: Path, tiny_model: Path, tmp_path: Path) -> None:
    rows = exported(KINDS[trainer], judged, tmp_path)
    assert len(rows) >= 4
    trained = train(trainer, rows, tiny_model, tmp_path)
    assert trained.state.global_step == 1
    losses = [entry["loss"] for entry in trained.state.log_history if "loss" in entry]
    assert len(losses) == 1 and losses[0] > 0
