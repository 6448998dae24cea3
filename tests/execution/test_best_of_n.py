# SPDX-License-Identifier: Apache-2.0
"""Experiments from rows to Parquet: verified by split, in a stable order, resumable, and never overwritten silently."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import DatasetError, StorageError
from reward_kit.execution.best_of_n import BestOfN, ExperimentResult
from reward_kit.execution.best_of_n.experiment import load_experiment
from tests.generation.loopback import Reaction, answer
from tests.loopback.endpoint import honest, serving
from tests.loopback.experiments import ROWS, dataset, experiment, math_row, write_lines
from tests.loopback.faults import some
from tests.loopback.zygote import Zygote

parquet = pytest.importorskip("pyarrow.parquet")

TIMES = ("latency_ms", "generated_at")
KILLED = -signal.SIGKILL


def run(values: dict[str, Any], **options: Any) -> ExperimentResult:
    return BestOfN(load_experiment(values), config_file="a.yaml").run(**options)


def rows(values: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(values["output"]).to_pylist()
    return [{name: value for name, value in row.items() if name not in TIMES} for row in found]


def without_usage(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Which candidates shared a request is not the same after a kill, and is told."""
    told = ("prompt_tokens", "completion_tokens")
    return [{name: value for name, value in row.items() if name not in told} for row in found]


def metadata(values: dict[str, Any]) -> dict[str, str]:
    found = parquet.read_schema(values["output"]).metadata
    return {name.decode(): value.decode() for name, value in found.items()}


def verdicts(values: dict[str, Any], split: str) -> list[bool | None]:
    return [row["is_verified"] for row in rows(values) if row["split"] == split]


def test_each_split_is_verified_in_its_own_way(tmp_path: Path) -> None:
    values = experiment(tmp_path)
    result = run(values)
    assert verdicts(values, "math") == [True, False, False] * 3
    assert verdicts(values, "code") == [True, False, None] * 3
    assert verdicts(values, "tool_calling") == [True, False, False] * 3
    by_key = {(row["query_id"], row["candidate_idx"]): row for row in rows(values)}
    assert by_key["math-0", 0]["reasoning"] == "Add 0." and by_key["math-0", 0]["response"] == "It is \\boxed{1}."
    assert by_key["math-0", 1]["reasoning"] == "Thought apart."
    assert by_key["code-0", 2]["error"].startswith("RewardError: 'runs' raised ValueError: it breaks")
    assert by_key["tool_calling-0", 0]["tool_calls"].count("look_up") == 1
    assert {row["split"]: row["verifier"] for row in rows(values)} == {
        "math": "math",
        "code": "tests.loopback.experiments:runs",
        "tool_calling": "tests.loopback.experiments:calls",
    }
    assert result.run.summary["splits"]["code"]["failed"] == 3


def test_columns_are_mapped_and_prompts_made_as_in_a_run(tmp_path: Path) -> None:
    values = experiment(tmp_path) | {"splits": "math", "verifiers": {}, "prompt_template": "Please: {{ frage }}"}
    values["dataset"] = str(write_lines(tmp_path / "math.jsonl", [{"frage": "What is 2 + 2?", "antwort": "4"}]))
    values["column_mapping"] = {"user_query": "frage", "ground_truth": "antwort"}
    run(values)
    assert {(row["query"], row["ground_truth"]) for row in rows(values)} == {("Please: What is 2 + 2?", "4")}


def test_synchronous_verifiers_do_not_hold_up_the_event_loop(tmp_path: Path) -> None:
    values = experiment(tmp_path)
    run(values)
    judges = {row["verification_reason"] for row in rows(values) if row["split"] == "tool_calling"}
    assert judges and f"process {os.getpid()}" not in judges


def test_what_an_experiment_does_not_say_is_empty_and_not_missing(tmp_path: Path) -> None:
    values = experiment(tmp_path, temperature=None, notes=None, max_queries=1)
    BestOfN(load_experiment(values)).run()
    known = metadata(values)
    assert (known["notes"], known["config_file"], known["temperature"]) == ("", "", "")


