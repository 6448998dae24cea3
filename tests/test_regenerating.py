# SPDX-License-Identifier: Apache-2.0
"""New answers to stored prompts, compared with the old ones in pairs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import DatasetError
from reward_kit.evaluation import evaluate, regenerate
from reward_kit.execution.result import RunResult

pytest.importorskip("pyarrow")

RULES: dict[str, Any] = {
    "mock": {"rules": [{"pattern": r"(\d+) \+ 0", "response": [r"It is \1.", "It is 99."]}]},
    "cache": {"enabled": False},
}


def conversation(number: int, said: str) -> dict[str, Any]:
    asked = {"role": "user", "content": f"What is {number} + 0?"}
    return {
        "id": f"q{number}",
        "messages": [asked, {"role": "assistant", "content": said}],
        "ground_truth": str(number),
        "level": "easy",
    }


def test_old_and_new_answers_are_paired_by_prompt() -> None:
    stored = [conversation(number, said) for number in range(1, 21) for said in ("It is 98.", "It is 97.")]
    found = regenerate(stored, "math", model="mock", generation=RULES)
    assert (found.old.mean_score, found.new.mean_score) == (0.0, 1.0)
    (pairing,) = found.comparison.pairings
    assert (pairing.common, pairing.only_baseline, pairing.only_other) == (20, 0, 0)
    assert pairing.gained == 20
    assert "new is better than old" in found.conclusion, found.conclusion
    assert len(list(found.old.rows())) == 40 and len(list(found.new.rows())) == 20


def test_the_columns_of_stored_rows_reach_the_reward_on_both_sides(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(conversation(number, "It is 1.")) + "\n" for number in (1, 2)))

    def easy(response: str, ground_truth: str, level: str, **kwargs: Any) -> float:
        return float(level == "easy" and ground_truth in response)

    found = regenerate(file, easy, model="mock", n=2, output_dir=tmp_path / "out", generation=RULES)
    assert (found.old.mean_score, found.new.mean_score) == (0.5, 0.5)
    assert found.old.output_dir == tmp_path / "out" / "old" and found.new.output_dir == tmp_path / "out" / "new"


def test_whoever_stops_the_judging_of_old_answers_pays_for_no_new_ones(tmp_path: Path) -> None:
    async def stops(response: str, **kwargs: Any) -> float:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.1)
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        regenerate([conversation(1, "It is 1.")], stops, model="mock", output_dir=tmp_path, generation=RULES)
    assert (tmp_path / "old").is_dir() and not (tmp_path / "new").exists()


def a_run(directory: Path, fail_every: int) -> RunResult:
    rows = [{"id": f"q{n}", "user_query": f"What is {n} + 0?", "ground_truth": str(n)} for n in (1, 2, 3)]
    failing = {"mock": {"responses": ["It is 98."], "fail_every": fail_every}, "cache": {"enabled": False}}
    return evaluate(
        rows, "math", model="mock", output_dir=directory, generation={**failing, "api_params": {"max_retries": 0}}
    )


def test_a_runs_answers_are_stored_answers(tmp_path: Path) -> None:
    assert a_run(tmp_path, fail_every=3).failed == 1
    found = regenerate(tmp_path, "math", model="mock", generation=RULES)
    assert found.old.judged == 2 == found.new.judged, "an answer that was never had is no stored answer"
    assert found.comparison.pairings[0].gained == 2


def test_without_answers_there_is_nothing_to_compare(tmp_path: Path) -> None:
    assert a_run(tmp_path, fail_every=1).failed == 3
    with pytest.raises(DatasetError, match="no stored answers"):
        regenerate(tmp_path, "math", model="mock")
