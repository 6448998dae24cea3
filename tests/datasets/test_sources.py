# SPDX-License-Identifier: Apache-2.0
"""Rows out of files and memory, as they are; bad ones named by file, line and reason."""

from __future__ import annotations

import csv
import enum
import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_samples
from reward_kit.datasets.huggingface import HuggingFaceSource
from reward_kit.datasets.loader import samples_from_rows
from reward_kit.datasets.rows import BadRows, Row
from reward_kit.datasets.sources import CsvSource, JsonlSource, MemorySource, ParquetSource, open_source
from reward_kit.errors import DatasetError
from reward_kit.models import Message, Sample

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
UTF_8 = st.text(st.characters(codec="utf-8"), max_size=20)
JSON_EXACT = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**62, max_value=10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | UTF_8,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(UTF_8, inner, max_size=3),
    max_leaves=8,
)
"""What JSON holds, integers of many digits included."""
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


KEYS = st.sampled_from(["a", "b", "\u00e9", 'a "b"', "1"])
WITH_KEYS_TWICE = st.recursive(
    st.sampled_from([1, 2.5, "4", 'b"', None, 3**90]),
    lambda inner: st.lists(st.tuples(KEYS, inner), max_size=3).map(tuple) | st.lists(inner, max_size=2),
    max_leaves=8,
)
"""JSON whose objects are tuples of keys and values, so that a key may stand in one twice."""


def as_text(value: Any) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{json.dumps(key)}: {as_text(each)}" for key, each in value) + "}"
    return "[" + ", ".join(map(as_text, value)) + "]" if isinstance(value, list) else json.dumps(value)


def has_a_key_twice(value: Any) -> bool:
    if isinstance(value, tuple):
        return len({key for key, _ in value}) < len(value) or any(has_a_key_twice(each) for _, each in value)
    return isinstance(value, list) and any(map(has_a_key_twice, value))