def test_everything_needed_to_repeat_it_is_in_the_metadata(tmp_path: Path) -> None:
    values = experiment(tmp_path, notes="Does the first win?\nYes.", max_queries=2)
    run(values)
    known = metadata(values)
    told = {
        "model": "mock", "num_candidates": "3", "temperature": "0.7", "splits": "math,code,tool_calling",
        "total_records": "18", "config_file": "a.yaml", "notes": "Does the first win?\nYes.", "max_queries": "2",
        "complete": "true",
    }  # fmt: skip
    assert known | told == known
    assert {"generated_at", "config", "run", "made_by", "verifiers", "reward_kit_version"} <= known.keys()
    assert load_experiment(json.loads(known["config"])) == load_experiment(values)


def test_the_order_does_not_depend_on_who_answers_first(tmp_path: Path) -> None:
    tables = []
    for concurrency in (1, 8):
        home = tmp_path / str(concurrency)
        values = experiment(home, mock="tests.loopback.experiments:uneven_answer", concurrency=concurrency)
        run(values)
        tables.append([{**row, "verification_reason": None} for row in rows(values)])  # which names a process
    assert tables[0] == tables[1]
    assert [row["query_id"] for row in tables[0]][::3] == [f"{split}-{n}" for split in ROWS for n in range(3)]
    journal = (tmp_path / "8" / "results" / "run.run" / "rollouts.jsonl").read_text()
    assert journal.index('"math-0"') < journal.index('"code-0"')


