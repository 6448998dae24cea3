# SPDX-License-Identifier: Apache-2.0
"""What an answer is once it has been read: numbers, expressions, and what is built of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final, NamedTuple, get_args

__all__ = [
    "CASES",
    "OTHERWISE",
    "Builder",
    "Call",
    "Constant",
    "Degrees",
    "InBase",
    "Interval",
    "Matrix",
    "Measure",
    "Negative",
    "Node",
    "Number",
    "Opaque",
    "Percent",
    "PlusMinus",
    "Power",
    "Product",
    "Quotient",
    "Ratio",
    "Relation",
    "Sequence",
    "SetOperation",
    "Sum",
    "Symbol",
    "Words",
    "opaque",
    "parts",
    "symbols",
]


class Number(NamedTuple):
    """A number as it is written: its exact value, and how many digits were given, which say how exact it is meant."""

    value: Fraction
    decimals: int | None = None
    """Digits after the point; `None` where there is no point, so that the number is exact."""
    digits: int = 0
    """Significant digits, for a number with a point."""
    grouped: str = ""
    """As written, where a comma in it was read as a thousands separator."""


class Symbol(NamedTuple):
    """A variable, with its subscript and primes."""

    name: str


class Constant(NamedTuple):
    """π, e, i or infinity: `pi`, `e`, `i`, `inf`."""

    name: str


class Sum(NamedTuple):
    """A sum of terms; a term that is subtracted is a `Negative`."""

    terms: tuple[Node, ...]


class Product(NamedTuple):
    """A product of factors, with or without signs between them."""

    factors: tuple[Node, ...]


class Quotient(NamedTuple):
    """A fraction, or a division: `over` / `under`."""

    over: Node
    under: Node


class Power(NamedTuple):
    """A base to an exponent."""

    base: Node
    exponent: Node


class Negative(NamedTuple):
    """A value with a minus sign before it."""

    value: Node


class PlusMinus(NamedTuple):
    """`left ± right`, or `∓` where `upper` is -1."""

    left: Node | None
    right: Node
    upper: int = 1


class Call(NamedTuple):
    """A function of arguments: one of `functions.FUNCTIONS`, or a few that the evaluation knows, or an unknown one."""

    name: str
    arguments: tuple[Node, ...]


class Percent(NamedTuple):
    """A value with a percent sign behind it: so many hundredths."""

    value: Node


class Degrees(NamedTuple):
    """An angle that is given in degrees, such as `90°`."""

    value: Node


class Measure(NamedTuple):
    """A value with its unit."""

    value: Node
    unit: str
    product: Node | None = None
    """What it is if the letters of the unit are variables."""


class InBase(NamedTuple):
    """Digits in a base, `204_5`."""

    digits: str
    base: int


class Opaque(NamedTuple):
    """Mathematics that is compared as written: sums, integrals, limits."""

    text: str


class Ratio(NamedTuple):
    """`1 : 2 : 3`, or a time."""

    parts: tuple[Node, ...]
    clock: bool = False
    """Whether it may be a time of day: two or three whole numbers, the later ones written with two digits."""


class Sequence(NamedTuple):
    """Items in brackets, or in none: `opening` is empty, and `closing` says "or" where they are alternatives."""

    items: tuple[Node, ...]
    opening: str = ""
    closing: str = ""


class Interval(NamedTuple):
    """All real numbers between two; only made where no point can be meant."""

    low: Node
    high: Node
    opening: str
    closing: str


class Relation(NamedTuple):
    """A chain `a < b = c`; the operators are among = < ≤ > ≥ ≠ ≈ ∈."""

    operands: tuple[Node, ...]
    operators: tuple[str, ...]


class Builder(NamedTuple):
    """`{ what | condition }`."""

    what: Node
    condition: Node


class SetOperation(NamedTuple):
    """Sets joined by one of ∪ ∩ or minus signs of sets."""

    operator: str
    parts: tuple[Node, ...]


class Matrix(NamedTuple):
    """Rows of a matrix; a column vector has rows of one."""

    rows: tuple[tuple[Node, ...], ...]


class Words(NamedTuple):
    """An answer in words that is no formula, such as "Tuesday" or "no solution"."""

    text: str


Node = (
    Number
    | Symbol
    | Constant
    | Sum
    | Product
    | Quotient
    | Power
    | Negative
    | PlusMinus
    | Call
    | Percent
    | Degrees
    | Measure
    | InBase
    | Opaque
    | Ratio
    | Sequence
    | Interval
    | Relation
    | Builder
    | SetOperation
    | Matrix
    | Words
)


CASES: Final = "cases"
"""The opening of a sequence of `Builder`s that is a function by pieces."""
OTHERWISE: Final = Symbol("otherwise")
"""The condition of the piece for all other values."""


def _equal(left: tuple[object, ...], right: object) -> bool:
    return type(left) is type(right) and tuple.__eq__(left, right)


def _unequal(left: tuple[object, ...], right: object) -> bool:
    return not _equal(left, right)


# Named tuples compare like tuples, whatever their names: without this, 3x would equal 3 + x, and x/2 equal x^2.
for _kind in get_args(Node):
    _kind.__eq__, _kind.__ne__, _kind.__hash__ = _equal, _unequal, tuple.__hash__

_NODE_TYPES: Final = frozenset(get_args(Node))


def parts(node: Node) -> Iterator[Node]:
    """`node` and all nodes inside it."""
    waiting: list[Any] = [node]
    while waiting:
        found = waiting.pop()
        if type(found) in _NODE_TYPES:
            yield found
            waiting.extend(reversed(found))
        elif type(found) is tuple:
            waiting.extend(reversed(found))


def symbols(node: Node) -> frozenset[str]:
    """The names of the variables in `node`."""
    return frozenset(part.name for part in parts(node) if isinstance(part, Symbol))


def opaque(node: Node) -> bool:
    """Whether `node` holds something that is only compared as written."""
    return any(isinstance(part, Opaque) for part in parts(node))
