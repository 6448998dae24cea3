# SPDX-License-Identifier: Apache-2.0
"""The example of an agent in a database, run as its README says."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.examples.commands import reward_kit

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "agent_sql"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_answers_in_the_dataset_are_those_of_the_database() -> None:
    database = sqlite3.connect(":memory:")
    database.executescript((EXAMPLE / "schema.sql").read_text() + (EXAMPLE / "data.sql").read_text())
    for row in rows(EXAMPLE / "dataset.jsonl"):
        if "answer_sql" in row:
            assert str(database.execute(row["answer_sql"]).fetchone()[0]) == row["ground_truth_for_eval"], row["id"]
        else:
            assert database.execute(row["check_sql"]).fetchone() == (0,), row["id"]
    database.close()


def test_the_run_judges_every_episode_and_no_episode_sees_anothers_changes(tmp_path: Path) -> None:
    config = ["--config-path", str(EXAMPLE / "conf"), "--config-name", "run_agent_sql", f"output.output_dir={tmp_path}"]
    summary = json.loads(reward_kit("run", *config, "--json"))
    judged = {(row["id"], row["response_index"]): row["evaluation_score"] for row in rows(tmp_path / "results.jsonl")}
    assert (summary["judged"], summary["failed"], len(judged)) == (14, 0, 14)
    assert all(judged[key] == 1.0 for key in judged if key[1] == 0)  # the other one's DELETE was not seen
    careless = {key[0] for key in judged if key[1] == 1 and judged[key] == 0.0}
    assert careless == {"mugs-bought", "spent-by-ines", "best-customer", "cancel-purchase"}
    before = (tmp_path / "results.jsonl").read_bytes()
    reward_kit("run", *config, "--rescore", "--quiet")  # the worlds are played again
    assert [row["evaluation_score"] for row in rows(tmp_path / "results.jsonl")] == [*judged.values()]
    reward_kit("run", *config, "--quiet")
    assert (tmp_path / "results.jsonl").read_bytes().count(b"\n") == before.count(b"\n")


def test_the_inherited_task_is_played_with_its_own_tool(tmp_path: Path) -> None:
    task = ["agent-eval", "--task-def", str(EXAMPLE / "task.yaml"), "--model", "mock", "--output-dir", str(tmp_path)]
    told = json.loads(reward_kit(*task, "--json"))
    assert told["cancel_purchase"]["individual_scores"] == [1.0, 1.0, 0.5]
    (file,) = (tmp_path / "cancel_purchase" / "evaluation_logs").iterdir()
    summary, *individual = rows(file)
    assert summary["type"] == "summary" and len(individual) == 3
    assert {one["ended"] for one in individual} == {"stopped"}  # by `termination_regex`
    calls = individual[0]["reward_function_inputs"]["state"]["successful_func_calls"]
    assert calls == [[{"name": "cancel_purchase", "args": {"purchase_id": 7}}]]
