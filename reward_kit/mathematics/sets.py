# SPDX-License-Identifier: Apache-2.0
"""Sets of real numbers as lists of pieces: intervals and points, however they were written.

Intervals, unions, inequalities, set builders and `x ≠ 3` all become pieces whose ends are expressions, so that
`0 < x < 1`, `x \\in (0, 1)` and `{x | 0 < x < 1}` can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as PySequence
from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise
from typing import Final, TypeVar

from reward_kit.mathematics.evaluate import KNOWN_FUNCTIONS, StepBudget
from reward_kit.mathematics.nodes import (
    Builder,
    Call,
    Constant,
    Interval,
    Measure,
    Negative,
    Node,
    Number,
    Quotient,
    Relation,
    Sequence,
    SetOperation,
    Sum,
    Symbol,
    parts,
    symbols,
)
from reward_kit.mathematics.numeric import constant
from reward_kit.mathematics.polynomials import coefficients, degree, roots, value_at
from reward_kit.mathematics.values import Undecided, Value, as_big, as_fraction, close, is_real

__all__ = ["NotReal", "RealSets", "all_same", "is_set", "same_members", "unknown_calls"]

T = TypeVar("T")


_INFINITY: Final = Constant("inf")
_MINUS_INFINITY: Final = Negative(_INFINITY)
_ALL: Final = Interval(_MINUS_INFINITY, _INFINITY, "(", ")")
_FLIPPED: Final = {"<": ">", "≤": "≥", ">": "<", "≥": "≤", "=": "=", "≠": "≠"}
_MAX_PIECES: Final = 60
"""Pieces that are compared each with each."""
_NUMBER_SETS: Final = frozenset("ℝℤℕℚℂ")
_MOST: Final = 200
"""Pieces that a set may be cut into."""

Piece = Interval
"""An interval; a point is one that is closed and as long as nothing."""
Same = Callable[[Node, Node], bool | None]


class NotReal(Exception):
    """What was read is not a set of real numbers."""


def is_set(node: Node) -> bool:
    """Whether `node` can only be a set of real numbers: not a point, a tuple or a number."""
    if isinstance(node, Interval | Builder):
        return True
    if isinstance(node, SetOperation):
        return True
    if isinstance(node, Relation):
        return any(operator in "<≤>≥≠∈" for operator in node.operators)
    if isinstance(node, Sum):
        return _difference(node) is not None
    return isinstance(node, Sequence) and not node.opening and any(is_set(item) for item in node.items)


def unknown_calls(node: Node) -> frozenset[Node]:
    """The values of unknown functions, such as f(2), in `node`: what is said of one is not said of another."""
    return frozenset(part for part in parts(node) if isinstance(part, Call) and part.name not in KNOWN_FUNCTIONS)


def all_same(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all are; `None` where that is not known of one, and none is not."""
    known = True
    for verdict in verdicts:
        if verdict is False:
            return False
        known = known and verdict is not None
    return True if known else None


def same_members(
    gold: PySequence[T], answer: PySequence[T], same: Callable[[T, T], bool | None], *, once: bool
) -> bool | None:
    """Whether each thing of either list is one of the other's, each of which counts `once` or any number of times.

    Asked both ways: what one side leaves open, because a value of it is not defined, the other side may decide.
    """
    forth = _covered(gold, answer, same, once=once)
    if forth is False or (once and forth):
        return forth
    return all_same((forth, _covered(answer, gold, lambda given, right: same(right, given), once=once)))


def _covered(
    items: PySequence[T], by: PySequence[T], same: Callable[[T, T], bool | None], *, once: bool
) -> bool | None:
    known, left = True, list(by)
    for item in items:
        verdicts = [same(item, other) for other in left]
        if True in verdicts:
            if once:
                del left[verdicts.index(True)]
        elif None not in verdicts:
            return False
        else:
            known = False
    return True if known else None