@pytest.mark.parametrize("form", ["{}", "[{}]"])
@given(row=st.lists(st.tuples(KEYS, WITH_KEYS_TWICE), min_size=1, max_size=4).map(tuple))
def test_a_row_that_has_a_key_twice_is_refused_and_no_other(
    form: str, row: tuple[Any, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("twice") / "a.jsonl"
    path.write_text(form.format(as_text(row)), encoding="utf-8")
    if has_a_key_twice(row):
        with pytest.raises(DatasetError, match="stands twice"):
            columns(JsonlSource([path]))
    else:
        assert columns(JsonlSource([path])) == [json.loads(as_text(row))]


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


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1", "cp1252", "shift_jis"])
def test_csv_in_another_encoding_is_refused_with_what_to_do(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes(
        ("caf\u00e9,y\n1,2\n" if encoding[0] != "s" else "\u7b54,y\n1,2\n").encode(encoding)
    )
    with pytest.raises(DatasetError, match=r"line 1 is not UTF-8 text\. Save the file as UTF-8"):
        read(CsvSource([tmp_path / "a.csv"]), skip=True)


def test_a_long_csv_cell_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "long" * 100_000 + "\n")
    assert len(columns(CsvSource([tmp_path / "a.csv"]))[0]["x"]) == 400_000


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_the_delimiter_is_told_by_the_header(delimiter: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([["question", "answer"], ["a, b; c?", "1,5"]])
    assert columns(CsvSource([path])) == [{"question": "a, b; c?", "answer": "1,5"}]


def test_a_file_of_one_column_is_left_in_one_piece(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('prompt\n"Is it a, b; or c?"\n')
    assert columns(CsvSource([tmp_path / "a.csv"])) == [{"prompt": "Is it a, b; or c?"}]


# ── a JSON array ─────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    rows=st.lists(OBJECTS, max_size=4), indent=st.none() | st.integers(0, 2), name=st.sampled_from(["json", "jsonl"])
)
def test_a_json_array_is_read_item_by_item(
    rows: list[dict[str, Any]], indent: int | None, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("array") / f"a.{name}"
    path.write_text("\n " + json.dumps(rows, indent=indent))
    source = JsonlSource([path])
    assert repr(columns(source)) == repr(rows)
    assert source.size_hint(None) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[{"a": 1}, 7]', "item 2: expected a JSON object, found 7"),
        ('[{"a": 1},\n{"a": 2}', "begins with '\\[' in line 1, but is no JSON array: .* one object per line"),
        ('[{"a": 1}]\n[{"a": 2}]', "but is no JSON array"),
        ("[" * 5000 + "]" * 5000, "but is no JSON array|levels deep"),
    ],
)
def test_what_is_no_array_of_objects_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DatasetError, match=reason):
        read(JsonlSource([tmp_path / "a.json"]))


# ── one object over several lines ────────────────────────────────────────────────────────────────────────────────────


@given(row=OBJECTS, indent=st.none() | st.integers(0, 2), after=st.sampled_from(["", "\n", "\r\n\n"]))
def test_an_object_over_several_lines_is_one_row(
    row: dict[str, Any], indent: int | None, after: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("object") / "a.json"
    path.write_text(json.dumps(row, indent=indent) + after)
    assert repr(columns(JsonlSource([path]))) == repr([row])


def test_several_objects_over_several_lines_are_refused_and_lines_behind_a_broken_one_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n"a": 1\n}\n{\n"a": 2\n}\n')
    with pytest.raises(DatasetError, match=r"does not end on its line.*jq -c"):
        read(JsonlSource([path]))
    path.write_text('{"a": 1,\n{"a": 2}\n')
    assert [row.columns for row in read(JsonlSource([path]), skip=True)[0]] == [{"a": 2}]


# ── a ground truth as it is written ──────────────────────────────────────────────────────────────────────────────────

TEXTS = [
    ("4.50", "4.50"), ("4.5", None), ("4.0", None), ("4.00", "4.00"), ("4", None), ("1e3", "1e3"), ("1E3", "1E3"),
    ("0.00001", "0.00001"), ("1e-05", None), ("-0.10", "-0.10"), ("100000000000000000000.0", "100000000000000000000.0"),
    ("0.1000000000000000055", "0.1000000000000000055"), ("true", "true"), ("false", "false"), ('"4.50"', None),
    ("[4.50]", None), ("null", None), ("123456789012345678901234567890", None),
]  # fmt: skip


@pytest.mark.parametrize(("written", "text"), TEXTS)
@pytest.mark.parametrize("column", ["ground_truth", "answer"])
@pytest.mark.parametrize("as_array", [False, True])
def test_a_ground_truth_keeps_how_json_writes_it(
    written: str, text: str | None, column: str, as_array: bool, tmp_path: Path
) -> None:
    rows = [f'{{"question": "Pay $4.50, or 4.500?", "{column}": {written}, "other": 4.5}}', '{"question": "b"}']
    path = tmp_path / "a.jsonl"
    path.write_text(f"[{','.join(rows)}]" if as_array else "\n".join(rows))
    sample = next(iter(load_samples(DatasetConfig(path_or_name=str(path)))))
    assert repr(sample.ground_truth) == repr(json.loads(written))
    assert sample.ground_truth_text == text
    renamed = DatasetConfig.model_validate({"path_or_name": str(path), "column_mapping": {"ground_truth": column}})
    assert next(iter(load_samples(renamed))).ground_truth_text == text


@pytest.mark.parametrize("values", [[4, None], [4.0, 4.5], [True, False]])
def test_a_table_cannot_tell_4_from_a_float(values: list[Any], tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"question": ["a", "b"], "ground_truth": values})
    frame.to_parquet(tmp_path / "a.parquet")
    expected = "4" if values[0] == 4 else None
    for samples in (samples_from_rows(frame), load_samples(DatasetConfig(path_or_name=str(tmp_path / "a.parquet")))):
        assert next(iter(samples)).ground_truth_text == expected


