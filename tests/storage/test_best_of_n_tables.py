# SPDX-License-Identifier: Apache-2.0
"""Experiments as Parquet: the columns people know, readable by their tools, whole or not there at all."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.analysis.loading import load
from reward_kit.errors import StorageError
from reward_kit.models import EvaluateResult, Failure, Message, Record, Rollout, Sample, Usage
from reward_kit.storage import best_of_n_tables
from reward_kit.storage.best_of_n_tables import (
    COLUMNS,
    Verification,
    experiment_row,
    read_metadata,
    write_parquet,
)
from reward_kit.storage.candidates import read_queries
from reward_kit.storage.row_json import json_line
from reward_kit.storage.samples import Samples
from reward_kit.storage.tables import entry_of
from reward_kit.utils.checksums import check_parquet

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

CONTRACT = {
    "query_id", "split", "query", "ground_truth", "candidate_idx", "response", "reasoning", "is_verified", "score",
    "verifier", "verification_reason", "error", "model", "finish_reason", "prompt_tokens", "completion_tokens", "cost",
    "latency_ms", "generated_at",
}  # fmt: skip
NOWHERE = Samples(Path("/nowhere"), read_only=True)
HOW = {"math": Verification("math"), "code": Verification("code", 0.5)}
BROKEN = Failure(stage="score", type="RewardError", message="no verdict")


def line(number: int, draw: int, split: str = "math", score: float | None = 1.0, **answer: Any) -> bytes:
    sample = Sample(
        id=f"q{number}", messages=[Message(role="user", content=f"{number}?")], ground_truth=number, split=split,
        position=number,
    )  # fmt: skip
    rollout = Rollout(
        sample=sample,
        response_index=draw,
        turns=[Message(role="assistant", **{"content": f"It is {number}.", **answer})],
        model="m",
        usage=Usage(prompt_tokens=5, completion_tokens=7) if draw == 0 else None,
        cost=0.25,
        generated_at="2026-11-15T10:00:00.000+00:00",
    )
    verdict = BROKEN if score is None else EvaluateResult(score=score, reason="because")
    entry = entry_of(record := Record.of(rollout, verdict), "ab", experiment_row(record))
    return entry.head.line(entry.body)


def lines() -> list[bytes]:
    """Two queries of each split with two candidates, one of them without a verdict."""
    scores = iter([1.0, 0.0, None, 0.0, 0.5, 0.4, 1.0, None])
    return [
        line(number, draw, split, next(scores))
        for number, split in enumerate(("math", "math", "code", "code"))
        for draw in (0, 1)
    ]


def table(path: Path, given: Iterable[bytes] | None = None) -> Any:
    from pyarrow import parquet

    write_parquet(lines() if given is None else given, path, {"model": "m", "notes": "what\nand why"}, HOW, NOWHERE)
    return parquet.read_table(path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "made" / "run.parquet"
    table(path)
    return path


def test_the_columns_are_those_of_the_contract(file: Path) -> None:
    from pyarrow import parquet

    found = parquet.read_table(file)
    assert set(found.column_names) >= CONTRACT
    assert found.column_names == [column.name for column in COLUMNS]
    assert found.schema.field("is_verified").type == pa.bool_()
    rows = found.to_pylist()
    assert [row["is_verified"] for row in rows] == [True, False, None, False, True, False, True, None]
    assert [row["candidate_idx"] for row in rows] == [0, 1] * 4
    assert rows[0]["query"] == "0?" and rows[0]["ground_truth"] == "0" and rows[0]["response"] == "It is 0."
    assert rows[2] | {"score": None, "error": "RewardError: no verdict", "error_stage": "score"} == rows[2]
    assert (rows[0]["prompt_tokens"], rows[1]["prompt_tokens"]) == (5, None)


def test_the_metadata_is_read_as_people_read_it(file: Path) -> None:
    from pyarrow import parquet

    metadata = parquet.read_table(file).schema.metadata
    assert metadata[b"model"].decode() == "m"
    assert metadata[b"notes"].decode() == "what\nand why"
    assert read_metadata(file) == {"model": "m", "notes": "what\nand why"}


def test_pandas_reads_it_and_the_usual_snippets_work(file: Path) -> None:
    pd = pytest.importorskip("pandas")
    df = pd.read_parquet(file)
    assert df.groupby("split")["is_verified"].mean().to_dict() == pytest.approx({"code": 2 / 3, "math": 1 / 3})
    assert df[df.candidate_idx == 0]["is_verified"].mean() == 1.0
    assert df.groupby("query_id")["is_verified"].max().mean() == 0.75
    assert df[df["is_verified"]].shape[0] == 3
    other = pd.read_parquet(file)
    both = df.merge(other, on=["query_id", "candidate_idx"], suffixes=["_baseline", "_improved"])
    both["improved"] = both["is_verified_improved"] > both["is_verified_baseline"]
    assert both.groupby("split_baseline")["improved"].mean().to_dict() == {"code": 0.0, "math": 0.0}
    assert len(df.merge(other, on="query_id")) == 16
    assert df["cost"].sum() == 2.0


def test_polars_reads_it(file: Path) -> None:
    pl = pytest.importorskip("polars")
    df = pl.read_parquet(file)
    rates = dict(df.group_by("split").agg(pl.col("is_verified").mean()).iter_rows())
    assert rates == pytest.approx({"code": 2 / 3, "math": 1 / 3})
    assert df.filter(pl.col("is_verified").is_null()).height == 2


def test_duckdb_reads_it(file: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = f"select split, avg(is_verified::int), count(*) from '{file}' group by split order by split"
    assert duckdb.sql(query).fetchall() == [("code", pytest.approx(2 / 3), 4), ("math", pytest.approx(1 / 3), 4)]
    assert len(duckdb.sql(f"select * from '{file}'").fetchall()) == 8


def test_reasoning_is_told_apart_from_the_answer(tmp_path: Path) -> None:
    given = [
        line(0, 0, content="<think>Hm.</think>\n\nIt is 4."),
        line(0, 1, content="It is 4.", reasoning_content="Hm."),
        line(0, 2, content="<think>On and on", reasoning_content="First."),
        line(0, 3, content="It is < 4."),
    ]
    rows = table(tmp_path / "a.parquet", given).to_pylist()
    assert [(row["response"], row["reasoning"]) for row in rows] == [
        ("It is 4.", "Hm."),
        ("It is 4.", "Hm."),
        ("", "First.\n\nOn and on"),
        ("It is < 4.", None),
    ]


def test_many_rows_are_written_in_groups_and_few_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    monkeypatch.setattr(best_of_n_tables, "_LINES_AT_ONCE", 10)
    monkeypatch.setattr(best_of_n_tables, "_BYTES_PER_GROUP", 5_000)
    taken = 0

    def counted() -> Iterator[bytes]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield line(number, 0)

    assert write_parquet(counted(), tmp_path / "a.parquet", {}, HOW, NOWHERE) == taken == 1000
    with parquet.ParquetFile(tmp_path / "a.parquet") as found:
        assert found.num_row_groups > 20
        assert found.read(["query_id"]).column(0).to_pylist() == [f"q{number}" for number in range(1000)]


def test_an_old_file_stays_until_the_new_one_is_whole(file: Path) -> None:
    before = file.read_bytes()

    def broken() -> Iterator[bytes]:
        yield line(0, 0)
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match=r"No space left on device.*are safe in the run directory"):
        write_parquet(broken(), file, {}, HOW, NOWHERE)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == [file.name]


def test_no_lines_make_an_empty_table(tmp_path: Path) -> None:
    assert table(tmp_path / "a.parquet", []).num_rows == 0


def test_the_same_lines_make_the_same_bytes(tmp_path: Path) -> None:
    table(tmp_path / "a.parquet")
    table(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


plain = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text() | st.lists(st.text(), max_size=2)


@given(
    truth=plain | st.dictionaries(st.text(max_size=3), plain, max_size=2),
    content=st.text(),
    reason=st.none() | st.text(),
    columns=st.dictionaries(st.text(max_size=3), plain, max_size=2),
)
def test_any_row_comes_through(truth: Any, content: str, reason: str | None, columns: dict[str, Any]) -> None:
    sample = Sample(
        id="q", messages=[Message(role="user", content=content)], ground_truth=truth, split="math", columns=columns
    )
    rollout = Rollout(sample=sample, response_index=0, turns=[Message(role="assistant", content=content)])
    entry = entry_of(
        record := Record.of(rollout, EvaluateResult(score=1.0, reason=reason)), "ab", experiment_row(record)
    )
    (row,) = best_of_n_tables._rows([entry.head.line(entry.body)], HOW, NOWHERE)
    batch = pa.array([row[5]], pa.string())
    assert batch.to_pylist()[0] == (truth if truth is None or isinstance(truth, str) else json_line_text(truth))
    assert row[2] == content and row[13] == reason


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), plain, st.text(max_size=3)), max_size=8))
def test_what_is_read_once_of_a_sample_is_read_right(told: list[tuple[str, Any, str]]) -> None:
    given = []
    for number, (prompt, truth, response) in enumerate(told):
        sample = Sample(id=f"q{number % 2}", messages=[Message(role="user", content=prompt)], ground_truth=truth)
        answer = Message(role="assistant", content=f'{response},"response":,"split":"x"')
        rollout = Rollout(sample=sample, response_index=number, turns=[answer])
        entry = entry_of(record := Record.of(rollout, BROKEN), "ab", experiment_row(record))
        given.append(entry.head.line(entry.body))
    together = list(best_of_n_tables._rows(given, HOW, NOWHERE))
    assert together == [row for line in given for row in best_of_n_tables._rows([line], HOW, NOWHERE)]


def json_line_text(value: Any) -> str:
    return json_line(value).decode().removesuffix("\n")


def test_what_is_no_parquet_has_no_metadata(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 or not")
    assert read_metadata(tmp_path / "a.parquet") is None
    assert read_metadata(tmp_path / "none.parquet") is None


def test_every_flip_in_the_footer_or_its_seal_is_found(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(lines(), path, {"id": "x"}, HOW, NOWHERE)
    assert check_parquet(path) is check_parquet(path, pages=True) is True
    whole = path.read_bytes()
    start = whole.rindex(b"\nreward-kit check:")
    dice = random.Random(13)
    for _ in range(400):
        place = dice.randrange(start, len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << dice.randrange(8)]) + whole[place + 1 :])
        is_in_the_seal = place < start + len("\nreward-kit check:12345678:12345678\n")
        assert not check_parquet(path) or (is_in_the_seal and not check_parquet(path, pages=True)), place
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    assert check_parquet(path) is True
    assert check_parquet(path, pages=True) is False


def test_a_damaged_table_is_never_given_to_arrow_which_may_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(lines(), path, {"id": "x"}, HOW, NOWHERE)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
    for read in (load, lambda path: list(read_queries(path)), read_metadata):
        with pytest.raises(StorageError, match=r"'.*t\.parquet' is damaged"):
            read(path)


def test_a_table_of_another_tool_is_read_without_a_checksum(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"query_id": ["a"], "is_verified": [True]}), path)
    assert check_parquet(path) is None
    assert load(path).queries == 1


def test_what_belongs_to_the_sample_stands_together_before_the_answer() -> None:
    """Making the table reads it once per query, and finds it between these two columns."""
    results = Path(__file__).parents[1] / "golden" / "best_of_n" / "table.run" / "results.jsonl"
    for line in map(orjson.loads, results.read_bytes().splitlines()):
        columns = list(line)
        sample = columns[columns.index("split") : columns.index("response")]
        assert sample == ["split", "query", "messages", "tools", "ground_truth", "columns"]
        assert not {"split", "response"} & set(columns[columns.index("response") + 1 :])
