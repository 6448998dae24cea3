# SPDX-License-Identifier: Apache-2.0
"""Multiple-choice questions: the options of a row in the order they are shown, and the letter of the right one.

A row is mixed by a seed and its own content, but for what says which option is right, and not by its place: taking
fewer rows, or others before it, changes nothing, and a corrected ground truth leaves the question as it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from reward_kit.config_models import ChoicesConfig
from reward_kit.datasets.row_ids import content_id
from reward_kit.datasets.rows import BadRow, Columns

__all__ = ["LETTERS", "lettered"]

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FEWEST: Final = 2

Lookup = Callable[[Columns, str, str], Any]
"""The value of a column: the row, the column's name, and the setting that names it."""


def lettered(columns: Columns, settings: ChoicesConfig, lookup: Lookup) -> Columns:
    """The row with `choices`, in the order they are shown, and the letter of the right one as its ground truth."""
    options = _options(columns, settings, lookup)
    right = _right(lookup(columns, settings.right, "choices.right"), options)
    order = list(range(len(options)))
    if settings.shuffle_seed is not None:
        says_which = {settings.right.partition(".")[0], "ground_truth"}
        asked = {name: value for name, value in columns.items() if name not in says_which}
        random.Random(f"{settings.shuffle_seed}\0{content_id({**asked, settings.right: options})}").shuffle(order)
    letters = [LETTERS[place] for place, number in enumerate(order) if number in right]
    truth = letters[0] if len(letters) == 1 else letters
    kept = {name: value for name, value in columns.items() if name not in ("ground_truth", "ground_truth_for_eval")}
    return {**kept, "choices": [options[number] for number in order], "ground_truth": truth}


def _options(columns: Columns, settings: ChoicesConfig, lookup: Lookup) -> list[str]:
    where = "choices.options"
    if isinstance(settings.options, str):
        found = lookup(columns, settings.options, where)
    else:
        found = [lookup(columns, name, where) for name in settings.options]
    if not isinstance(found, list) or not _FEWEST <= len(found) <= len(LETTERS):
        raise BadRow(f"its options (`dataset.choices.options`) are {found!r}; expected a list of 2 to {len(LETTERS)}")
    if not all(isinstance(option, str | int | float) and not isinstance(option, bool) for option in found):
        raise BadRow(f"its options (`dataset.choices.options`) are {found!r}; expected texts")
    return [str(option).strip() for option in found]


def _right(said: Any, options: list[str]) -> set[int]:
    """The numbers of the right options."""
    if isinstance(said, list) and len(said) == len(options) and all(mark in (0, 1) for mark in said):
        found = {number for number, mark in enumerate(said) if mark}
    elif isinstance(said, list):
        found = {number for one in said if (number := _number(one, options)) is not None}
    else:
        number = _number(said, options)
        found = set() if number is None else {number}
    if not found:
        raise BadRow(
            f"`dataset.choices.right` is {said!r}, which is none of the options; expected the text, letter or "
            "number of one, or a list with a 0 or 1 for each"
        )
    return found


def _number(said: Any, options: list[str]) -> int | None:
    if isinstance(said, int) and not isinstance(said, bool):
        return said if 0 <= said < len(options) else None
    text = str(said).strip() if isinstance(said, str) else ""
    if text in options:
        return options.index(text)
    if len(text) == 1 and text.upper() in LETTERS[: len(options)]:
        return LETTERS.index(text.upper())
    return int(text) if text.isdecimal() and int(text) < len(options) else None
