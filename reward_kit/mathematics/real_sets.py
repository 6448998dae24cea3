"""Sets of real numbers as lists of pieces: intervals and points, however they were written.

Intervals, unions, inequalities, set builders and `x ≠ 3` all become pieces whose ends are expressions, so that
`0 < x < 1`, `x \\in (0, 1)` and `{x | 0 < x < 1}` can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from reward_kit.mathematics.big import as_big
from reward_kit.mathematics.evaluation import parts, symbols
from reward_kit.mathematics.identity import constant
from reward_kit.mathematics.labels import KNOWN_FUNCTIONS
from reward_kit.mathematics.nodes import (
    Builder,
    Call,
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
)
from reward_kit.mathematics.pieces import (
    ALL,
    INFINITY,
    MINUS_INFINITY,
    NotReal,
    Piece,
    merged,
    order,
    shared,
    without,
)
from reward_kit.mathematics.polynomials import coefficients, degree, roots, value_at

__all__ = ["NotReal", "is_set", "pieces", "same_pieces", "unknown_calls"]

_UPWARD: Final = {"<": "(", "≤": "["}
_FLIPPED: Final = {"<": ">", "≤": "≥", ">": "<", "≥": "≤", "=": "=", "≠": "≠"}
_MAX_PIECES: Final = 60
"""Pieces that are compared each with each."""
_NUMBER_SETS: Final = frozenset("ℝℤℕℚℂ")
Same = Callable[[Node, Node], bool | None]


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


def pieces(node: Node) -> list[Piece]:
    """The pieces of the set that `node` is or describes."""
    if isinstance(node, Interval):
        return [node]
    if isinstance(node, Builder):
        return _described(node.condition)
    if isinstance(node, SetOperation):
        return _combined(node)
    if isinstance(node, Relation):
        return _solved(node)
    if isinstance(node, Sequence):
        return _of_sequence(node)
    if isinstance(node, Sum) and (sides := _difference(node)) is not None:
        return without(pieces(sides[0]), pieces(sides[1]))
    if node == Symbol("ℝ"):
        return [ALL]
    return [_point(node)]


def _difference(node: Sum) -> tuple[Node, Node] | None:
    r"""The two sets of `\mathbb{R} - \{1\}` or `\{1, 2\} - \{2\}`; `None` for any other sum."""
    if len(node.terms) != 2 or not isinstance(node.terms[1], Negative):
        return None
    whole, taken = node.terms[0], node.terms[1].value
    braces = [isinstance(side, Sequence) and side.opening == "{" for side in (whole, taken)]
    return (whole, taken) if whole == Symbol("ℝ") or all(braces) else None


def same_pieces(gold: list[Piece], answer: list[Piece], same: Same) -> bool | None:
    """Whether two sets have the same pieces, in any order."""
    if max(len(gold), len(answer)) > _MAX_PIECES:
        return None
    if len(gold) + len(answer) > 2:
        gold, answer = merged(gold), merged(answer)
    if len(gold) != len(answer):
        return False
    left, unknown = list(answer), False
    for piece in gold:
        for candidate in left:
            verdict = _same_piece(piece, candidate, same)
            if verdict:
                left.remove(candidate)
                break
            unknown = unknown or verdict is None
        else:
            return None if unknown else False
    return True


def _same_piece(gold: Piece, answer: Piece, same: Same) -> bool | None:
    if (gold.opening, gold.closing) != (answer.opening, answer.closing):
        return False
    low = same(gold.low, answer.low)
    return low and same(gold.high, answer.high)


def _point(node: Node) -> Piece:
    if isinstance(node, Sequence | Relation | Symbol):
        raise NotReal
    return Interval(node, node, "[", "]")


def _of_sequence(node: Sequence) -> list[Piece]:
    if node.opening in ("(", "["):
        if len(node.items) == 2:
            return [Interval(node.items[0], node.items[1], node.opening, node.closing)]
        raise NotReal
    if node.opening == "{":
        return [_point(item) for item in node.items]
    if node.closing in ("or", "and") and all(_is_inequality(item) for item in node.items):
        found = [pieces(item) for item in node.items]
        if node.closing == "or":
            return merged([piece for part in found for piece in part])
        kept = found[0]
        for part in found[1:]:
            kept = shared(kept, part)
        return kept
    first, *more = node.items
    if isinstance(first, Relation) and first.operators == ("≠",) and not any(map(symbols, more)):
        return without(pieces(first), [_point(item) for item in more])  # x ≠ 1, 2
    holes = [item for item in node.items if isinstance(item, Relation) and item.operators == ("≠",)]
    rest = [item for item in node.items if item not in holes]
    if holes and rest and node.closing != "or":  # 0 < x < 2 and x ≠ 1
        kept = _joined([pieces(item) for item in rest])
        for hole in holes:
            kept = shared(kept, pieces(hole))
        return kept
    return _joined([pieces(item) for item in node.items])


def _is_inequality(node: Node) -> bool:
    return isinstance(node, Relation) and all(operator in "<≤>≥≠" for operator in node.operators)


def _described(node: Node) -> list[Piece]:
    """The solutions of the condition of a set builder, whose parts all hold."""
    conditions = node.items if isinstance(node, Sequence) and not node.opening else (node,)
    found = [solved for condition in conditions if (solved := pieces(condition)) != [ALL]]
    return _joined(found) if found else [ALL]


def _joined(found: list[list[Piece]]) -> list[Piece]:
    """Either holds, or both: two half-lines that overlap are meant as what they share."""
    if len(found) == 2 and all(len(part) == 1 for part in found):
        (first,), (second,) = found
        for low, high in ((first, second), (second, first)):
            half_lines = low.high == INFINITY and high.low == MINUS_INFINITY
            if half_lines and order(low.low, high.high) < 0:
                return [Interval(low.low, high.high, low.opening, high.closing)]
    return [piece for part in found for piece in part]


def _combined(node: SetOperation) -> list[Piece]:
    if len(node.parts) > _MAX_PIECES:
        raise NotReal
    if node.operator == "∪":
        return [piece for part in node.parts for piece in pieces(part)]
    first, *rest = node.parts
    kept = pieces(first)
    for part in rest:
        kept = without(kept, pieces(part)) if node.operator == "∖" else shared(kept, pieces(part))
    return kept


# ── relations ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _solved(node: Relation) -> list[Piece]:
    """What a chain of inequalities around one unknown says about it."""
    if node.operators == ("∈",):
        return [ALL] if node.operands[1] in {Symbol(name) for name in _NUMBER_SETS} else pieces(node.operands[1])
    unknown = [index for index, operand in enumerate(node.operands) if symbols(operand) or _is_call(operand)]
    if len(unknown) == len(node.operands) == 2 and len(symbols(node)) == 1:
        difference = Sum((node.operands[0], Negative(node.operands[1])))  # x² > x
        return _solved(Relation((difference, Number(Fraction(0))), node.operators))
    if not unknown or (
        len(unknown) != 1 and not all(isinstance(node.operands[index], Symbol | Call) for index in unknown)
    ):
        raise NotReal
    middle = unknown[0] if len(unknown) == 1 else _middle(node, unknown)
    low, high, opening, closing = MINUS_INFINITY, INFINITY, "(", ")"
    low_node: Node = low
    high_node: Node = high
    for index, operator in enumerate(node.operators):
        if index + 1 < middle or index > middle:
            raise NotReal
        bound, says = (
            (node.operands[index], _FLIPPED.get(operator)) if index < middle else (node.operands[index + 1], operator)
        )
        if says == "≠":
            return without([ALL], [_point(bound)])
        if says == "=":
            return _unwrapped(node.operands[middle], _point(bound))
        if says in ("<", "≤"):
            high_node, closing = bound, ")" if says == "<" else "]"
        elif says in (">", "≥"):
            low_node, opening = bound, "(" if says == ">" else "["
        else:
            raise NotReal
    return _unwrapped(node.operands[middle], Interval(low_node, high_node, opening, closing))


def _middle(node: Relation, unknown: list[int]) -> int:
    """With letters as bounds, a < x < b is about the one in the middle, and x < a about the first."""
    return unknown[1] if len(node.operands) == 3 else unknown[0]


def _is_call(node: Node) -> bool:
    return isinstance(node, Call) and constant(node) is None


def _unwrapped(subject: Node, piece: Piece) -> list[Piece]:
    """From what is said about `-2x + 1` or `|x|` to what that says about `x`."""
    if isinstance(subject, Measure):
        subject = subject.value
    if isinstance(subject, Symbol) or subject in unknown_calls(subject):
        return [piece]
    if isinstance(subject, Call) and subject.name == "abs":
        inner = subject.arguments[0]
        return [found for part in _mirrored(piece) for found in _unwrapped(inner, part)]
    names = symbols(subject)
    if len(names) != 1:
        raise NotReal
    (name,) = names
    if (degree(subject, name) or 0) > 1:
        return _between(subject, name, piece)
    slope, offset = _linear(subject, name)
    low, high = (_shifted(end, slope, offset) for end in (piece.low, piece.high))
    if slope > 0:
        return [Interval(low, high, piece.opening, piece.closing)]
    opening = "[" if piece.closing == "]" else "("
    return [Interval(high, low, opening, "]" if piece.opening == "[" else ")")]


def _mirrored(piece: Piece) -> list[Piece]:
    if piece.low == piece.high and order(piece.low, Number(Fraction(0))) < 0:
        return []  # |x| = -1
    opening = "[" if piece.closing == "]" else "("
    if piece.low == MINUS_INFINITY:
        return [Interval(Negative(piece.high), piece.high, opening, piece.closing)]
    left_high = "]" if piece.opening == "[" else ")"
    low = MINUS_INFINITY if piece.high == INFINITY else Negative(piece.high)
    return [Interval(low, Negative(piece.low), opening, left_high), piece]


def _linear(subject: Node, name: str) -> tuple[Fraction, Fraction]:
    found = coefficients(subject, name)
    if found is None or len(found) != 2:
        raise NotReal
    return found[1], found[0]


def _between(subject: Node, name: str, piece: Piece) -> list[Piece]:
    """Where a polynomial in `name` lies in `piece`."""
    kept = [ALL]
    if piece.low != MINUS_INFINITY:
        kept = shared(kept, _positive(Sum((subject, Negative(piece.low))), name, closed=piece.opening == "["))
    if piece.high != INFINITY:
        kept = shared(kept, _positive(Sum((piece.high, Negative(subject))), name, closed=piece.closing == "]"))
    return kept


def _positive(node: Node, name: str, *, closed: bool) -> list[Piece]:
    """Where a polynomial is positive, or not negative: between its roots its sign does not change."""
    polynomial = coefficients(node, name)
    ends = roots(polynomial) if polynomial is not None else None
    if polynomial is None or ends is None:
        raise NotReal
    ends = sorted(ends, key=cmp_to_key(order))
    ends = [end for index, end in enumerate(ends) if not index or order(ends[index - 1], end)]
    bounds = [MINUS_INFINITY, *ends, INFINITY]
    found = [
        Interval(low, high, "(", ")") for low, high in pairwise(bounds) if value_at(polynomial, _inside(low, high)) > 0
    ]
    return merged([*found, *(Interval(end, end, "[", "]") for end in ends)]) if closed else found


def _inside(low: Node, high: Node) -> Fraction:
    """A number between two."""
    ends = [constant(end) if end not in (MINUS_INFINITY, INFINITY) else None for end in (low, high)]
    known = [Fraction(as_big(end).re) for end in ends if end is not None]
    if len(known) == 2:
        return (known[0] + known[1]) / 2
    if not known:
        return Fraction(0)
    return known[0] + 1 if ends[1] is None else known[0] - 1


def _shifted(end: Node, slope: Fraction, offset: Fraction) -> Node:
    if end in (INFINITY, MINUS_INFINITY):
        return end if slope > 0 else MINUS_INFINITY if end == INFINITY else INFINITY
    return Quotient(Sum((end, Number(-offset))), Number(slope))
