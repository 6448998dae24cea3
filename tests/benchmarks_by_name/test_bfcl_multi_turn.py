# SPDX-License-Identifier: Apache-2.0
"""The benchmark `bfcl_multi_turn`, with tasks of the package itself. Run by `make test-frameworks`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("bfcl_eval", reason="bfcl-eval is in .venv-frameworks: make test-frameworks")

from reward_kit.cli import main

PLAYER = "generation.mock.function_path=tests.benchmarks_by_name.gold_player:act"


def test_gold_answers_are_valid_and_mere_words_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as leave:
        main(
            ["run", "-q", "+benchmark=bfcl_multi_turn", "generation.model_name=mock", PLAYER, "generation.n=2",
             "dataset.max_samples=3"]
        )  # fmt: skip
    assert not leave.value.code
    lines = (tmp_path / "outputs" / "bfcl_multi_turn" / "mock" / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["evaluation_score"] for line in lines] == [1.0, 0.0] * 3
