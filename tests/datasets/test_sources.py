# SPDX-License-Identifier: Apache-2.0
"""Rows out of files and memory, as they are; bad ones named by file, line and reason."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_samples
from reward_kit.datasets.huggingface import HuggingFaceSource
from reward_kit.datasets.rows import BadRows, Row
from reward_kit.datasets.sources import CsvSource, JsonlSource, MemorySource, ParquetSource, open_source
from reward_kit.errors import DatasetError

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=4)


def read(source: Any, *, skip: bool = False) -> tuple[list[Row], BadRows]:
    bad = BadRows(skip=skip)
    return list(source.rows(bad)), bad


def columns(source: Any) -> list[dict[str, Any]]:
    return [row.columns for row in read(source)[0]]


# ── JSON lines ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    rows=st.lists(OBJECTS, max_size=5),
    packed=st.booleans(),
    ending=st.sampled_from(["\n", "\r\n", "\n\n"]),
    bom=st.booleans(),
)
def test_jsonl_comes_back_as_it_was_written(
    rows: list[dict[str, Any]], packed: bool, ending: str, bom: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = (b"\xef\xbb\xbf" if bom else b"") + "".join(json.dumps(row) + ending for row in rows).encode()
    path = tmp_path_factory.mktemp("jsonl") / ("a.jsonl.gz" if packed else "a.jsonl")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert columns(JsonlSource([path])) == rows


@given(before=st.lists(st.sampled_from(["{}", "", "  "]), max_size=20))
def test_a_bad_line_is_named_by_its_number(before: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("bad") / "a.jsonl"
    path.write_text("\n".join([*before, "{nonsense", "{}"]))
    with pytest.raises(DatasetError, match=rf"a\.jsonl', line {len(before) + 1}: not valid JSON.*on_bad_row=skip"):
        read(JsonlSource([path]))
    rows, bad = read(JsonlSource([path]), skip=True)
    assert (len(rows), bad.count) == (before.count("{}") + 1, 1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": "\xff"}', "not UTF-8 text"),
        (b"[1, 2]", "expected a JSON object, found a list; this is a JSON document"),
        (b"[", ".*this is a JSON document, not JSON lines"),
        (b"7", "expected a JSON object, found 7"),
        (b'{"a": NaN}', "not valid JSON"),
        (b'{"a": NaN, "b": 12345678901234567890123}', "not valid JSON"),
        (b'{"a": 1} {"a": 2}', "not valid JSON"),
    ],
)
def test_what_is_not_an_object_is_a_bad_row(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line + b"\n")
    with pytest.raises(DatasetError, match=f"line 2: {reason}"):
        read(JsonlSource([path]))


def test_integers_keep_every_digit(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"a": 3**100, "b": -(2**64) - 1}))
    assert columns(JsonlSource([path])) == [{"a": 3**100, "b": -(2**64) - 1}]


def test_a_cut_gzip_file_is_an_error_and_not_a_short_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 10_000)[:-20])
    with pytest.raises(DatasetError, match="to its end"):
        read(JsonlSource([path]), skip=True)


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)


@given(rows=st.lists(st.tuples(CELLS, CELLS), max_size=5), suffix=st.sampled_from([".csv", ".tsv"]))
def test_csv_comes_back_as_text_and_an_empty_cell_is_an_empty_text(
    rows: list[tuple[str, str]], suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("csv") / f"a{suffix}"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",").writerows([("x", "y"), *rows])
    assert columns(CsvSource([path])) == [{"x": x, "y": y} for x, y in rows]


@pytest.mark.parametrize(
    ("row", "reason"),
    [(b"1,2,3", "3 cells where the header has 2"), (b'"a"b,2', "not valid CSV"), (b"\xff,2", "not UTF-8 text")],
)
def test_a_bad_csv_row_is_named_by_its_line(tmp_path: Path, row: bytes, reason: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'x,y\r\n"two\nlines",1\r\n' + row + b"\r\n5,6\r\n")
    with pytest.raises(DatasetError, match=f"line 4: {reason}"):
        read(CsvSource([path]))
    rows, bad = read(CsvSource([path]), skip=True)
    assert ([row.number for row in rows], bad.count) == ([2, 5], 1)


@pytest.mark.parametrize("header", ["x,x", "x,"])
def test_csv_columns_need_names_of_their_own(tmp_path: Path, header: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n1,2\n")
    with pytest.raises(DatasetError, match="a name of its own"):
        read(CsvSource([tmp_path / "a.csv"]), skip=True)


def test_a_long_csv_cell_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "long" * 100_000 + "\n")
    assert len(columns(CsvSource([tmp_path / "a.csv"]))[0]["x"]) == 400_000


# ── Parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_parquet_rows_are_plain_data(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    row = {"t": moment, "d": Decimal("1.50"), "f": float("nan"), "s": [{"role": "user"}], "b": b"text", "i": 2**60}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    assert columns(ParquetSource([tmp_path / "a.parquet"])) == [
        {"t": moment.isoformat(), "d": "1.50", "f": None, "s": [{"role": "user"}], "b": "text", "i": 2**60}
    ]


def test_parquet_is_counted_and_numbered_across_batches(tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in paths:
        pq.write_table(pa.table({"n": range(3000)}), path)
    source = ParquetSource(paths)
    rows, _ = read(source)
    assert source.size_hint(None) == len(rows) == 6000
    assert rows[-1].where == f"{str(paths[1])!r}, row 3000"


def test_what_is_not_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("nonsense")
    with pytest.raises(DatasetError, match="not readable as Parquet"):
        read(ParquetSource([tmp_path / "a.parquet"]))


# ── memory, and which source a config means ──────────────────────────────────────────────────────────────────────────


def test_an_iterator_can_be_read_again() -> None:
    source = MemorySource(iter([{"a": (1, 2)}]))
    assert columns(source) == columns(source) == [{"a": [1, 2]}]


def test_what_json_cannot_hold_is_a_bad_row() -> None:
    rows: list[Any] = [{"a": object()}, 7]
    _, bad = read(MemorySource(rows), skip=True)
    assert [reason.split(": ", 1)[1][:22] for reason in bad.reasons] == [
        "it holds a object, whi",
        "expected a dict or a S",
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", JsonlSource),
        ("a.csv", CsvSource),
        ("folder", CsvSource),
        ("a*", JsonlSource),
        ("hub/name", HuggingFaceSource),
    ],
)
def test_the_source_is_told_by_suffix_or_by_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: type
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.csv").touch()
    if name == "a.csv":
        (tmp_path / "a.csv").touch()
    assert isinstance(open_source(DatasetConfig(path_or_name=name)), kind)


def test_files_of_several_formats_need_a_source_type(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "a.csv").touch()
    with pytest.raises(DatasetError, match=r"Set `dataset\.source_type`"):
        open_source(DatasetConfig(path_or_name=str(tmp_path)))


# ── tables in memory ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_tables_of_other_packages_are_read_by_row() -> None:
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    pandas = pytest.importorskip("pandas")
    tables: list[Any] = [pa.Table.from_pylist(rows), pandas.DataFrame(rows)]
    for table in tables:
        assert columns(MemorySource(table)) == rows


# ── functions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_function_gives_rows_and_is_called_with_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def rows(kind='plain'):\n    for n in range(2):\n        yield {'user_query': f'{kind} {n}'}\n")
    path = f"{file}:rows"
    assert [sample.messages[0].text for sample in load_samples(DatasetConfig(path_or_name=path))] == [
        "plain 0",
        "plain 1",
    ]
    named = load_samples(DatasetConfig(path_or_name=path, config_name="odd", max_samples=1))
    assert [sample.messages[0].text for sample in named] == ["odd 0"]
    assert named.fingerprint() != load_samples(DatasetConfig(path_or_name=path)).fingerprint()


def test_a_function_that_is_not_there_or_fails_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def rows():\n    raise OSError('the disk is away')\n")
    with pytest.raises(DatasetError, match="the disk is away"):
        list(load_samples(DatasetConfig(path_or_name=f"{file}:rows")))
    with pytest.raises(DatasetError, match="which cannot be loaded"):
        load_samples(DatasetConfig(path_or_name=f"{file}:others"))