def test_python_writes_its_own_values() -> None:
    rows: list[Any] = [{"question": "a", "ground_truth": value} for value in (4.0, True, 10**40)]
    assert [sample.ground_truth_text for sample in samples_from_rows(rows)] == [None, None, None]
    said = Sample(id="a", messages=[Message(role="user", content="a")], ground_truth=4.5, ground_truth_text="4.50")
    assert next(iter(samples_from_rows([said]))) == said


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
    source = MemorySource(iter([{"a": [1, 2]}]))
    assert columns(source) == columns(source) == [{"a": [1, 2]}]


class Colour(enum.StrEnum):
    RED = "red"


UNUSUAL: list[tuple[Any, str]] = [
    ((1, 2), "a tuple, .* give a list, and make the tuple in the reward"),
    ({1, 2}, "a set, .* give a list"),
    (frozenset(), "a frozenset, .* give a list"),
    ({1: "x"}, r"a key that is an int \(1\); give keys that are text"),
    (float("nan"), "nan, .* give None where a value is missing"),
    (float("inf"), "inf, .* give None where a value is missing"),
    (date(2026, 1, 2), r"a date, .* give its text, `\.isoformat\(\)`"),
    (datetime(2026, 1, 2, tzinfo=UTC), "a datetime, .* give its text"),
    (Decimal("1.50"), "a Decimal, .* give its text"),
    (UUID(int=1), "a UUID, .* give its text"),
    (b"text", r"a bytes, .* give text, `\.decode\(\)`"),
    (Colour.RED, r"a Colour, .* give its `\.value`"),
    (np.float64(1.5), r"a float64, .* give its `\.tolist\(\)`"),
    (np.int64(1), r"an int64, .* give its `\.tolist\(\)`"),
    (np.array([1]), r"a ndarray, .* give its `\.tolist\(\)`"),
    (defaultdict(int), "a defaultdict, .* give a plain dict"),
    (10**5000, "an integer of more than 4300 digits; give it as text"),
    ("\ud800", "half of a character"),
    (object(), "an object, .* give text, a number, True, False, None, a list or a dict"),
]


@pytest.mark.parametrize(("value", "reason"), UNUSUAL, ids=[type(value).__name__ for value, _ in UNUSUAL])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [1, x], lambda x: {"k": [{"l": x}]}], ids=["", "list", "dict"])
def test_what_would_change_its_type_in_a_file_is_refused_with_what_to_give(
    value: Any, reason: str, wrap: Callable[[Any], Any]
) -> None:
    with pytest.raises(DatasetError, match=f"row 1: column 'entry' holds {reason}"):
        read(MemorySource([{"entry": wrap(value)}]))


def test_rows_that_are_no_mappings_are_bad_rows() -> None:
    rows: list[Any] = [7]
    _, bad = read(MemorySource(rows), skip=True)
    assert "expected a dict or a Sample, found a int" in bad.reasons[0]


@given(rows=st.lists(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON_EXACT, max_size=3), max_size=3))
def test_what_json_holds_is_kept_as_it_is(rows: list[dict[str, Any]]) -> None:
    assert repr(columns(MemorySource(rows))) == repr(rows)


def test_the_cells_of_frames_become_plain_data_unless_that_changes_what_they_say() -> None:
    pandas = pytest.importorskip("pandas")
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    frame = pandas.DataFrame(
        {"n": [1, None], "t": [moment, None], "b": [b"x", None], "v": [np.array([1, 2]), None], "na": [pandas.NA, None]}
    )
    assert columns(MemorySource(frame)) == [
        {"n": 1.0, "t": moment.isoformat(), "b": "x", "v": [1, 2], "na": None},
        {"n": None, "t": None, "b": None, "v": None, "na": None},
    ]
    for value in ((1, 2), {1, 2}, {1: "x"}, [(1, 2)]):
        with pytest.raises(DatasetError, match="row 1: column 'a' holds a"):
            read(MemorySource(pandas.DataFrame({"a": [value]})))


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
