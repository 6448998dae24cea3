# SPDX-License-Identifier: Apache-2.0
"""A corrected ground truth: the answers are kept, judged again with it, and never paid for twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.errors import StorageError
from reward_kit.execution.best_of_n import BestOfN
from reward_kit.execution.best_of_n.experiment import load_experiment
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from reward_kit.storage.run_directory import RunDirectory
from tests.loopback.endpoint import honest
from tests.loopback.killing import KILLED, KillingBench
from tests.loopback.runs import config, keys, lines, results, write_rows

TELLS = """
from reward_kit import EvaluateResult

async def tell(messages, ground_truth=None, **kwargs):
    return EvaluateResult(score=0.5, reason=str(ground_truth))
"""

SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "ground_truth": ({"user_query": "{n}?"}, {"ground_truth": "{t}"}, {}),
    "own id": ({"id": "s{n}", "user_query": "{n}?"}, {"ground_truth": "{t}"}, {}),
    "answer": ({"question": "{n}?"}, {"answer": "{t}"}, {}),
    "capitals": ({"prompt": "{n}?"}, {"ground_truth": "{t}", "Answer": "{t}"}, {}),
    "gsm8k": ({"question": "{n}?"}, {"answer": "so #### {t}"}, {}),
    "math": ({"problem": "{n}?"}, {"solution": r"so \boxed{{t}}"}, {}),
    "completion": ({"prompt": "{n}?"}, {"completion": "{t}"}, {}),
    "sharegpt": ({}, {"conversations": [{"from": "human", "value": "{n}?"}, {"from": "gpt", "value": "{t}"}]}, {}),
    "mapped": ({"user_query": "{n}?"}, {"mine": "{t}"}, {"dataset__column_mapping": {"ground_truth": "mine"}}),
    "mapped inside": (
        {"user_query": "{n}?"},
        {"meta": {"truth": "{t}", "n": 1}},
        {"dataset__column_mapping": {"ground_truth": "meta.truth"}},
    ),
}
"""Columns that stay, columns with the truth, and settings."""


def row(shape: str, number: int, truth: str) -> dict[str, Any]:
    asked, right, _ = SHAPES[shape]
    held = orjson.dumps({**asked, **right, "level": 1}).replace(b"{n}", b"%d" % number).replace(b"{t}", truth.encode())
    made: dict[str, Any] = orjson.loads(held)
    return made


def rows(shape: str, truths: list[str]) -> list[dict[str, Any]]:
    return [row(shape, number, truth) for number, truth in enumerate(truths)]


def told(home: Path, shape: str, truths: list[str], **settings: Any) -> dict[str, Any]:
    (home / "tells.py").write_text(TELLS)
    given = {"reward__function_path": f"{home / 'tells.py'}:tell", **SHAPES[shape][2], **settings}
    return config(home, rows=rows(shape, truths), **given)


def run(values: dict[str, Any], **options: Any) -> RunResult:
    return EvaluationPipeline(values, **options).run()


def reasons(home: Path, draw: int | None = None) -> list[str]:
    found = results(home)
    return [line["evaluation_reason"] for (_, index), line in found.items() if draw in (None, index)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_corrected_truth_is_judged_again_and_nothing_is_asked_again(tmp_path: Path, shape: str) -> None:
    first = run(told(tmp_path, shape, ["0", "18", "2"], generation__n=2))
    assert (first.counters.generated, first.judged, reasons(tmp_path, 0)) == (6, 6, ["0", "18", "2"])
    before = keys(lines(tmp_path / "run" / "rollouts.jsonl"))
    changed = told(tmp_path, shape, ["0", "20", "2"], generation__n=2)
    plan = EvaluationPipeline(changed).plan()
    assert (plan.requests, plan.to_score) == (0, 2)
    again = run(changed)
    assert (again.counters.generated, again.counters.judged, again.judged) == (0, 2, 6)
    assert reasons(tmp_path) == ["0", "0", "20", "20", "2", "2"]
    rollouts = lines(tmp_path / "run" / "rollouts.jsonl")
    assert keys(rollouts) == before
    assert [line["sample"]["ground_truth"] for line in rollouts] == reasons(tmp_path)
    assert run(changed).counters.judged == 0
    assert run(changed, rescore=True).counters.judged == 6, "which judges all of them"


@pytest.mark.parametrize("shape", ["ground_truth", "own id", "answer"])
def test_both_phases_see_the_corrected_truth(tmp_path: Path, shape: str) -> None:
    first = told(tmp_path, shape, ["0", "18"])
    run(first, phase="inference")
    run(first, phase="execution")
    changed = told(tmp_path, shape, ["0", "20"])
    assert run(changed, phase="inference").counters.generated == 0
    again = run(changed, phase="execution")
    assert (again.counters.judged, reasons(tmp_path)) == (1, ["0", "20"])


def test_growing_n_beside_a_corrected_truth_pays_for_the_new_draws_only(tmp_path: Path) -> None:
    run(told(tmp_path, "answer", ["0", "18"], generation__n=2))
    again = run(told(tmp_path, "answer", ["0", "20"], generation__n=3))
    assert (again.counters.generated, again.counters.judged) == (2, 4)
    assert reasons(tmp_path) == ["0"] * 3 + ["20"] * 3
    fewer = run(told(tmp_path, "answer", ["0", "21"], generation__n=1))
    assert (fewer.counters.generated, fewer.counters.judged) == (0, 3)
    assert reasons(tmp_path) == ["0"] * 3 + ["21"] * 3


def test_equal_rows_are_numbered_whatever_their_truths(tmp_path: Path) -> None:
    same = [{"question": "a?", "answer": truth} for truth in ("1", "2")]
    (tmp_path / "tells.py").write_text(TELLS)
    settings = {"reward__function_path": f"{tmp_path / 'tells.py'}:tell"}
    run(config(tmp_path, rows=same, **settings))
    names = [name for name, _ in results(tmp_path)]
    assert names == [names[0], f"{names[0]}-1"] and reasons(tmp_path) == ["1", "2"]
    again = run(config(tmp_path, rows=[same[0], {"question": "a?", "answer": "3"}], **settings))
    assert (again.counters.generated, reasons(tmp_path)) == (0, ["1", "3"])


def test_a_truth_that_is_only_written_otherwise_is_judged_again(tmp_path: Path) -> None:
    settings = told(tmp_path, "answer", ["0"])
    dataset = tmp_path / "dataset.jsonl"
    dataset.write_text('{"question": "a?", "answer": 4.5}\n')
    run(settings)
    dataset.write_text('{"question": "a?", "answer": 4.50}\n')
    assert run(settings).counters.judged == 1
    (line,) = lines(tmp_path / "run" / "rollouts.jsonl")
    assert line["sample"]["ground_truth_text"] == "4.50"
    assert run(settings, phase="execution").counters.judged == 0


@pytest.mark.parametrize("change", [{"question": "another?"}, {"level": 2}])
def test_what_else_changes_is_another_sample_or_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    settings = told(tmp_path, "answer", ["0", "1"])
    run(settings)
    write_rows(tmp_path / "dataset.jsonl", [rows("answer", ["0"])[0] | change, *rows("answer", ["0", "1"])[1:]])
    assert run(settings).counters.generated == 1
    named = [one | {"id": f"s{number}"} for number, one in enumerate(rows("answer", ["0", "1"]))]
    settings = config(tmp_path, rows=named, output__output_dir=str(tmp_path / "named"))
    run(settings)
    write_rows(tmp_path / "dataset.jsonl", [named[0] | change | {"answer": "7"}, named[1]])
    with pytest.raises(StorageError, match="'s0' has changed since"):
        run(settings)


def test_answers_in_the_data_are_judged_again_with_a_corrected_truth(tmp_path: Path) -> None:
    def given(truth: str) -> dict[str, Any]:
        (tmp_path / "tells.py").write_text(TELLS)
        made = [
            {"question": f"{number}?", "answer": right, "assistant_response": text, "response_index": draw}
            for number, right in enumerate(["0", truth])
            for draw, text in enumerate("xy")
        ]
        reward = f"{tmp_path / 'tells.py'}:tell"
        return config(tmp_path, rows=made, reward__function_path=reward, generation__enabled=False)

    run(given("18"))
    again = run(given("20"))
    assert (again.counters.judged, reasons(tmp_path)) == (2, ["0", "0", "20", "20"])


def test_groups_are_judged_again_as_a_whole(tmp_path: Path) -> None:
    def given(truth: str) -> dict[str, Any]:
        values = told(tmp_path, "answer", ["0", truth], generation__n=3)
        (tmp_path / "tells.py").write_text(
            "from reward_kit import EvaluateResult, reward_function\n"
            "@reward_function(mode='batch')\n"
            "def tell(rollouts_messages, ground_truth=None, **kwargs):\n"
            "    told = f'{len(rollouts_messages)} of {ground_truth}'\n"
            "    return [EvaluateResult(score=0.5, reason=told) for _ in rollouts_messages]\n"
        )
        return values

    run(given("18"))
    again = run(given("20"))
    assert (again.counters.generated, again.counters.judged) == (0, 3)
    assert {reason.partition(" of ")[0] for reason in reasons(tmp_path)} == {"3"}
    assert all("20" in reason for reason in reasons(tmp_path)[3:])


def test_a_directory_that_was_begun_with_former_ids_keeps_them(tmp_path: Path) -> None:
    settings = told(tmp_path, "answer", ["0", "18"])
    stream_of_old = EvaluationPipeline(settings)
    with RunDirectory(tmp_path / "run") as directory:
        directory.note("made_by", {"reward_kit": "0.4"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reward_kit.execution.claims.holds_former_ids", lambda _: True)
        stream_of_old.run()
    old = [name for name, _ in results(tmp_path)]
    grown = told(tmp_path, "answer", ["0", "18", "2"])
    assert EvaluationPipeline(grown).plan().requests == 1
    again = run(grown)
    assert (again.counters.generated, [name for name, _ in results(tmp_path)][:2]) == (1, old)
    shutil.rmtree(tmp_path / "run")
    run(grown)
    assert not {name for name, _ in results(tmp_path)} & set(old)


def test_a_corrected_truth_of_an_experiment_asks_nobody(tmp_path: Path) -> None:
    def experiment(truth: str) -> dict[str, Any]:
        problems = [{"prompt": f"{number}?", "ground_truth": right} for number, right in enumerate(["0", truth])]
        write_rows(tmp_path / "data.jsonl", problems)
        return {
            "dataset": str(tmp_path / "data.jsonl"), "splits": "math", "model": "mock", "num_candidates": 2,
            "output": str(tmp_path / "table.parquet"), "cache_dir": None,
        }  # fmt: skip

    def truths() -> list[str]:
        pq = pytest.importorskip("pyarrow.parquet")
        found: list[str] = pq.read_table(tmp_path / "table.parquet")["ground_truth"].to_pylist()
        return found

    BestOfN(load_experiment(experiment("18"))).run()
    assert truths() == ["0", "0", "18", "18"]
    again = BestOfN(load_experiment(experiment("20"))).run()
    assert (again.run.counters.generated, again.run.counters.judged) == (0, 2)
    assert truths() == ["0", "0", "20", "20"]


@pytest.mark.parametrize("die_at", [{"bytes": size} for size in range(300, 6000, 900)])
def test_a_judging_that_is_killed_goes_on_with_the_corrected_truth(tmp_path: Path, die_at: dict[str, int]) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    with KillingBench(tmp_path, honest) as bench:

        def settings(truths: list[str]) -> dict[str, Any]:
            write_rows(tmp_path / "dataset.jsonl", rows("answer", truths))
            reward = f"{tmp_path / 'tells.py'}:tell"
            return bench.run_settings("run", n=3, at_once=2, cache=False, reward__function_path=reward)

        assert bench.enter(settings(["0", "1", "2"])) == 0
        assert len(bench.asked()) == 9
        changed = settings(["5", "6", "2"])
        killed = bench.enter(changed, die_at)
        assert killed in (0, KILLED)
        assert bench.enter(changed) == 0
        assert not bench.asked()
        assert reasons(tmp_path) == ["5"] * 3 + ["6"] * 3 + ["2"] * 3
        rollouts = lines(tmp_path / "run" / "rollouts.jsonl")
        assert [line["sample"]["ground_truth"] for line in rollouts] == reasons(tmp_path)
