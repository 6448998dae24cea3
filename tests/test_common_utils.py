# SPDX-License-Identifier: Apache-2.0
"""The inherited way to read JSON lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from reward_kit.common_utils import load_jsonl


def test_objects_are_read_and_bad_lines_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n{"b": [2]}\n')
    assert load_jsonl(path) == load_jsonl(str(path)) == [{"a": 1}, {"b": [2]}]
    path.write_text('{"a": 1}\nnonsense\n')
    with pytest.raises(ValueError, match="line 2"):
        load_jsonl(path)


def test_a_missing_file_is_what_it_always_was(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_jsonl(tmp_path / "nowhere.jsonl")
