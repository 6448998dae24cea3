"""Read an answer: plain text, tokens, mathematics, and the conditions under which it holds."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from reward_kit.mathematics.dialects import in_one_dialect
from reward_kit.mathematics.nodes import Node, Number
from reward_kit.mathematics.number_words import spelled_number, with_digits
from reward_kit.mathematics.parser import CLOSING, AnswerParser
from reward_kit.mathematics.reading import MAX_LENGTH, TEXT_CLOSE, TEXT_OPEN, plain
from reward_kit.mathematics.tokens import Letters, Token, Unreadable, tokenise

__all__ = ["Reading", "read_answer"]

_CONDITIONS: Final = frozenset(
    "for where if when with whenever provided given such as since because assuming using unless while except".split()
)
_PAIR: Final = re.compile(r"(?<![A-Za-z\\])[a-z]{2}(?![A-Za-z])")
_WORD: Final = re.compile(r"(?<![A-Za-z\\])(?:[A-Za-z]{3}|(?i:it|is|so|he|we|of|no|up)(?![A-Za-z]))")
"""A word: three letters, or one of those that nobody would write for a product of variables."""
_LONG_WORD: Final = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{4}")
_LONGEST_AMBIGUOUS: Final = 200


class Reading(NamedTuple):
    """An answer as read."""

    node: Node
    condition: str = ""
    """What follows "for", "where", "if" …, as written, without spaces."""


def read_answer(text: str) -> Reading:
    """What `text` says; `Unreadable` where it is not mathematics, or too much of it."""
    if len(text) > MAX_LENGTH:
        raise Unreadable("too long")
    bare = plain(text)
    if bare[:1].isalpha() or bare[:2].strip(f" {TEXT_OPEN}").isalpha():
        spelled = spelled_number(bare.strip(f"{TEXT_OPEN}{TEXT_CLOSE} "))
        if spelled is not None:
            return Reading(Number(spelled))
        digits = with_digits(bare.replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " "))
        if digits is not None:
            bare = in_one_dialect(digits)
    try:
        return _parse(tokenise(bare))
    except Unreadable:
        other = _other_letters(bare)
        if other is None:
            raise
        return _parse(tokenise(bare, other))


def _other_letters(text: str) -> Letters | None:
    """How else the runs of letters in a text may be meant; `None` where there is no other way."""
    if len(text) > _LONGEST_AMBIGUOUS:
        return None
    if _PAIR.search(text) and not _WORD.search(text):
        return "products"
    return "words" if _LONG_WORD.search(text) else None


def _parse(tokens: list[Token]) -> Reading:
    """What the tokens say."""
    tokens = [token for token in tokens if token.text != '"']
    start = _condition_at(tokens, 0)
    if start == len(tokens):
        return Reading(AnswerParser(tokens).answer())
    try:
        return _without_conditions(tokens)
    except Unreadable:
        return Reading(AnswerParser(tokens[:start]).answer(), _joined_text(tokens[start:]))


def _without_conditions(tokens: list[Token]) -> Reading:
    """The answer where each condition ends at the next "and" or "or"."""
    kept: list[Token] = []
    conditions = ""
    at = 0
    while at < len(tokens):
        start = _condition_at(tokens, at)
        kept += tokens[at:start]
        at = start
        while at < len(tokens) and tokens[at].kind != "conjunction":
            at += 1
        conditions += _joined_text(tokens[start:at])
    return Reading(AnswerParser(kept).answer(), conditions)


def _joined_text(tokens: list[Token]) -> str:
    return "".join(token.text for token in tokens if token.text not in ("{", "}", ","))


def _condition_at(tokens: list[Token], begin: int) -> int:
    """Where the next condition of an answer begins: after some mathematics, and not inside brackets."""
    depth = 0
    for index in range(begin, len(tokens)):
        token = tokens[index]
        if token.kind == "mark":
            declares = token.text == "(" and index + 2 < len(tokens) and tokens[index + 2].text == "∈"
            if index and not depth and declares:
                return index  # (k ∈ Z)
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
        elif index and not depth and token.kind == "word" and token.text.lower() in _CONDITIONS:
            return index if tokens[index - 1].text != "," else index - 1
        elif index and not depth and token.text in ("forall", "iff", "implies"):
            return index
    return len(tokens)
