# SPDX-License-Identifier: Apache-2.0
"""Do two answers mean the same? One cascade, cheapest first, each step sure of what it says.

    the same text ─▶ plain numbers ─▶ choices ─▶ parsed and compared ─▶ words ─▶ math-verify, in its own process

`None` means that no step could tell. Verdicts are kept, since samplers repeat themselves.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from reward_kit.answers.final_answer import unboxed
from reward_kit.mathematics.comparison import Comparer
from reward_kit.mathematics.evaluate import Exhausted, StepBudget
from reward_kit.mathematics.families import integers_in, same_residue
from reward_kit.mathematics.labels import stated_value
from reward_kit.mathematics.math_verify import ask, worth_asking
from reward_kit.mathematics.nodes import Relation
from reward_kit.mathematics.numbers import foreign_number, plain_number, roman_number, with_point
from reward_kit.mathematics.numeric import EXACT, Tolerance, constant, same_number
from reward_kit.mathematics.parser import ParsedAnswer, read_answer
from reward_kit.mathematics.text import MAX_LENGTH
from reward_kit.mathematics.times import read_date, read_time, same_time
from reward_kit.mathematics.tokens import Unreadable
from reward_kit.mathematics.values import Undecided, as_big, is_real
from reward_kit.mathematics.words import (
    choice,
    choices,
    conclusion,
    is_prose,
    option,
    same_sentence,
    same_words,
    stated_number,
    subject,
    wordy,
    written,
)

__all__ = ["equivalent", "forget", "is_right", "readable", "value_of"]

_KEPT_VERDICTS: Final = 16_384
_KEPT_READINGS: Final = 2_048
_RESTRICTIONS: Final = ("unless", "except", "while", "as", "whenever")
_RELATES: Final = re.compile("[=<>≤≥≠∈]")
_BOUNDS: Final = re.compile("[<>≤≥≠]")
_REMAINDER: Final = re.compile(r"[\s$]*(\d{1,30})\s*\\?b?mod\s*\{?(\d{1,30})\}?[\s$]*")
_WORTH_KEEPING: Final = 600
"""Longer pairs are not kept: they seldom come again."""


def equivalent(gold: str, answer: str, tolerance: Tolerance = EXACT) -> bool | None:
    """Whether `answer` means the same as `gold`; `None` where that cannot be told."""
    if gold == answer:
        return True
    if len(gold) > MAX_LENGTH or len(answer) > MAX_LENGTH:
        return None
    short = len(gold) + len(answer) <= _WORTH_KEEPING
    return (_kept if short else _kept.__wrapped__)(gold, answer, tolerance)


def is_right(gold: str, answer: str, tolerance: Tolerance = EXACT) -> bool | None:
    """Whether `answer` is right where `gold` is; `None`, too, where `gold` is talk that any answer differs from."""
    verdict = equivalent(gold, answer, tolerance)
    return None if verdict is False and wordy(gold) and not readable(gold) else verdict


def forget() -> None:
    """Drop every verdict and reading that was kept."""
    _kept.cache_clear()
    _kept_reading.cache_clear()


def readable(text: str) -> bool:
    """Whether `text` is understood: as mathematics, as words, as a choice or by what it states."""
    if len(text) > MAX_LENGTH:
        return False
    return is_prose(text) or (_read(unboxed(text)) or _stated(text)) is not None or choice(text) is not None


def value_of(text: str) -> float | None:
    """The number that `text` is, or the only one that it states; infinite where it does not fit a float."""
    reading = _read(text) or _read(stated_number(text[:MAX_LENGTH]) or "")
    node = reading.node if reading is not None else None
    if isinstance(node, Relation):
        node = stated_value(node)
    try:
        value = constant(node, StepBudget()) if node is not None else None
    except Exhausted:
        return None
    if value is None or not is_real(value):
        return None
    try:
        return float(value if isinstance(value, Fraction) else value.re)
    except OverflowError:
        return math.inf if as_big(value).re > 0 else -math.inf


@lru_cache(_KEPT_VERDICTS)
def _kept(gold: str, answer: str, tolerance: Tolerance) -> bool | None:
    right, given = plain_number(gold), plain_number(answer)
    if right is not None and given is not None:
        if same_number(right.value, given.value, right, given, tolerance):
            return True
        if not right.grouped and not given.grouped:
            return False
    if _same_number_elsewhere(gold, answer):
        return True
    if (roman := roman_number(gold)) is not None and (other := roman_number(answer)) is not None:
        return roman == other
    return _judged(gold, answer, tolerance)


def _same_number_elsewhere(gold: str, answer: str) -> bool:
    """Whether two numbers are the same with the separators of another country."""
    for text, other in ((gold, answer), (answer, gold)):
        found = foreign_number(text)
        if found is not None:
            number = plain_number(other)
            return number is not None and number.value == found
    return False


def _judged(gold: str, answer: str, tolerance: Tolerance) -> bool | None:
    gold, answer = unboxed(gold), unboxed(answer)
    if (chosen := _choices(gold, answer)) is not None:
        return chosen
    if (day := read_date(gold)) is not None and (other_day := read_date(answer)) is not None:
        return day == other_day
    if (time := read_time(gold)) is not None and (other_time := read_time(answer)) is not None:
        same = same_time(time, other_time)
        if same is not None:
            return same
    gold, answer = _without_remainder(gold), _without_remainder(answer)
    if "mod" in gold + answer and (congruent := same_residue(gold, answer)) is not None:
        return congruent
    verdict = _understood(gold, answer, tolerance)
    if verdict is not True and (elsewhere := _with_decimal_point(gold, answer)) is not None:
        verdict = _understood(*elsewhere, tolerance) or verdict
    if verdict is None and (pair := _as_option(gold, answer)) is not None:
        verdict = _understood(*pair, tolerance)
    if verdict is not None:
        return verdict
    if (text := written(gold)) and text == written(answer):
        return True
    return ask(gold, answer) if worth_asking(gold, answer) else None


def _without_remainder(text: str) -> str:
    """`17 mod 5` as what is left of it; `2 mod 5` is 2, and a residue class."""
    found = _REMAINDER.fullmatch(text) if "mod" in text else None
    if found is None or int(found[1]) < int(found[2]):
        return text
    return str(int(found[1]) % int(found[2])) if int(found[2]) else text


def _with_decimal_point(gold: str, answer: str) -> tuple[str, str] | None:
    """The pair with a decimal comma read as a point; `None` where there is none."""
    points = with_point(gold), with_point(answer)
    if (points[0] is None) != (points[1] is None):
        return points[0] or gold, points[1] or answer
    return None


def _understood(gold: str, answer: str, tolerance: Tolerance) -> bool | None:
    """The verdict of what can be read: of both, or of what their words say. It is the same both ways round."""
    right, given = _read(gold), _read(answer)
    if right is not None and given is not None:
        return _compared(right, given, tolerance)
    if _same_prose(gold, answer):
        return True
    said, heard = right or _stated(gold), given or _stated(answer)
    if said is not None and heard is not None:
        verdict = _compared(said, heard, tolerance)
        same = right is not None or given is not None or same_sentence(gold, answer)
        return verdict if same or not verdict else None
    if is_prose(gold) or is_prose(answer):
        return False
    for known, talk in ((said, answer), (heard, gold)):
        if known is not None and wordy(talk):
            about = _read(subject(talk))  # "x = 1 is the only case" may mean 1
            return None if about is not None and _compared(about, known, tolerance) else False
    return None


def _same_prose(gold: str, answer: str) -> bool:
    """Whether two answers say the same in words, or one says at its end what the other is in words."""
    words = is_prose(gold), is_prose(answer)
    return (
        (any(words) and same_words(gold, answer))
        or (words[0] and same_words(gold, conclusion(answer) or ""))
        or (words[1] and same_words(conclusion(gold) or "", answer))
    )


def _stated(text: str) -> ParsedAnswer | None:
    """What an answer in words says that can be compared: its only number, or its conclusion."""
    return _read(stated_number(text) or "") or _read(conclusion(text) or "")


def _compared(right: ParsedAnswer, given: ParsedAnswer, tolerance: Tolerance) -> bool | None:
    integers = integers_in(right.condition) | integers_in(given.condition)
    try:
        verdict = Comparer(tolerance, integers, StepBudget()).same(right.node, given.node)
    except (Undecided, Exhausted, RecursionError):
        return None
    if verdict and right.condition and given.condition and right.condition != given.condition and not integers:
        return None
    if verdict and right.condition != given.condition and any(map(_restricts, (right.condition, given.condition))):
        return None
    return verdict


def _restricts(condition: str) -> bool:
    """Whether a condition says when an answer holds, rather than what its letters are."""
    if condition.startswith("assuming"):
        return False
    related = bool(_RELATES.search(condition))
    return (
        condition.startswith(_RESTRICTIONS)
        or (condition.startswith("when") and _BOUNDS.search(condition) is not None)
        or (condition.startswith("if") and not related)
    )


def _choices(gold: str, answer: str) -> bool | None:
    right, given = choice(gold), choice(answer)
    if right is None and given is None:
        several, others = choices(gold), choices(answer)
        return None if several is None or others is None else several == others
    if right is None or given is None:
        return True if (pair := _as_option(gold, answer)) and _understood(*pair, EXACT) else None
    if right[0] != given[0]:
        return False
    # The letter decides; but where both give the option too, and as mathematics, that must be the same.
    texts = right[1], given[1]
    both = all(text and not is_prose(text) and _read(text) is not None for text in texts)
    return _understood(*texts, EXACT) if both else True


def _as_option(gold: str, answer: str) -> tuple[str, str] | None:
    """The pair without the letter that one of the two has: (B) 7 is 7, whichever of them is the answer."""
    if (choice(gold) is None) == (choice(answer) is None):
        return None
    beside, other = option(gold), option(answer)
    return (beside, answer) if beside else (gold, other) if other else None


def _read(text: str) -> ParsedAnswer | None:
    return (_kept_reading if len(text) <= _WORTH_KEEPING // 2 else _kept_reading.__wrapped__)(text)


@lru_cache(_KEPT_READINGS)
def _kept_reading(text: str) -> ParsedAnswer | None:
    try:
        return read_answer(text)
    except (Unreadable, RecursionError):
        return None
