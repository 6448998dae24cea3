# SPDX-License-Identifier: Apache-2.0
"""`train_grpo` trains with TRL itself: the reward sees whole rows, and the trained model is on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reward_kit.integrations.grpo import train_grpo
from reward_kit.integrations.trl import create_trl_adapter

CALLS = [
    [{"name": "weather", "arguments": {"city": "Oslo"}}],
    [{"name": "convert", "arguments": {"amount": 2.5}}],
    [],
]


def test_a_reward_is_given_rows_as_they_are_and_the_model_is_written(tiny_model: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, Any]] = []

    def judge(messages: list[Any], ground_truth: Any, note: Any = None, bonus: float = 0.0, **kwargs: Any) -> float:
        seen.append((messages[0].text, ground_truth))
        if note == "no verdict":
            raise ValueError("it cannot be judged")
        return sum(map(ord, messages[-1].text)) / 1000 + bonus

    rows = [
        {"prompt": [{"role": "user", "content": f"Question {number}"}], "ground_truth": calls}
        for number, calls in enumerate(CALLS)
    ]
    rows[2]["note"] = "no verdict"
    found = train_grpo(
        tiny_model, rows, create_trl_adapter(judge, None, {"bonus": 1.0}, workers=0), output_dir=tmp_path / "out",
        max_steps=3, num_generations=2, max_completion_length=4, per_device_train_batch_size=2, learning_rate=1e-3,
    )  # fmt: skip
    asked = {text: given for text, given in seen}
    assert asked == {f"Question {number}": calls for number, calls in enumerate(CALLS)}
    assert len(found.rewards) == 3 and found.failures == 2
    judged = [reward for reward in found.rewards if reward is not None]
    assert len(judged) == 2 and min(judged) > 1.0, "one step has nothing that could be judged; params reach the reward"
    before = (tiny_model / "model.safetensors").read_bytes()
    assert (tmp_path / "out" / "model.safetensors").read_bytes() != before, "it learned something"
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "qwen2"
    assert (tmp_path / "out" / "tokenizer.json").is_file()
    assert found.lines()[-1] == f"the model is in {tmp_path / 'out'}"
