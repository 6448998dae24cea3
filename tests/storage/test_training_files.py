# SPDX-License-Identifier: Apache-2.0
"""Training data on disk, as `datasets` reads it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.errors import ConfigError, StorageError
from reward_kit.storage.training_files import write_training_file

CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def row(number: int, **answer: Any) -> dict[str, Any]:
    turns = [{"role": "user", "content": f"{number}?"}, {"role": "assistant", "content": "yes", **answer}]
    return {
        "prompt": turns[:1],
        "completion": turns[1:],
        "label": bool(number % 2),
        "query_id": f"q{number}",
        "margin": 1.0,
    }


def test_json_lines_are_the_rows(tmp_path: Path) -> None:
    rows = [row(0), row(1, tool_calls=[CALL])]
    write_training_file(rows, tmp_path / "new" / "a.jsonl")
    assert [orjson.loads(line) for line in (tmp_path / "new" / "a.jsonl").read_bytes().splitlines()] == rows
    assert os.listdir(tmp_path / "new") == ["a.jsonl"]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_datasets_reads_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    rows = [row(number) for number in range(5)]
    write_training_file(iter(rows), tmp_path / f"a.{kind}")
    builder = "json" if kind == "jsonl" else "parquet"
    files = str(tmp_path / f"a.{kind}")
    found = datasets.load_dataset(builder, data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    assert found.to_list() == rows


def test_parquet_holds_tool_calls_and_only_the_fields_there_are(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_training_file([row(0), row(1, tool_calls=[CALL])], tmp_path / "a.parquet")
    found = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert found[1]["completion"][0]["tool_calls"] == [CALL] and found[0]["completion"][0]["tool_calls"] is None
    assert found[0]["completion"][0].keys() == {"role", "content", "tool_calls"}
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_parquet_has_a_column_for_all_that_any_row_has_and_tools_are_text(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    steps = [{"step": 0, "turn": 0, "advantage": 1.0}, {"step": 1, "turn": 2, "advantage": 1.0, "tools": tools}]
    rows = [row(0), row(1) | {"tools": tools}, row(2) | {"tools": orjson.dumps(tools).decode(), "steps": steps}]
    write_training_file(rows, tmp_path / "a.parquet")
    found = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert found[0]["tools"] is None and found[0]["steps"] is None
    assert [orjson.loads(each["tools"]) for each in found[1:]] == [tools] * 2
    assert [step["tools"] for step in found[2]["steps"]] == [None, orjson.dumps(tools).decode()]


def test_what_parquet_cannot_hold_is_said(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ConfigError, match=r"Write JSON lines instead"):
        write_training_file([row(0, content=[{"type": "image"}])], tmp_path / "a.parquet")
    assert os.listdir(tmp_path) == []


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield row(0)
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="No space left"):
        write_training_file(broken(), tmp_path / "a.jsonl")
    assert os.listdir(tmp_path) == []
    write_training_file([], tmp_path / "empty.jsonl")
    assert (tmp_path / "empty.jsonl").read_bytes() == b""