class RealSets:
    """Reads and compares sets; what their ends are worth is worked out at the cost of one budget."""

    def __init__(self, budget: StepBudget) -> None:
        self._budget = budget

    def pieces(self, node: Node) -> list[Piece]:
        """The pieces of the set that `node` is or describes."""
        if isinstance(node, Interval):
            return [node]
        if isinstance(node, Builder):
            return self._described(node.condition)
        if isinstance(node, SetOperation):
            return self._combined(node)
        if isinstance(node, Relation):
            return self._solved(node)
        if isinstance(node, Sequence):
            return self._of_sequence(node)
        if isinstance(node, Sum) and (sides := _difference(node)) is not None:
            return self._without(self.pieces(sides[0]), self.pieces(sides[1]))
        if node == Symbol("ℝ"):
            return [_ALL]
        return [_point(node)]

    def same_pieces(self, gold: list[Piece], answer: list[Piece], same: Same) -> bool | None:
        """Whether two sets have the same pieces, in any order."""
        if max(len(gold), len(answer)) > _MAX_PIECES:
            return None
        if len(gold) + len(answer) > 2:
            gold, answer = self._merged(gold), self._merged(answer)
        if len(gold) != len(answer):
            return False
        return same_members(gold, answer, lambda piece, other: _same_piece(piece, other, same), once=True)

    # ── sets as they are written ─────────────────────────────────────────────────────────────────────────────────────

    def _of_sequence(self, node: Sequence) -> list[Piece]:
        if node.opening in ("(", "["):
            if len(node.items) == 2:
                return [Interval(node.items[0], node.items[1], node.opening, node.closing)]
            raise NotReal
        if node.opening == "{":
            return [_point(item) for item in node.items]
        if node.closing in ("or", "and") and all(_is_inequality(item) for item in node.items):
            found = [self.pieces(item) for item in node.items]
            if node.closing == "or":
                return self._merged([piece for part in found for piece in part])
            kept = found[0]
            for part in found[1:]:
                kept = self._shared(kept, part)
            return kept
        first, *more = node.items
        if isinstance(first, Relation) and first.operators == ("≠",) and not any(map(symbols, more)):
            return self._without(self.pieces(first), [_point(item) for item in more])  # x ≠ 1, 2
        holes = [item for item in node.items if isinstance(item, Relation) and item.operators == ("≠",)]
        rest = [item for item in node.items if item not in holes]
        if holes and rest and node.closing != "or":  # 0 < x < 2 and x ≠ 1
            kept = self._joined([self.pieces(item) for item in rest])
            for hole in holes:
                kept = self._shared(kept, self.pieces(hole))
            return kept
        return self._joined([self.pieces(item) for item in node.items])

    def _described(self, node: Node) -> list[Piece]:
        """The solutions of the condition of a set builder, whose parts all hold."""
        conditions = node.items if isinstance(node, Sequence) and not node.opening else (node,)
        found = [solved for condition in conditions if (solved := self.pieces(condition)) != [_ALL]]
        return self._joined(found) if found else [_ALL]

    def _joined(self, found: list[list[Piece]]) -> list[Piece]:
        """Either holds, or both: two half-lines that overlap are meant as what they share."""
        if len(found) == 2 and all(len(part) == 1 for part in found):
            (first,), (second,) = found
            for low, high in ((first, second), (second, first)):
                half_lines = low.high == _INFINITY and high.low == _MINUS_INFINITY
                if half_lines and self._order(low.low, high.high) < 0:
                    return [Interval(low.low, high.high, low.opening, high.closing)]
        return [piece for part in found for piece in part]

    def _combined(self, node: SetOperation) -> list[Piece]:
        if len(node.parts) > _MAX_PIECES:
            raise NotReal
        if node.operator == "∪":
            return [piece for part in node.parts for piece in self.pieces(part)]
        first, *rest = node.parts
        kept = self.pieces(first)
        for part in rest:
            kept = (
                self._without(kept, self.pieces(part))
                if node.operator == "∖"
                else self._shared(kept, self.pieces(part))
            )
        return kept

    # ── relations ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _solved(self, node: Relation) -> list[Piece]:
        """What a chain of inequalities around one unknown says about it."""
        if node.operators == ("∈",):
            return (
                [_ALL] if node.operands[1] in {Symbol(name) for name in _NUMBER_SETS} else self.pieces(node.operands[1])
            )
        unknown = [index for index, operand in enumerate(node.operands) if symbols(operand) or self._is_call(operand)]
        if len(unknown) == len(node.operands) == 2 and len(symbols(node)) == 1:
            difference = Sum((node.operands[0], Negative(node.operands[1])))  # x² > x
            return self._solved(Relation((difference, Number(Fraction(0))), node.operators))
        if not unknown or (
            len(unknown) != 1 and not all(isinstance(node.operands[index], Symbol | Call) for index in unknown)
        ):
            raise NotReal
        middle = unknown[0] if len(unknown) == 1 else _middle(node, unknown)
        low, high, opening, closing = _MINUS_INFINITY, _INFINITY, "(", ")"
        low_node: Node = low
        high_node: Node = high
        for index, operator in enumerate(node.operators):
            if index + 1 < middle or index > middle:
                raise NotReal
            bound, says = (
                (node.operands[index], _FLIPPED.get(operator))
                if index < middle
                else (node.operands[index + 1], operator)
            )
            if says == "≠":
                return self._without([_ALL], [_point(bound)])
            if says == "=":
                return self._unwrapped(node.operands[middle], _point(bound))
            if says in ("<", "≤"):
                high_node, closing = bound, ")" if says == "<" else "]"
            elif says in (">", "≥"):
                low_node, opening = bound, "(" if says == ">" else "["
            else:
                raise NotReal
        return self._unwrapped(node.operands[middle], Interval(low_node, high_node, opening, closing))

    def _is_call(self, node: Node) -> bool:
        return isinstance(node, Call) and constant(node, self._budget) is None

    def _unwrapped(self, subject: Node, piece: Piece) -> list[Piece]:
        """From what is said about `-2x + 1` or `|x|` to what that says about `x`."""
        if isinstance(subject, Measure):
            subject = subject.value
        if isinstance(subject, Symbol) or subject in unknown_calls(subject):
            return [piece]
        if isinstance(subject, Call) and subject.name == "abs":
            inner = subject.arguments[0]
            return [found for part in self._mirrored(piece) for found in self._unwrapped(inner, part)]
        names = symbols(subject)
        if len(names) != 1:
            raise NotReal
        (name,) = names
        if (degree(subject, name) or 0) > 1:
            return self._between(subject, name, piece)
        slope, offset = self._linear(subject, name)
        low, high = (_shifted(end, slope, offset) for end in (piece.low, piece.high))
        if slope > 0:
            return [Interval(low, high, piece.opening, piece.closing)]
        opening = "[" if piece.closing == "]" else "("
        return [Interval(high, low, opening, "]" if piece.opening == "[" else ")")]

    def _mirrored(self, piece: Piece) -> list[Piece]:
        if piece.low == piece.high and self._order(piece.low, Number(Fraction(0))) < 0:
            return []  # |x| = -1
        opening = "[" if piece.closing == "]" else "("
        if piece.low == _MINUS_INFINITY:
            return [Interval(Negative(piece.high), piece.high, opening, piece.closing)]
        left_high = "]" if piece.opening == "[" else ")"
        low = _MINUS_INFINITY if piece.high == _INFINITY else Negative(piece.high)
        return [Interval(low, Negative(piece.low), opening, left_high), piece]

    def _linear(self, subject: Node, name: str) -> tuple[Fraction, Fraction]:
        found = coefficients(subject, name, self._budget)
        if found is None or len(found) != 2:
            raise NotReal
        return found[1], found[0]

    def _between(self, subject: Node, name: str, piece: Piece) -> list[Piece]:
        """Where a polynomial in `name` lies in `piece`."""
        kept = [_ALL]
        if piece.low != _MINUS_INFINITY:
            kept = self._shared(
                kept, self._positive(Sum((subject, Negative(piece.low))), name, closed=piece.opening == "[")
            )
        if piece.high != _INFINITY:
            kept = self._shared(
                kept, self._positive(Sum((piece.high, Negative(subject))), name, closed=piece.closing == "]")
            )
        return kept

    def _positive(self, node: Node, name: str, *, closed: bool) -> list[Piece]:
        """Where a polynomial is positive, or not negative: between its roots its sign does not change."""
        polynomial = coefficients(node, name, self._budget)
        ends = roots(polynomial) if polynomial is not None else None
        if polynomial is None or ends is None:
            raise NotReal
        ends = sorted(ends, key=cmp_to_key(self._order))
        ends = [end for index, end in enumerate(ends) if not index or self._order(ends[index - 1], end)]
        bounds = [_MINUS_INFINITY, *ends, _INFINITY]
        found = [
            Interval(low, high, "(", ")")
            for low, high in pairwise(bounds)
            if value_at(polynomial, self._inside(low, high)) > 0
        ]
        return self._merged([*found, *(Interval(end, end, "[", "]") for end in ends)]) if closed else found

    def _inside(self, low: Node, high: Node) -> Fraction:
        """Some number between `low` and `high`, each of which may be infinite: to try whether it belongs to a set."""
        ends = [constant(end, self._budget) if end not in (_MINUS_INFINITY, _INFINITY) else None for end in (low, high)]
        known = [as_fraction(end) for end in ends if end is not None]
        if len(known) == 2:
            return (known[0] + known[1]) / 2
        if not known:
            return Fraction(0)
        return known[0] + 1 if ends[1] is None else known[0] - 1

    # ── pieces of the real line ──────────────────────────────────────────────────────────────────────────────────────

    def _shared(self, left: list[Piece], right: list[Piece]) -> list[Piece]:
        """What is in both sets."""
        if len(left) * len(right) > _MOST:
            raise NotReal
        found = (self._overlap(first, second) for first in left for second in right)
        return [piece for piece in found if piece is not None]

    def _without(self, kept: list[Piece], holes: list[Piece]) -> list[Piece]:
        """What is in the first set and not in the second."""
        for hole in holes:
            below = Interval(_MINUS_INFINITY, hole.low, "(", ")" if hole.opening == "[" else "]")
            above = Interval(hole.high, _INFINITY, "(" if hole.closing == "]" else "[", ")")
            sides = [side for side in (below, above) if side.low != side.high]
            kept = self._shared(kept, sides)
        return kept

    def _overlap(self, first: Piece, second: Piece) -> Piece | None:
        lows, highs = self._order(first.low, second.low), self._order(first.high, second.high)
        low, opening = (first.low, first.opening) if lows >= 0 else (second.low, second.opening)
        high, closing = (first.high, first.closing) if highs <= 0 else (second.high, second.closing)
        if not lows and "(" in (first.opening, second.opening):
            opening = "("
        if not highs and ")" in (first.closing, second.closing):
            closing = ")"
        length = self._order(low, high)
        if length > 0 or (length == 0 and opening + closing != "[]"):
            return None
        return Interval(low, high, opening, closing)

    def _merged(self, found: list[Piece]) -> list[Piece]:
        """Pieces in order, those that touch made one; as they are where their ends cannot be ordered."""
        try:
            ordered: list[Piece] = []
            for piece in found:
                at = sum(self._begins_before(other, piece) for other in ordered)
                ordered.insert(at, piece)
            merged = ordered[:1]
            for piece in ordered[1:]:
                last = merged[-1]
                gap = self._order(last.high, piece.low)
                touching = gap == 0 and (last.closing == "]" or piece.opening == "[")
                if gap > 0 or touching:
                    merged[-1] = self._both(last, piece)
                else:
                    merged.append(piece)
        except NotReal:
            return found
        return merged

    def _begins_before(self, first: Piece, second: Piece) -> bool:
        """Whether one piece begins before another; of two that begin at one number, the one that holds it does."""
        order = self._order(first.low, second.low)
        return order < 0 or (not order and first.opening == "[" and second.opening == "(")

    def _both(self, first: Piece, second: Piece) -> Piece:
        """One piece of two that touch, the first of which begins no later."""
        opening = "[" if second.opening == "[" and not self._order(first.low, second.low) else first.opening
        longer = self._order(first.high, second.high)
        if longer < 0:
            return Interval(first.low, second.high, opening, second.closing)
        closing = "]" if second.closing == "]" and not longer else first.closing
        return Interval(first.low, first.high, opening, closing)

    def _order(self, left: Node, right: Node) -> int:
        """-1, 0 or 1 as `left` is below, at or above `right`."""
        if left in (_MINUS_INFINITY, _INFINITY) or right in (_MINUS_INFINITY, _INFINITY):
            return _rank(left) - _rank(right)
        values = constant(left, self._budget), constant(right, self._budget)
        if values[0] is None or values[1] is None or not is_real(values[0]) or not is_real(values[1]):
            raise NotReal
        return _compared(values[0], values[1])


