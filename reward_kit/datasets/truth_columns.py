# SPDX-License-Identifier: Apache-2.0
"""A row without its ground truth: what its id is made of, and what must not change when a run is resumed.

Which columns hold the truth is told by their names alone, so that a row keeps its id when the truth is corrected.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any

from reward_kit.datasets.columns import USER_TURN, Columns
from reward_kit.datasets.ground_truths import ANSWERS, CANDIDATES, EXPLICIT
from reward_kit.datasets.row_ids import content_id
from reward_kit.utils import exact_json

__all__ = ["id_by_content", "without_truth"]

_ALWAYS = {*EXPLICIT, *ANSWERS, "reference_response"}
"""Columns that hold the truth, also beside one that says it: that was made of them."""
_TESTS = (
    ({"prompt", "entry_point"}, {"test"}),
    ({"question"}, {"input_output"}),
    ({"question_content"}, {"public_test_cases", "private_test_cases"}),
)
"""Columns of tests, which are the truth beside those columns."""
_NESTED = ("reward_model", "metadata")
"""Columns with a truth inside of them."""
_ASSISTANT = ("assistant", "gpt", "chatgpt", "bing", "bard", "model")


def id_by_content(columns: Columns, also: Collection[str] = (), *, answer: str | None = None) -> str:
    """The id of a row that has none of its own: the hash of all its columns but the ground truth.

    Where the row holds its `answer`, in a column of this name or at the end of its conversation, that stays out, too.
    """
    rest = {name: value for name, value in columns.items() if name not in (USER_TURN, answer)}
    if answer is not None:
        rest.pop("response_index", None)
    return content_id(without_truth(rest, also, answered=answer is not None))


def without_truth(columns: Columns, also: Collection[str] = (), *, answered: bool = False) -> Columns:
    """The columns without those that hold the ground truth; `also` are those that the config names as such.

    What an assistant says at the end of a conversation is not asked either; nor, if `answered`, what its tools say.
    """
    truths = _truths_among(tuple(columns), says=_says(columns.get("reward_model")))
    rest = {name: value for name, value in columns.items() if name not in truths and name not in also}
    for name in _NESTED:
        if name in rest:
            rest[name] = _without_nested(rest[name], {*EXPLICIT, *ANSWERS})
    for path in also:
        first, _, inner = path.partition(".")
        if inner and isinstance(rest.get(first), Mapping):
            rest[first] = _without_path(rest[first], inner)
    return _without_last_answer(rest, whole=answered)


@functools.lru_cache(maxsize=1024)
def _truths_among(columns: tuple[str, ...], *, says: bool) -> frozenset[str]:
    """The columns that hold the ground truth by their names; rows of a dataset have the same, so this is kept.

    `says`: something inside of a column says what is right.
    """
    names = {*_ALWAYS, *(name for needed, tests in _TESTS if needed <= {*columns} for name in tests)}
    if not says and not {*columns}.intersection(EXPLICIT):
        names.update(CANDIDATES)  # elsewhere they are columns like any other
    return frozenset(name for name in columns if name.lower() in names)


def _says(rule: Any) -> bool:
    return isinstance(rule, Mapping) and "ground_truth" in rule


def _without_nested(value: Any, names: Collection[str]) -> Any:
    """The object, which may be JSON, without the values of these names."""
    held = value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            held = exact_json.loads(value)
        except exact_json.JSONDecodeError:
            return value
    if not isinstance(held, Mapping) or held.keys().isdisjoint(names):
        return value
    return {name: inner for name, inner in held.items() if name not in names}


def _without_path(value: Mapping[str, Any], path: str) -> dict[str, Any]:
    first, _, inner = path.partition(".")
    rest = dict(value)
    held = rest.pop(first, None)
    return {**rest, first: _without_path(held, inner)} if inner and isinstance(held, Mapping) else rest


def _without_last_answer(columns: Columns, *, whole: bool) -> Columns:
    """The row without the assistant's turns at the end of its conversation; `whole`: without all after the question."""
    for name in ("messages", "prompt", "conversations"):
        turns = columns.get(name)
        if isinstance(turns, list) and turns and all(isinstance(turn, Mapping) for turn in turns):
            return {**columns, name: turns[: _end_of_question(turns, whole=whole)]}
    return columns


def _end_of_question(turns: list[Mapping[str, Any]], *, whole: bool) -> int:
    roles = [str(turn.get("role", turn.get("from"))).lower() for turn in turns]
    end = len(roles)
    while end and (roles[end - 1] in _ASSISTANT or (whole and roles[end - 1] in ("tool", "function", "observation"))):
        end -= 1
    return end
