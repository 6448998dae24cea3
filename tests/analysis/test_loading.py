# SPDX-License-Identifier: Apache-2.0
"""Whatever an experiment is in, it is read as the same experiment; what is none is refused with a sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reward_kit.analysis import JudgedAnswers, load
from reward_kit.analysis.texts import one_line
from reward_kit.errors import DatasetError
from tests.analysis.experiments import rows_of, table_of, write

QUERIES = {"a": "10.1", "b": "0000", "c": "111"}
ROWS = rows_of(QUERIES, split="math") + rows_of({"a": "01"}, split="code")


class Stream:
    """Any table that speaks the Arrow stream interface, as polars and DuckDB do."""

    def __init__(self, held: pa.Table) -> None:
        self.held = held

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.held.__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]


def facts(experiment: JudgedAnswers) -> list[Any]:
    """What matters of an experiment, in an order that does not depend on how it was read."""
    names = [experiment.query_name(query) for query in range(experiment.queries)]
    counts = zip(
        names, experiment.judged.tolist(), experiment.verified.tolist(), experiment.sizes.tolist(), strict=True
    )
    return sorted(counts)


EXPECTED = [(("code", "a"), 2, 1, 2), (("math", "a"), 3, 2, 4), (("math", "b"), 4, 0, 4), (("math", "c"), 3, 3, 3)]


@pytest.mark.parametrize("form", ["parquet", "path as text", "arrow", "reader", "pandas", "stream", "experiment"])
def test_every_form_is_the_same_experiment(form: str, tmp_path: Path) -> None:
    table = table_of(ROWS)
    path = write(tmp_path / "run.parquet", table, row_group_size=3)
    sources: dict[str, Any] = {
        "parquet": path,
        "path as text": str(path),
        "arrow": table,
        "reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "pandas": table.to_pandas(),
        "stream": Stream(table),
        "experiment": load(table),
    }
    assert facts(load(sources[form])) == EXPECTED


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_rows_does_not_matter(seed: int, tmp_path: Path) -> None:
    shuffled = random.Random(seed).sample(ROWS, len(ROWS))
    experiment = load(write(tmp_path / "run.parquet", table_of(shuffled), row_group_size=4))
    assert facts(experiment) == EXPECTED
    for query in range(experiment.queries):
        rows = experiment.rows_of(query)
        assert experiment.candidate[rows].tolist() == sorted(experiment.candidate[rows].tolist())
    texts = experiment.texts.take(["query"], experiment.source_rows)["query"]
    names = [experiment.query_name(query)[1] for query in experiment.query_of_row]
    assert texts == [f"What is {name}?" for name in names]


def test_queries_keep_the_order_they_first_came_in() -> None:
    experiment = load(table_of(rows_of({"z": "1", "a": "0", "m": "1"})))
    assert experiment.query_ids.to_pylist() == ["z", "a", "m"]


def test_a_candidate_that_came_again_counts_once_and_the_last_time() -> None:
    rows = rows_of({"a": "00"}) + rows_of({"a": ".1"})
    experiment = load(table_of(rows))
    assert (experiment.records, experiment.repeated) == (2, 2)
    assert experiment.verdict.tolist() == [-1, 1]
    assert experiment.source_rows.tolist() == [2, 3]


def test_what_the_writer_noted_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "run.parquet", table_of(ROWS, model="m-1", notes="a first try", temperature="0.7"))
    assert load(path).metadata == {"model": "m-1", "notes": "a first try", "temperature": "0.7"}
    assert load(path).name == "run.parquet"
    assert load(path, name="baseline").name == "baseline"


# ── earlier vocabularies ─────────────────────────────────────────────────────────────────────────────────────────────


def test_files_with_prefixed_columns_are_read() -> None:
    old = [
        {
            "query_id": row["query_id"],
            "split": row["split"],
            "candidate_idx": row["candidate_idx"],
            "input_messages": json.dumps(
                [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]
            ),
            "output_messages": json.dumps([{"role": "assistant", "content": "4"}]),
            "ground_truth_answer": "4",
            "verification_is_verified": row["is_verified"],
            "verification_score": row["score"],
            "verification_verifier_name": "math",
            "verification_info": "compared",
        }
        for row in ROWS
    ]
    experiment = load(table_of(old))
    assert facts(experiment) == EXPECTED
    texts = experiment.texts.take(["query", "verifier", "verification_reason"], experiment.source_rows[:1])
    assert one_line(texts["query"][0], 40) == "2+2?"
    assert (texts["verifier"], texts["verification_reason"]) == (["math"], ["compared"])


def test_rows_without_ids_belong_to_the_question_they_ask() -> None:
    rows = [
        {"query_id": None, "question": text, "is_verified": right}
        for text, right in [("x", True), ("y", False), ("x", False)]
    ]
    experiment = load(table_of(rows))
    assert facts(experiment) == [(("all", "x"), 2, 1, 2), (("all", "y"), 1, 0, 1)]
    assert experiment.candidate.tolist() == [0, 1, 0]
    without_the_column = [{key: value for key, value in row.items() if key != "query_id"} for row in rows]
    assert facts(load(table_of(without_the_column))) == facts(experiment)
    with pytest.raises(DatasetError, match="neither a query_id nor the query's text"):
        load(table_of([{"query_id": None, "is_verified": True}, {"query_id": "a", "is_verified": True}]))


@pytest.mark.parametrize(
    "verdicts",
    [
        [1, 0, None],
        [1.0, 0.0, float("nan")],
        pd.array([True, False, None], dtype="boolean"),
        [np.int8(1), np.int8(0), None],
    ],
    ids=["integers", "floats", "pandas booleans", "small integers"],
)
def test_verdicts_may_be_numbers(verdicts: Any) -> None:
    frame = pd.DataFrame({"query_id": ["a", "b", "c"], "is_verified": verdicts})
    assert load(frame).verdict.tolist() == [1, 0, -1]


def test_ids_may_be_numbers() -> None:
    assert load(pa.table({"query_id": [7, 7, 8], "is_verified": [True, False, None]})).queries == 2


def test_nothing_judged_is_an_experiment_too() -> None:
    experiment = load(pa.table({"query_id": ["a", "b"], "is_verified": pa.nulls(2)}))
    assert experiment.judged.tolist() == [0, 0]


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def result(sample: str, index: int, score: float | None, **others: Any) -> dict[str, Any]:
    return {
        "schema": 1, "id": sample, "response_index": index, "status": "ok" if score is not None else "failed",
        "cost": 0.25, "user_query": f"Q {sample}", "assistant_response": "4", "evaluation_score": score,
        "is_score_valid": score is not None, "error": None if score is not None else "RewardError: it broke",
        "failure": None if score is not None else {"stage": "score", "type": "RewardError", "message": "it broke"},
        "usage": {"prompt_tokens": 3, "completion_tokens": 5}, "model": "m", "split": None,
    } | others  # fmt: skip


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_run_directory_is_an_experiment(tmp_path: Path) -> None:
    run = tmp_path / "my_run"
    run.mkdir()
    lines = [result("a", 0, 1.0), result("a", 1, 0.4), result("b", 0, None), result("b", 1, 0.9)]
    write_lines(run / "results.jsonl", lines)
    for source in (run, run / "results.jsonl"):
        experiment = load(source)
        assert experiment.name == "my_run"
        assert facts(experiment) == [(("all", "a"), 2, 1, 2), (("all", "b"), 1, 0, 2)]
    (run / "summary.json").write_text(json.dumps({"pass_threshold": 0.5, "model": "m"}))
    assert facts(load(run)) == [(("all", "a"), 2, 1, 2), (("all", "b"), 1, 1, 2)]
    assert facts(load(run, pass_threshold=0.3))[0] == (("all", "a"), 2, 2, 2)
    experiment = load(run)
    assert experiment.texts.take(["query"], experiment.source_rows)["query"] == ["Q a", "Q a", "Q b", "Q b"]
    assert experiment.numbers("completion_tokens") is not None


def test_each_split_of_a_run_has_its_own_threshold(tmp_path: Path) -> None:
    lines = [result("a", 0, 0.6, split="easy"), result("b", 0, 0.6, split="hard"), result("c", 0, 0.6)]
    write_lines(tmp_path / "results.jsonl", lines)
    told = {"pass_threshold": 0.9, "by_split": {"easy": {"pass_threshold": 0.5}}}
    (tmp_path / "config.yaml").write_text(json.dumps({"reward": told}))
    verified = [(("all", "c"), 1, 0, 1), (("easy", "a"), 1, 1, 1), (("hard", "b"), 1, 0, 1)]
    assert facts(load(tmp_path)) == verified
    (tmp_path / "config.yaml").unlink()
    summary = {"pass_threshold": 0.9, "splits": {"easy": {"pass_threshold": 0.5}}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    assert facts(load(tmp_path)) == verified
    assert facts(load(tmp_path, pass_threshold=0.6))[2] == (("hard", "b"), 1, 1, 1)


def test_a_run_that_was_cut_short_in_a_line_is_read_up_to_it(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "results.jsonl", [result("a", 0, 1.0), result("b", 0, 1.0)])
    path.write_bytes(path.read_bytes() + b'{"id": "c", "resp')
    assert [name for name, *_ in facts(load(path))] == [("all", "a"), ("all", "b")]


def test_the_results_of_a_run_in_a_data_frame_are_the_run(tmp_path: Path) -> None:
    lines = [result("a", 0, 1.0), result("a", 1, 0.4), result("b", 0, 1.0, is_score_valid=False)]
    frame = pd.read_json(write_lines(tmp_path / "results.jsonl", lines), lines=True)
    assert facts(load(frame)) == facts(load(tmp_path)) == [(("all", "a"), 2, 1, 2), (("all", "b"), 0, 0, 1)]
    assert facts(load(frame, pass_threshold=0.4))[0] == (("all", "a"), 2, 2, 2)


def test_the_results_of_a_shell_evaluation_are_read(tmp_path: Path) -> None:
    sort = {"id": "t1", "task_id": "t1", "task": "Sort", "generated_command": "sort"}
    copy = {"id": "t2", "task_id": "t2", "task": "Copy", "error": "SandboxError: gone"}
    lines: list[dict[str, Any]] = [
        sort | {"response_index": 0, "overall_success": True},
        sort | {"response_index": 1, "overall_success": False},
        copy | {"response_index": 0, "overall_success": None},
    ]
    experiment = load(write_lines(tmp_path / "results.jsonl", lines))
    assert facts(experiment) == [(("all", "t1"), 2, 1, 2), (("all", "t2"), 0, 0, 1)]
    assert experiment.texts.take(["query"], np.array([2]))["query"] == ["Copy"]


# ── what is no experiment ────────────────────────────────────────────────────────────────────────────────────────────


def whole(folder: Path) -> bytes:
    return write(folder / "whole.parquet", table_of(ROWS)).read_bytes()


def holding(content: bytes, name: str = "broken.parquet") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def parquet(table: pa.Table) -> Callable[[Path], Path]:
    return lambda folder: write(folder / "broken.parquet", table)


def halved(folder: Path) -> Path:
    return holding(whole(folder)[:2_000])(folder)


def damaged(folder: Path) -> Path:
    return holding(whole(folder)[:20] + bytes(200) + whole(folder)[220:])(folder)


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "truncated": (halved, "cannot be read as Parquet"),
    "damaged": (damaged, "cannot be read as Parquet"),
    "text": (holding(b"query_id,is_verified\n1,true\n"), "cannot be read as Parquet"),
    "zero bytes": (holding(b""), "is empty"),
    "no rows": (parquet(table_of(ROWS).slice(0, 0)), "holds no rows"),
    "foreign": (parquet(pa.table({"city": ["Oslo"]})), r"has no column 'query_id' \(it has: city\)"),
    "no verdicts": (parquet(pa.table({"query_id": ["a"], "answer": ["4"]})), "has no column 'is_verified'"),
    "verdicts as text": (
        parquet(pa.table({"query_id": ["a"], "is_verified": ["yes"]})),
        "expected true, false or null",
    ),
    "other numbers": (parquet(pa.table({"query_id": ["a"], "is_verified": [7]})), "not all 0 or 1"),
    "empty folder": (lambda folder: folder, "holds no results.jsonl"),
    "missing": (lambda folder: folder / "nowhere.parquet", "There is no file"),
    "not json": (holding(b'{"id": "a"\n', "results.jsonl"), "Line 1 of .* is not JSON"),
    "other json": (holding(b"[1, 2]\n", "results.jsonl"), "is not a result"),
    "no table": (lambda _: object(), "Cannot analyse a 'object'"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_it_is_refused_with_a_sentence(kind: str, tmp_path: Path) -> None:
    make, sentence = REFUSED[kind]
    with pytest.raises(DatasetError, match=sentence) as refusal:
        load(make(tmp_path))
    assert str(refusal.value).endswith(".")


def test_a_file_is_read_whatever_its_row_groups_and_encodings(tmp_path: Path) -> None:
    for options in ({"row_group_size": 1}, {"use_dictionary": False}, {"compression": "none", "version": "1.0"}):
        assert facts(load(write(tmp_path / "run.parquet", table_of(ROWS), **options))) == EXPECTED


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    """The response of a row that nobody looks at may be as long as it likes: here its pages are destroyed."""
    rows = rows_of({"a": "10"}, response="x" * 5_000)
    path = write(tmp_path / "run.parquet", table_of(rows), compression="none", use_dictionary=["query_id"])
    footer = pq.read_metadata(path).row_group(0)
    chunk = next(footer.column(i) for i in range(footer.num_columns) if footer.column(i).path_in_schema == "response")
    held = bytearray(path.read_bytes())
    held[chunk.data_page_offset : chunk.data_page_offset + 40] = bytes(40)
    path.write_bytes(held)
    assert load(path).verified.tolist() == [1]
