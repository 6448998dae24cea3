# SPDX-License-Identifier: Apache-2.0
"""A step of GRPO without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reward_kit.integrations.rehearsal import rehearse, training_prompts


def stored(file: Path, *answers: tuple[str, str, str]) -> Path:
    rows = [
        {"id": name, "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": said}],
         "ground_truth": truth}
        for name, said, truth in answers
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_answers_of_a_prompt_are_one_group(tmp_path: Path) -> None:
    file = stored(tmp_path / "a.jsonl", ("a", "7", "7"), ("b", "1", "2"), ("a", "8", "7"), ("b", "3", "2"))
    found = rehearse(file, "math", workers=0)
    first, second = found.groups
    assert (first.id, first.rewards, second.rewards) == ("a", [1.0, 0.0], [0.0, 0.0])
    assert first.advantages == pytest.approx([0.7071, -0.7071], abs=1e-3) and second.advantages == [0.0, 0.0]
    assert (first.teaches, second.teaches, found.teaching, found.failed) == (True, False, 1, 0)
    assert found.lines()[-1] == "1 of 2 prompts teach something, mean reward 0.250"


def test_what_cannot_be_judged_is_counted_and_is_no_zero(tmp_path: Path) -> None:
    def fussy(response: str, **kwargs: Any) -> float:
        if response == "?!":
            raise ValueError("no")
        return float(response)

    found = rehearse(stored(tmp_path / "a.jsonl", ("a", "1", ""), ("a", "?!", ""), ("a", "0", "")), fussy, workers=0)
    assert found.groups[0].rewards == [1.0, None, 0.0] and found.failed == 1
    assert "not judged" in found.lines()[1] and found.lines()[-1].endswith("1 answers not judged")


def test_rows_as_a_trainer_takes_them(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text('{"id": "x", "user_query": "2 + 2?", "ground_truth": "4", "level": "easy"}\n')
    (row,) = training_prompts(file, system_prompt="Be brief.")
    assert row == {
        "prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}],
        "ground_truth": "4",
        "level": "easy",
    }
