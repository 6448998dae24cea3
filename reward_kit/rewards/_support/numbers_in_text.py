# SPDX-License-Identifier: Apache-2.0
r"""Pairs of text and value for the numbers that a text answers with: `extract_numbers`, an inherited name.

`####` may stand twice in a line; a stop or a `$` behind a number belongs to the sentence, a unit to the number. What
multiplies something else (`2x`, `3\pi`, `4(x + 1)`) is no number of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reward_kit.answers.final_answer import Answer, marked_answers, spoken_end
from reward_kit.answers.quantities import Quantity, find_quantities
from reward_kit.mathematics.equivalence import value_of
from reward_kit.mathematics.units import known_unit

__all__ = ["numbers_in"]

_HASHES = "####"
_AFTER_A_NUMBER = " \t.,;:$"
_JOINING = re.compile(r"[\s,]+(?:and|or)$")
_FACTOR = re.compile(r"\(|\\(?:pi|sqrt|frac|cdot|times)\b|[A-Za-z]+")
_WORD = r"(?:°\s?[CFK]?\b|[A-Za-zµΩ]{1,16}[²³]?)"
_UNIT = re.compile(rf"\s{{0,2}}(?P<unit>{_WORD}(?:(?P<over>\s?/\s?|\s+per\s+)[A-Za-z]{{1,16}}[²³]?)?)")
_NOT_HERE = frozenset({"in", "a", "at", "as"})
"""Words that follow a number far more often than the unit they may be."""


def numbers_in(text: str) -> list[tuple[str, float | str]]:
    """The numbers in the strongest marks of a text, else all of them."""
    marked = marked_answers(text)
    if not marked:
        return [found for quantity in find_quantities(spoken_end(text)) if (found := _plain(quantity)) is not None]
    return [found for answer in marked for found in _marked(answer)]


def _marked(answer: Answer) -> Iterator[tuple[str, float | str]]:
    if answer.source != "hashes":
        value = value_of(answer.text)
        if value is not None:
            yield answer.whole, value
        elif answer.source == "boxed":
            yield answer.whole, answer.text
        return
    for piece in filter(str.strip, answer.whole.split(_HASHES)):
        content = _JOINING.sub("", piece.strip(_AFTER_A_NUMBER.replace("$", "")).rstrip(_AFTER_A_NUMBER))
        value = value_of(content)
        if value is not None:
            yield f"{_HASHES} {content}", value
        elif (first := next(find_quantities(content), None)) is not None and content.startswith(first.text):
            yield f"{_HASHES} {first.text}", first.number


def _plain(quantity: Quantity) -> tuple[str, float] | None:
    text = quantity.text.removeprefix("+").strip()
    if text.startswith("$") and quantity.rest.startswith("$"):
        text = text.removeprefix("$").strip()  # a formula, not money
    unit = _unit(quantity.rest)
    if not unit and _FACTOR.match(quantity.rest):
        return None
    return text + unit, quantity.number


def _unit(rest: str) -> str:
    """The unit that follows a number, with the space before it; empty where none does."""
    match = _UNIT.match(rest)
    while match is not None:
        written = match["unit"].replace("/", " / ")
        if written not in _NOT_HERE and known_unit(written):
            return match.group()
        if match["over"] is None:
            return ""
        match = _UNIT.match(rest[: match.start("over")])
    return ""
