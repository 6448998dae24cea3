"""Rows in the shapes that training data is exported in: each of TRL's trainers takes a step on its own."""

from __future__ import annotations

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

from tests.training.conftest import ON_A_CPU, make_tokenizer

QUESTION = {"role": "user", "content": "2 + 2?"}
RIGHT = {"role": "assistant", "content": "4"}
WRONG = {"role": "assistant", "content": "5"}

ROWS: dict[str, list[dict[str, Any]]] = {
    "sft": [{"messages": [QUESTION, RIGHT]}] * 4,
    "sft-prompt-completion": [{"prompt": [QUESTION], "completion": [RIGHT]}] * 4,
    "dpo": [{"prompt": [QUESTION], "chosen": [RIGHT], "rejected": [WRONG]}] * 4,
    "kto": [
        {"prompt": [QUESTION], "completion": [RIGHT], "label": True},
        {"prompt": [QUESTION], "completion": [WRONG], "label": False},
    ] * 2,
    "reward": [{"prompt": [QUESTION], "chosen": [RIGHT], "rejected": [WRONG], "margin": 1.0}] * 4,
}  # fmt: skip
"""What an export writes, by its kind."""

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


@pytest.mark.parametrize("kind", ROWS)
def test_each_kind_trains(kind: str, tiny_model: Path, tmp_path: Path) -> None:
    trainer = train(kind.split("-", maxsplit=1)[0], ROWS[kind], tiny_model, tmp_path)
    assert trainer.state.global_step == 1
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 1 and losses[0] > 0
