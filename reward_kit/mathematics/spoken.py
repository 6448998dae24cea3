# SPDX-License-Identifier: Apache-2.0
r"""Mathematics in words, written in symbols: `minus 5`, `x squared plus 2`, `half of 7`, `the square root of 3`.

The words are in `answers.vocabulary`. What is said of a value and is not among them stays for others to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from reward_kit.answers.vocabulary import FOREIGN, JOINING, OPERATIONS

__all__ = ["in_english", "in_symbols", "may_be_foreign", "may_be_spoken", "words_in"]

_GAP: Final = "[\\s\u27e6\u27e7]"
_VALUE: Final = (
    r"(?:[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:/\d+)?(?![\w.]*[A-Za-z])(?:\s?\\?%|\s?°)?"
    r"|[-+]?\\[dt]?frac\s?\{[^{}]{1,40}\}\s?\{[^{}]{1,40}\}|\\sqrt\s?\{[^{}]{1,40}\}|\\(?:pi|theta|alpha)(?![A-Za-z])"
    r"|(?<![A-Za-z\\])[b-hj-zB-HJ-Z](?:\^\{\d\})?(?![A-Za-z'\d])|\([^()]{1,60}\)(?:\^\{\d\}|!)?)"
)
_OPERAND: Final = r"[-+]?[\d\\(]|[b-hj-zB-HJ-Z](?![A-Za-z'])"
"""What a value begins with."""
_MOST_PASSES: Final = 6
_LONGEST: Final = 300


def _side(words: str) -> str:
    return words.replace("_", "").strip()


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word).replace(r"\ ", f"{_GAP}+") for word in sorted(words, key=len, reverse=True))


_BEFORE: Final = {_side(words): meant for words, meant in OPERATIONS.items() if words.endswith("_")}
_AFTER: Final = {_side(words): meant for words, meant in OPERATIONS.items() if words.startswith("_")}
_SIGNS: Final = {words: meant for words, meant in _BEFORE.items() if meant in ("-_", "_")}
_WORDS: Final = re.compile(
    rf"(?<![A-Za-z\\])(?:{_any({*_BEFORE, *_AFTER, *JOINING})})(?![A-Za-z])|[负負]", re.IGNORECASE
)
_PREFIX: Final = re.compile(
    rf"(?<![\w\\)}}])({_any(_BEFORE.keys() - _SIGNS.keys())})(?:{_GAP}+|(?=[({{])){{0,1}}"
    rf"({_VALUE})(?![\d.\s]*[-+*/^\d.])",
    re.IGNORECASE,
)
_SIGN: Final = re.compile(
    rf"(?<![\w)}}\\])(?<![\d)}}][\s\u27e7])({_any(_SIGNS)}){_GAP}*(?<![A-Za-z])({_VALUE})", re.IGNORECASE
)
_SUFFIX: Final = re.compile(rf"({_VALUE}){_GAP}+({_any(_AFTER)})(?![\w-])", re.IGNORECASE)
_JOIN: Final = re.compile(
    rf"(?:(?<=[\d)}}%])|(?<=[\s(][b-hj-zB-HJ-Z])|(?<=^[b-hj-zB-HJ-Z])){_GAP}+({_any(JOINING)}){_GAP}+(?={_OPERAND})",
    re.IGNORECASE,
)
_ABROAD: Final = re.compile(
    "|".join(
        rf"(?<![^\W\d_]){re.escape(words)}(?![^\W\d_])" if words[0].isascii() or words[0] in "äéö" else re.escape(words)
        for words in FOREIGN
    ),
    re.IGNORECASE,
)
_LEAD_INS: Final = frozenset(words for words, meant in FOREIGN.items() if not meant and " " in words)
_FIGURES: Final = "零一二三四五六七八九"
_PLACES: Final = {"十": 10, "百": 100, "千": 1000}
_CHINESE: Final = re.compile("[零一二三四五六七八九十百千万两]+")
_CHINESE_FRACTION: Final = re.compile(r"(\d{1,9})\s?分之\s?(\d{1,9})")
_DECIMAL_COMMA: Final = re.compile(r"(?<![\d.,])(\d{1,9}),(\d{1,2}|\d{4,9})(?![\d,])")


_RUNS: Final = re.compile("[A-Za-z]{3,}")
_SPOKEN_CUES: Final = frozenset(
    next(filter(_RUNS.fullmatch, words.lower().split()), "") for words in (*_BEFORE, *_AFTER, *JOINING)
)
_FOREIGN_CUES: Final = frozenset(run.lower() for words in FOREIGN for run in _RUNS.findall(words)[-1:])


def words_in(text: str) -> list[str]:
    """The words of some letters in a text, in lower case."""
    return _RUNS.findall(text.lower())


def may_be_spoken(words: list[str]) -> bool:
    """Whether one of the words may be mathematics; without such a word there is nothing to write in symbols."""
    return not _SPOKEN_CUES.isdisjoint(words)


def may_be_foreign(words: list[str]) -> bool:
    """Whether one of the words may be of another language."""
    return not _FOREIGN_CUES.isdisjoint(words)


def in_symbols(text: str) -> str:
    """`text` with the mathematics that it says in words, written in symbols."""
    if len(text) > _LONGEST or _WORDS.search(text) is None:
        return text
    for _ in range(_MOST_PASSES):
        before = text
        text = _SUFFIX.sub(lambda found: _marks(found[0]) + _meant(_AFTER, found[2], found[1]), text)
        text = _PREFIX.sub(lambda found: _marks(found[0]) + _meant(_BEFORE, found[1], found[2]), text)
        text = _JOIN.sub(lambda found: f"{_marks(found[0])} {JOINING[_plain(found[1])]} ", text)
        text = _SIGN.sub(lambda found: _marks(found[0]) + _meant(_SIGNS, found[1], found[2]), text)
        if text == before:
            break
    return text


def _meant(table: dict[str, str], words: str, value: str) -> str:
    return table[_plain(words)].replace("_", value)


def _marks(text: str) -> str:
    """The marks of `\\text` that a piece of text opens and closes."""
    return "".join(mark for mark in text if mark in "\u27e6\u27e7")


def _plain(words: str) -> str:
    return " ".join(re.sub("[\u27e6\u27e7]", " ", words).lower().split())


def in_english(text: str) -> str:
    """`text` with the known words of other languages in English, and without what only leads to the answer."""
    if len(text) > _LONGEST:
        return text
    if not text.isascii():
        text = _CHINESE.sub(lambda figures: str(_chinese_number(figures[0])), text)
        text = _CHINESE_FRACTION.sub(r"\2/\1", text)
    found = _ABROAD.search(text)
    if found is None:
        return text
    if found[0].lower() in _LEAD_INS:
        text = _DECIMAL_COMMA.sub(r"\1.\2", text)
    return _ABROAD.sub(lambda word: f" {FOREIGN[word[0].lower()]} ", text).strip()


def _chinese_number(text: str) -> int:
    """The whole number that Chinese signs spell."""
    total = group = digit = 0
    for sign in text:
        if sign in _FIGURES:
            digit = _FIGURES.index(sign)
        elif sign == "两":
            digit = 2
        elif sign == "万":
            total, group, digit = (total + group + digit) * 10_000, 0, 0
        else:
            group, digit = group + (digit or 1) * _PLACES[sign], 0
    return total + group + digit
