# SPDX-License-Identifier: Apache-2.0
"""Shell tasks as samples: who they are, what they are made of, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.shell_tasks import PROMPT, load_tasks
from reward_kit.errors import DatasetError
from reward_kit.models import Sample

TASK = {"task": "List it.", "setup_commands": ["mkdir a"], "success_condition": "true"}


def tasks(home: Path, *rows: dict[str, Any], limit: int | None = None) -> list[Sample]:
    path = home / "tasks.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return [*load_tasks(DatasetConfig(path_or_name=str(path), prompt_template=PROMPT), limit=limit)]


def test_a_task_without_an_id_is_named_by_its_content(tmp_path: Path) -> None:
    (first,) = tasks(tmp_path, TASK)
    (second,) = tasks(tmp_path, dict(reversed(TASK.items())))
    assert first.id == second.id and len(first.id) == 8 and int(first.id, 16) >= 0
    (other,) = tasks(tmp_path, {**TASK, "task": "List them."})
    assert other.id != first.id


@pytest.mark.parametrize("name", ["id", "task_id"])
def test_a_task_with_an_id_keeps_it(tmp_path: Path, name: str) -> None:
    (sample,) = tasks(tmp_path, {**TASK, name: 17})
    assert sample.id == "17" and name not in sample.columns


def test_ids_are_lengthened_where_they_collide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = {"a": "12345678aaaaaaaa", "b": "12345678abbbbbbb", "c": "12345678cccccccc"}
    monkeypatch.setattr("reward_kit.datasets.shell_tasks.content_id", lambda columns: hashes[columns["task"]])
    found = tasks(tmp_path, *({**TASK, "task": name} for name in "abc"))
    assert [sample.id for sample in found] == ["12345678", "12345678a", "12345678c"]


def test_the_same_task_twice_is_two_tasks(tmp_path: Path) -> None:
    found = tasks(tmp_path, *[TASK] * 12)
    assert len({sample.id for sample in found}) == 12
    assert [sample.id for sample in found] == [sample.id for sample in tasks(tmp_path, *[TASK] * 12)]


def test_other_columns_are_kept_and_the_prompt_asks_for_the_task(tmp_path: Path) -> None:
    (sample,) = tasks(tmp_path, {**TASK, "difficulty_level": 3})
    assert sample.columns == {**TASK, "difficulty_level": 3}
    assert sample.messages[-1].text.startswith("List it.") and '{"command"' in sample.messages[-1].text


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (None, []),
        ("", []),
        ("cd /tmp", ["cd /tmp"]),
        ('["a", "b"]', ["a", "b"]),
        ("[ -d x ] || mkdir x", ["[ -d x ] || mkdir x"]),
    ],
)
def test_the_setup_is_a_list_however_it_is_written(tmp_path: Path, given: Any, read: list[str]) -> None:
    (sample,) = tasks(tmp_path, {**TASK, "setup_commands": given})
    assert sample.columns["setup_commands"] == read


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"success_condition": None}, "'success_condition' is None"),
        ({"task": " "}, "'task'"),
        ({"setup_commands": [1]}, "'setup_commands' is [1]"),
    ],
)
def test_what_makes_no_task_is_refused_by_name(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(DatasetError) as refusal:
        tasks(tmp_path, {**TASK, **change})
    assert said in str(refusal.value) and "line 1" in str(refusal.value)


def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path) -> None:
    row = {"task": "x", "sucess_condition": "true"}
    with pytest.raises(DatasetError, match=r"no column 'success_condition'.*'sucess_condition'"):
        tasks(tmp_path, row)


def test_only_so_many_as_asked_for(tmp_path: Path) -> None:
    assert len(tasks(tmp_path, *({**TASK, "id": i} for i in range(5)), limit=2)) == 2
