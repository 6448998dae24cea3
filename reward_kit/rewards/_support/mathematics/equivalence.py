"""Do two answers mean the same? One cascade, cheapest first, each step sure of what it says.

    the same text ─▶ plain numbers ─▶ choices ─▶ parsed and compared ─▶ words ─▶ math-verify, in its own process

`None` means that no step could tell. Verdicts are kept, since samplers repeat themselves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from reward_kit.rewards._support.mathematics.big import Undecided
from reward_kit.rewards._support.mathematics.comparison import Comparison
from reward_kit.rewards._support.mathematics.identity import EXACT, Tolerance, same_number
from reward_kit.rewards._support.mathematics.parser import Reading, read_answer
from reward_kit.rewards._support.mathematics.plain_numbers import plain_number
from reward_kit.rewards._support.mathematics.reading import MAX_LENGTH
from reward_kit.rewards._support.mathematics.tokens import Unreadable
from reward_kit.rewards._support.mathematics.words import (
    choice,
    conclusion,
    is_prose,
    same_words,
    stated_number,
    wordy,
    written,
)

__all__ = ["equivalent"]

_KEPT_VERDICTS: Final = 16_384
_KEPT_READINGS: Final = 4_096


def equivalent(gold: str, answer: str, tolerance: Tolerance = EXACT) -> bool | None:
    """Whether `answer` means the same as `gold`; `None` where that cannot be told."""
    if gold == answer:
        return True
    if len(gold) > MAX_LENGTH or len(answer) > MAX_LENGTH:
        return None
    return _kept(gold, answer, tolerance)


@lru_cache(_KEPT_VERDICTS)
def _kept(gold: str, answer: str, tolerance: Tolerance) -> bool | None:
    right, given = plain_number(gold), plain_number(answer)
    if right is not None and given is not None:
        if same_number(right.value, given.value, right, given, tolerance):
            return True
        if not right.grouped and not given.grouped:
            return False
    return _judged(gold, answer, tolerance)


def _judged(gold: str, answer: str, tolerance: Tolerance) -> bool | None:
    if written(gold) == written(answer):
        return True
    if (chosen := _choices(gold, answer)) is not None:
        return chosen
    right, given = _read(gold), _read(answer)
    if right is not None and given is not None:
        verdict = _compared(right, given, tolerance)
        if verdict is not None:
            return verdict
    elif is_prose(gold) and same_words(gold, answer):
        return True
    elif right is not None:
        return _from_words(right, answer, tolerance)
    elif is_prose(gold):
        return False
    return None


def _from_words(right: Reading, answer: str, tolerance: Tolerance) -> bool | None:
    """What an answer in words says, compared; an answer in words that says nothing comparable is another one."""
    for said in (stated_number(answer), conclusion(answer)):
        given = _read(said) if said is not None else None
        if given is not None:
            return _compared(right, given, tolerance)
    return False if wordy(answer) or is_prose(answer) else None


def _compared(right: Reading, given: Reading, tolerance: Tolerance) -> bool | None:
    try:
        verdict = Comparison(tolerance).same(right.node, given.node)
    except Undecided:
        return None
    if verdict and right.condition and given.condition and right.condition != given.condition:
        return None
    return verdict


def _choices(gold: str, answer: str) -> bool | None:
    right = choice(gold)
    if right is None:
        return None
    given = choice(answer)
    if given is None:
        return None
    return right[0] == given[0]


@lru_cache(_KEPT_READINGS)
def _read(text: str) -> Reading | None:
    try:
        return read_answer(text)
    except (Unreadable, RecursionError):
        return None