def test_entering_again_asks_nobody_and_changes_nothing(tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        values = experiment(tmp_path, model="m", base_url=endpoint.api_base)
        run(values)
        before, asked = Path(values["output"]).read_bytes(), len(endpoint.requests)
        again = run(values)
        assert (again.run.counters.generated, again.run.counters.scored) == (0, 0)
        assert len(endpoint.requests) == asked
    assert Path(values["output"]).read_bytes() == before


def test_rows_without_ids_are_the_same_queries_in_every_process(tmp_path: Path) -> None:
    given = [{name: value for name, value in math_row(n).items() if name != "uuid"} for n in range(3)]
    values = experiment(tmp_path, dataset=str(write_lines(tmp_path / "d.jsonl", given)), splits="math", verifiers={})
    assert Zygote().run(experiment=values) == 0
    ids = {row["query_id"] for row in rows(values)}
    assert len(ids) == 3
    assert run(values).run.counters.generated == 0
    assert {row["query_id"] for row in rows(values)} == ids


def test_growing_pays_only_for_what_is_new(tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        values = experiment(tmp_path, model="m", base_url=endpoint.api_base, max_queries=1, num_candidates=2)
        run(values)
        small = rows(values)
        endpoint.requests.clear()
        larger = {**values, "max_queries": 2, "num_candidates": 3}
        result = run(larger)
    assert result.run.counters.generated == 3 * 2 * 3 - 3 * 2
    kept = [row for row in rows(larger) if row["query_id"].endswith("0") and row["candidate_idx"] < 2]
    assert kept == small
    assert [row["query_id"] for row in rows(larger)][::3] == [f"{split}-{n}" for split in ROWS for n in range(2)]
    assert (metadata(larger)["num_candidates"], metadata(larger)["total_records"]) == ("3", "18")


def test_new_notes_reach_a_finished_table(tmp_path: Path) -> None:
    values = experiment(tmp_path, splits="math", verifiers={})
    run(values)
    run({**values, "notes": "afterthought"})
    assert metadata(values)["notes"] == "afterthought"


def test_a_table_that_is_lost_is_made_again_without_asking_anyone(tmp_path: Path) -> None:
    values = experiment(tmp_path)
    run(values)
    before = rows(values)
    Path(values["output"]).unlink()
    assert run(values).run.counters.generated == 0
    assert rows(values) == before


def test_somebody_elses_table_is_left_alone(tmp_path: Path) -> None:
    values = experiment(tmp_path, splits="math", verifiers={})
    output = Path(values["output"])
    output.parent.mkdir()
    output.write_bytes(b"precious")
    with pytest.raises(StorageError, match=r"was not made by this experiment.*--overwrite"):
        run(values)
    assert output.read_bytes() == b"precious" and not (output.parent / "run.run").exists()
    run(values, overwrite=True)
    assert len(rows(values)) == 9


def test_another_experiment_in_the_same_place_is_refused_and_can_begin_anew(tmp_path: Path) -> None:
    values = experiment(tmp_path, splits="math", verifiers={})
    run(values)
    other = {**values, "temperature": 1.0}
    with pytest.raises(StorageError, match=r"generation.temperature: 0.7 then, 1.0 now"):
        run(other)
    assert metadata(values)["temperature"] == "0.7"
    run(other, overwrite=True)
    assert metadata(values)["temperature"] == "1.0"
    assert (tmp_path / "results" / "run.run.1" / "rollouts.jsonl").exists(), "what was paid for is kept"


def test_old_answers_can_be_verified_again_by_somebody_else(tmp_path: Path) -> None:
    values = experiment(tmp_path, splits="code", verifiers={"code": "tests.loopback.experiments:runs"})
    run(values)
    other = {**values, "verifiers": {"code": "tests.loopback.rewards:quick"}}
    with pytest.raises(StorageError, match="holds results made with other settings"):
        run(other)
    assert run(other, rescore=True).run.counters.generated == 0
    assert {row["verifier"] for row in rows(other)} == {"tests.loopback.rewards:quick"}


def test_a_misspelt_split_costs_nothing(tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        values = experiment(tmp_path, model="m", base_url=endpoint.api_base, splits="math,maths")
        values["verifiers"] = {"maths": "math"}
        values["dataset"] = str(write_lines(tmp_path / "d.jsonl", [math_row(n) for n in range(3)]))
        with pytest.raises(DatasetError, match="has no row of split 'maths'"):
            run(values)
        assert not endpoint.requests


def test_the_plan_counts_each_split_and_asks_nobody(tmp_path: Path) -> None:
    prices = {"m": {"input": 1.0, "output": 10.0}}
    with serving(honest) as endpoint:
        values = experiment(tmp_path, model="m", base_url=endpoint.api_base, prices=prices, max_tokens=100)
        some = {**values, "max_queries": 1, "num_candidates": 2}
        run(some)
        asked = len(endpoint.requests)
        plans = BestOfN(load_experiment(values)).plan()
        assert len(endpoint.requests) == asked
    assert list(plans) == list(ROWS)
    plan = plans["math"]
    assert (plan.rows, plan.rollouts, plan.on_disk, plan.answers_to_generate, plan.requests) == (3, 9, 2, 7, 3)
    assert plan.completion_tokens == 700
    assert plan.cost == pytest.approx((plan.most_prompt_tokens * 1.0 + 700 * 10.0) / 1e6)


def test_what_it_cost_is_told_by_split_and_a_limit_is_kept(tmp_path: Path) -> None:
    def priced(body: dict[str, Any], number: int) -> Reaction:
        return answer(*["x"] * body.get("n", 1), prompt_tokens=1000, completion_tokens=1000)

    prices = {"m": {"input": 1.0, "output": 1.0}}
    with serving(priced) as endpoint:
        values = experiment(
            tmp_path, model="m", base_url=endpoint.api_base, prices=prices, max_cost=0.0105, concurrency=1,
            max_tokens=100,
        )  # fmt: skip
        stopped = run(values)
        assert stopped.run.status == "stopped" and metadata(values)["complete"] == "false"
        assert float(metadata(values)["cost"]) <= 0.0105
        finished = run({**values, "max_cost": 1.0})
    splits = finished.run.summary["splits"]
    assert {split: round(figures["cost"] or 0, 6) for split, figures in splits.items()} == dict.fromkeys(ROWS, 0.006)
    assert float(metadata(values)["cost"]) == pytest.approx(0.018)
    assert sum(row["cost"] for row in rows(values)) == pytest.approx(0.018)


# ── kill -9 ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def processes() -> Zygote:
    return Zygote()


def points(size: int, seed: int) -> list[dict[str, int]]:
    dice = random.Random(seed)
    return [
        *({"bytes": dice.randint(1, size)} for _ in range(7)),
        *({"operation": dice.randint(2, 22)} for _ in range(5)),
    ]


def test_an_experiment_killed_anywhere_makes_the_same_table(tmp_path: Path, processes: Zygote) -> None:
    both = {"math": "tests.loopback.rewards:quick", "code": "tests.loopback.experiments:runs"}
    quiet = experiment(tmp_path, splits="math,code", verifiers=both, dataset=dataset(tmp_path, 4))
    assert processes.run(experiment=quiet) == 0
    expected, facts = without_usage(rows(quiet)), metadata(quiet)
    size = sum((tmp_path / "results" / "run.run" / name).stat().st_size for name in ("rollouts.jsonl", "results.jsonl"))
    kills = 0
    for number, point in enumerate(some(points(size, seed=5), 4, "experiments")):
        values = {**quiet, "output": str(tmp_path / f"killed{number}" / "run.parquet")}
        kills += processes.run(experiment=values, die_at=point) == KILLED
        assert processes.run(experiment=values) == 0, point
        assert without_usage(rows(values)) == expected, point
        assert metadata(values)["total_records"] == facts["total_records"]
        left = sorted(path.name for path in Path(values["output"]).parent.iterdir())
        assert left == ["run.parquet", "run.run"], point
        shutil.rmtree(Path(values["output"]).parent)
    assert kills >= 3


# ── a judge, and the two phases ──────────────────────────────────────────────────────────────────────────────────────


def judge_of_short_answers(body: dict[str, Any], _: int) -> Reaction:
    """A judge that gives 10 where the answer it is shown holds `\\boxed{1}`, else 1."""
    assert body["model"] == "grader"
    return answer("VERDICT: 10" if "boxed{1}" in str(body["messages"]) else "VERDICT: 1")


def judged(home: Path, api_base: str, **values: Any) -> dict[str, Any]:
    judge = {"model_name": "grader", "base_url": api_base, "cache": {"enabled": False}}
    who = {"math": {"function_path": "judge_reward", "pass_threshold": 0.9}}
    return experiment(home, splits="math", verifiers=who, judge=judge, **values)


def test_a_judge_can_verify_a_split_and_its_settings_are_those_of_the_results(tmp_path: Path) -> None:
    with serving(judge_of_short_answers) as endpoint:
        values = judged(tmp_path, endpoint.api_base)
        run(values)
        asked = len(endpoint.requests)
        assert asked == 9
        assert verdicts(values, "math").count(True) == 1
        assert run(values).run.judged == 9
        assert len(endpoint.requests) == asked, "what was judged is not judged again"
        with pytest.raises(StorageError, match="judge"):
            run(judged(tmp_path, endpoint.api_base) | {"judge": {**values["judge"], "temperature": 1.0}})
    known = json.loads(metadata(values)["config"])
    assert known["judge"]["model_name"] == "grader"


def test_an_experiment_without_a_judge_says_nothing_of_one(tmp_path: Path) -> None:
    values = experiment(tmp_path)
    run(values)
    assert "judge" not in json.loads(metadata(values)["config"])


def test_generated_first_and_verified_later_is_the_same_table(tmp_path: Path) -> None:
    at_once, later = (experiment(tmp_path / home, splits="math", verifiers={}) for home in "ab")
    run(at_once)
    assert run(later, phase="inference").parquet is None
    assert not Path(later["output"]).exists()
    shutil.rmtree(tmp_path / "b" / "data")
    assert run(later, phase="execution").parquet == Path(later["output"])
    assert rows(later) == rows(at_once)
