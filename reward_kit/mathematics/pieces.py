"""Pieces of the real line, and what is left of them: their order, what they share, what one takes from the others."""

from __future__ import annotations

from typing import Final

from reward_kit.mathematics.big import Undecided, Value, as_big, close, is_real
from reward_kit.mathematics.identity import constant
from reward_kit.mathematics.nodes import Constant, Interval, Negative, Node

__all__ = ["ALL", "INFINITY", "MINUS_INFINITY", "NotReal", "Piece", "merged", "order", "shared", "without"]

INFINITY: Final = Constant("inf")
MINUS_INFINITY: Final = Negative(INFINITY)
ALL: Final = Interval(MINUS_INFINITY, INFINITY, "(", ")")
_MOST: Final = 200
"""Pieces that a set may be cut into."""

Piece = Interval
"""An interval; a point is one that is closed and as long as nothing."""


class NotReal(Exception):
    """What was read is not a set of real numbers."""


def shared(left: list[Piece], right: list[Piece]) -> list[Piece]:
    """What is in both sets."""
    if len(left) * len(right) > _MOST:
        raise NotReal
    found = (_overlap(first, second) for first in left for second in right)
    return [piece for piece in found if piece is not None]


def without(kept: list[Piece], holes: list[Piece]) -> list[Piece]:
    """What is in the first set and not in the second."""
    for hole in holes:
        below = Interval(MINUS_INFINITY, hole.low, "(", ")" if hole.opening == "[" else "]")
        above = Interval(hole.high, INFINITY, "(" if hole.closing == "]" else "[", ")")
        sides = [side for side in (below, above) if side.low != side.high]
        kept = shared(kept, sides)
    return kept


def _overlap(first: Piece, second: Piece) -> Piece | None:
    lows, highs = order(first.low, second.low), order(first.high, second.high)
    low, opening = (first.low, first.opening) if lows >= 0 else (second.low, second.opening)
    high, closing = (first.high, first.closing) if highs <= 0 else (second.high, second.closing)
    if not lows and "(" in (first.opening, second.opening):
        opening = "("
    if not highs and ")" in (first.closing, second.closing):
        closing = ")"
    length = order(low, high)
    if length > 0 or (length == 0 and opening + closing != "[]"):
        return None
    return Interval(low, high, opening, closing)


def order(left: Node, right: Node) -> int:
    """-1, 0 or 1 as `left` is below, at or above `right`."""
    if left in (MINUS_INFINITY, INFINITY) or right in (MINUS_INFINITY, INFINITY):
        return _rank(left) - _rank(right)
    values = constant(left), constant(right)
    if values[0] is None or values[1] is None or not is_real(values[0]) or not is_real(values[1]):
        raise NotReal
    return _compared(values[0], values[1])


def _rank(end: Node) -> int:
    return -1 if end == MINUS_INFINITY else int(end == INFINITY)


def _compared(left: Value, right: Value) -> int:
    try:
        if close(left, right):
            return 0
    except Undecided as error:
        raise NotReal from error
    return -1 if as_big(left).re < as_big(right).re else 1


def merged(found: list[Piece]) -> list[Piece]:
    """Pieces in order, those that touch made one; as they are where their ends cannot be ordered."""
    try:
        ordered: list[Piece] = []
        for piece in found:
            at = sum(order(other.low, piece.low) < 0 for other in ordered)
            ordered.insert(at, piece)
        merged = ordered[:1]
        for piece in ordered[1:]:
            last = merged[-1]
            gap = order(last.high, piece.low)
            touching = gap == 0 and (last.closing == "]" or piece.opening == "[")
            if gap > 0 or touching:
                merged[-1] = _both(last, piece)
            else:
                merged.append(piece)
    except NotReal:
        return found
    return merged


def _both(first: Piece, second: Piece) -> Piece:
    """One piece of two that touch, the first of which begins no later."""
    opening = "[" if second.opening == "[" and not order(first.low, second.low) else first.opening
    longer = order(first.high, second.high)
    if longer < 0:
        return Interval(first.low, second.high, opening, second.closing)
    closing = "]" if second.closing == "]" and not longer else first.closing
    return Interval(first.low, first.high, opening, closing)
