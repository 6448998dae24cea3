# SPDX-License-Identifier: Apache-2.0
"""Benchmarks judge recorded answers as others have judged them: a part of the records, drawn with a seed.

The records are no part of the repository. `REWARD_KIT_RECORDS` names their folder; without it, tests are skipped.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent.environments.bfcl import task_row
from reward_kit.cli import main
from tests.execution.shell_support import require_namespaces

RECORDS = Path(os.environ.get("REWARD_KIT_RECORDS", Path(__file__).parents[3] / "shared" / "data"))
Judge = Callable[[str, list[dict[str, Any]]], list[float | None]]


def records(name: str, count: int) -> list[dict[str, Any]]:
    file = RECORDS / name
    if not file.is_file():
        pytest.skip(f"the records are not here: {name}")
    lines = file.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in random.Random(7).sample(lines, min(count, len(lines)))]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.chdir(tmp_path)

    def judged(benchmark: str, rows: list[dict[str, Any]]) -> list[float | None]:
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        with pytest.raises(SystemExit) as leave:
            main(
                ["run", "-q", f"+benchmark={benchmark}", "generation.enabled=false", "dataset.path_or_name=rows.jsonl",
                 "output.output_dir=judged"]
            )  # fmt: skip
        assert not leave.value.code
        lines = [json.loads(line) for line in (tmp_path / "judged" / "results.jsonl").read_text().splitlines()]
        return [line["evaluation_score"] for line in lines]

    return judged


def test_humaneval_passes_and_fails_the_recorded_programs(judge: Judge) -> None:
    require_namespaces()
    rows, labels = [], []
    for task in records("codet_dev.jsonl", 12):
        chosen = random.Random(task["task_id"]).sample(range(len(task["samples"])), 5)
        answers = [f"```python\n{_cut(task['samples'][at])}\n```" for at in chosen]
        columns = {name: task[name] for name in ("task_id", "prompt", "entry_point", "test")}
        rows.append({**columns, "assistant_response": answers})
        labels += [float(task["labels"][at]) for at in chosen]
    assert judge("humaneval", rows) == labels


def _cut(program: str) -> str:
    for end in ("\nclass", "\ndef", "\n#", "\nif", "\nprint"):
        program = program.split(end, maxsplit=1)[0]
    return program


def test_bfcl_accepts_and_refuses_the_recorded_calls(judge: Judge) -> None:
    graded = [record for record in records("bfcl_graded_dev.jsonl", 400) if record["valid"] is not None]
    questions = {row["question_id"]: row for row in records("bfcl_questions_dev.jsonl", 1_000_000)}
    rows = [_calls_row(record, questions[record["question_id"]]) for record in graded]
    assert judge("bfcl", rows) == [float(record["valid"]) for record in graded]


def _calls_row(record: dict[str, Any], question: dict[str, Any]) -> dict[str, Any]:
    task = {"id": record["id"], "question": question["messages"], "function": question["functions"]}
    calls = [
        {"id": f"call_{at}", "type": "function",
         "function": {"name": call["name"].replace(".", "_"), "arguments": json.dumps(call["arguments"])}}
        for at, call in enumerate(record["calls"] or [])
    ]  # fmt: skip
    said = {"role": "assistant", "content": None if calls else str(record["output_raw"]), "tool_calls": calls or None}
    row = task_row(task, question["possible_answers"], record["category"])
    return {**row, "assistant_response": [said]}


def test_gsm8k_finds_every_worked_answer_right_and_every_other_wrong(judge: Judge) -> None:
    worked = records("gsm8k_dev.jsonl", 60)
    rows = [{**row, "assistant_response": [row["answer"], "#### 123456789"]} for row in worked]
    assert judge("gsm8k", rows) == [1.0, 0.0] * 55, "five of them are shown before the questions, and not judged"
