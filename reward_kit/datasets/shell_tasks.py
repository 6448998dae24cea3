# SPDX-License-Identifier: Apache-2.0
"""Shell tasks as samples: `{task, setup_commands, success_condition}` rows, and every other column kept.

A task is named by its `id` or `task_id`, else by the first 8 hex digits of the hash of these three columns; a task that
would share them with another gets more.
"""

from __future__ import annotations

from typing import Any

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.columns import CONTENT, Columns, nearest_columns
from reward_kit.datasets.feed import Feed
from reward_kit.datasets.loader import SampleStream
from reward_kit.datasets.row_ids import Places, content_id
from reward_kit.datasets.rows import BadRow, Row
from reward_kit.datasets.sources import open_source
from reward_kit.models import Sample
from reward_kit.utils import exact_json

__all__ = ["PROMPT", "TaskStream", "load_tasks", "task_columns"]

PROMPT = """\
{{ task }}

Solve this with one bash command, which will be run in a fresh Linux machine as root. A pipeline or several commands \
joined by && count as one. Answer with JSON and nothing else: {"command": "the command"}"""
"""How a task is put to the model: a Jinja template over the row's columns."""

_SHORTEST_ID = 8
_CONTENT_DIGITS = 16


def load_tasks(config: DatasetConfig, *, limit: int | None = None, system_prompt: str | None = None) -> TaskStream:
    """The tasks of a dataset; `system_prompt` is that of tasks that have none."""
    return TaskStream(Feed(config, open_source), system_prompt, limit)


class TaskStream(SampleStream):
    """Tasks as samples, at positions 0, 1, 2 …"""

    def _sample(self, row: Row, places: Places, position: int) -> Sample:
        columns = row.columns
        if columns.get("id") in (None, "") and "task_id" in columns:
            columns["id"] = columns.pop("task_id")
        task = task_columns(columns)
        columns.update(task)
        if not self.former_ids:
            columns[CONTENT] = content_id(task)
        return super()._sample(row, places, position)

    def _name(self, content: str, row: Row, places: Places) -> str:
        names = (content[:digits] for digits in range(_SHORTEST_ID, _CONTENT_DIGITS + 1))
        short = next((name for name in names if places.claim(name, row) is None), "")
        return short or super()._name(content, row, places)


def task_columns(columns: Columns) -> Columns:
    """The three columns that make a task, checked: texts, and a list of setup commands."""
    return {
        "task": _text(columns, "task"),
        "setup_commands": setup_commands(columns.get("setup_commands")),
        "success_condition": _text(columns, "success_condition"),
    }


def _text(columns: Columns, name: str) -> str:
    value = columns.get(name)
    if isinstance(value, str) and "\0" in value:
        raise BadRow(f"column {name!r} holds a NUL character, which no shell takes; the task is broken, correct it")
    if isinstance(value, str) and value.strip():
        return value
    if name not in columns:
        raise BadRow(f"there is no column {name!r} ({nearest_columns(name, columns)})")
    raise BadRow(f"column {name!r} is {value!r}; expected text")


def setup_commands(value: Any) -> list[str]:
    """The setup as a list: as it is, from its JSON (a CSV knows only text), or one command that is a text."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [value]
        try:
            value = exact_json.loads(value)
        except ValueError:
            return [str(value)]  # `[ -d x ] || mkdir x`
    if isinstance(value, list) and all(isinstance(command, str) and "\0" not in command for command in value):
        return value
    raise BadRow(f"column 'setup_commands' is {value!r}; expected a list of commands")