def _rank(end: Node) -> int:
    return -1 if end == _MINUS_INFINITY else int(end == _INFINITY)


def _compared(left: Value, right: Value) -> int:
    try:
        if close(left, right):
            return 0
    except Undecided as error:
        raise NotReal from error
    return -1 if as_big(left).re < as_big(right).re else 1


def _difference(node: Sum) -> tuple[Node, Node] | None:
    r"""The two sets of `\mathbb{R} - \{1\}` or `\{1, 2\} - \{2\}`; `None` for any other sum."""
    if len(node.terms) != 2 or not isinstance(node.terms[1], Negative):
        return None
    whole, taken = node.terms[0], node.terms[1].value
    braces = [isinstance(side, Sequence) and side.opening == "{" for side in (whole, taken)]
    return (whole, taken) if whole == Symbol("ℝ") or all(braces) else None


def _same_piece(gold: Piece, answer: Piece, same: Same) -> bool | None:
    if (gold.opening, gold.closing) != (answer.opening, answer.closing):
        return False
    return all_same(same(left, right) for left, right in ((gold.low, answer.low), (gold.high, answer.high)))


def _point(node: Node) -> Piece:
    if isinstance(node, Sequence | Relation | Symbol):
        raise NotReal
    return Interval(node, node, "[", "]")


def _is_inequality(node: Node) -> bool:
    return isinstance(node, Relation) and all(operator in "<≤>≥≠" for operator in node.operators)


def _middle(node: Relation, unknown: list[int]) -> int:
    """With letters as bounds, a < x < b is about the one in the middle, and x < a about the first."""
    return unknown[1] if len(node.operands) == 3 else unknown[0]


def _shifted(end: Node, slope: Fraction, offset: Fraction) -> Node:
    if end in (_INFINITY, _MINUS_INFINITY):
        return end if slope > 0 else _MINUS_INFINITY if end == _INFINITY else _INFINITY
    return Quotient(Sum((end, Number(-offset))), Number(slope))
