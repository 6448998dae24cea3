"""The unit that an answer names."""

from __future__ import annotations

import re
from typing import Final

from reward_kit.rewards._support.mathematics.nodes import Degrees, Measure, Node, Percent, Relation
from reward_kit.rewards._support.mathematics.reader import read_answer
from reward_kit.rewards._support.mathematics.tokens import Unreadable
from reward_kit.rewards._support.mathematics.vocabulary import singular

__all__ = ["unit_of"]

_CURRENCY: Final = re.compile(r"([$€£¥])\s?-?\d(?![^$]*\$)")
_NAMES: Final = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}


def unit_of(text: str) -> str:
    """The unit in `text`, in the singular; empty where it names none."""
    if money := _CURRENCY.search(text):
        return _NAMES[money[1]]
    try:
        return _unit(read_answer(text).node)
    except Unreadable:
        return ""


def _unit(node: Node) -> str:
    if isinstance(node, Relation):
        return _unit(node.operands[-1])
    if isinstance(node, Percent):
        return "percent"
    if isinstance(node, Degrees):
        return "degree"
    return singular(node.unit) if isinstance(node, Measure) else ""
