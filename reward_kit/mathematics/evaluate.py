# SPDX-License-Identifier: Apache-2.0
"""The value of an expression at a point: an exact fraction where it can be one, sixty digits where not."""

from __future__ import annotations

import decimal
import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from reward_kit.mathematics.functions import (
    FUNCTIONS,
    MAX_BITS,
    PI,
    E,
    binomial,
    factorial,
    power,
    root,
)
from reward_kit.mathematics.nodes import (
    Call,
    Constant,
    Degrees,
    InBase,
    Measure,
    Negative,
    Node,
    Number,
    Opaque,
    Percent,
    Power,
    Product,
    Quotient,
    Ratio,
    Sequence,
    Sum,
    Symbol,
)
from reward_kit.mathematics.values import ZERO, Big, Undecided, Value, as_big, is_real

__all__ = [
    "KNOWN_FUNCTIONS",
    "LARGE_WHOLE_POINTS",
    "MAX_STEPS",
    "POINTS",
    "WHOLE_POINTS",
    "Exhausted",
    "Point",
    "StepBudget",
    "evaluate",
]

MAX_STEPS: Final = 60_000
"""The steps of one comparison: a fraction of a second."""
_COSTS: Final[dict[type, int]] = {Call: 20, Power: 10}
_RANGES: Final = (
    (97, 245), (-245, -30), (8, 90), (300, 1100), (20, 80), (10, 95), (-1100, -300), (-95, -5), (-250, 250),
    (5000, 9000),
)  # fmt: skip
"""Numerators over 97: where the variables of each point lie. Both signs, small and large, and one of mixed signs."""
POINTS: Final = len(_RANGES)
WHOLE_POINTS: Final = range(POINTS, POINTS + 8)
"""Points of small whole numbers, for what is defined only there."""
LARGE_WHOLE_POINTS: Final = range(POINTS + 8, POINTS + 24)
"""Points of larger whole numbers, for what changes in steps."""
_LARGEST_WHOLE: Final = 9
_LARGER_WHOLE: Final = 60


class Exhausted(Exception):
    """A budget is used up."""


class StepBudget:
    """What one comparison may cost, in steps of some microseconds: the same on every machine, busy or not."""

    __slots__ = ("_left",)

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self._left = steps

    def spend(self, cost: int) -> None:
        """Use up some of the steps; `Exhausted` where none are left."""
        self._left -= cost
        if self._left < 0:
            raise Exhausted


class Point:
    """Values of all variables, drawn from their names: the same name has the same value in both answers.

    What is worked out at a point is paid from its budget.
    """

    __slots__ = ("budget", "common_log", "index", "values")

    def __init__(
        self, budget: StepBudget, index: int = 0, *, common_log: bool = False, values: dict[str, Value] | None = None
    ) -> None:
        self.budget = budget
        self.index = index
        self.common_log = common_log
        """Whether `log` is the logarithm to base ten."""
        self.values = values or {}

    def value_of(self, name: str) -> Value:
        """The value of the variable `name`."""
        found = self.values.get(name)
        if found is None:
            draw = zlib.crc32(f"{self.index} {name}".encode())
            if self.index >= POINTS:
                found = Fraction(1 + draw % (_LARGEST_WHOLE if self.index in WHOLE_POINTS else _LARGER_WHOLE))
            else:
                low, high = _RANGES[self.index]
                found = Fraction(low + draw % (high - low), 97)
            self.values[name] = found
        return found


def evaluate(node: Node, point: Point) -> Value:
    """The value of `node`; `Undecided` where it has none, or none within bounds."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise Undecided("no expression")
    point.budget.spend(_COSTS.get(type(node), 1))
    try:
        value: Value = handler(node, point)
    except (ZeroDivisionError, decimal.DecimalException, OverflowError, ValueError) as error:
        raise Undecided(str(error)) from error
    return _bounded(value)


def _bounded(value: Value) -> Value:
    """Long fractions are slow, and sixty digits of them tell as much."""
    long = isinstance(value, Fraction) and value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS
    return as_big(value) if long else value


def _sum(node: Sum, point: Point) -> Value:
    total = evaluate(node.terms[0], point)
    for term in node.terms[1:]:
        total = _bounded(total + evaluate(term, point))
    return total


def _product(node: Product, point: Point) -> Value:
    total = evaluate(node.factors[0], point)
    for factor in node.factors[1:]:
        total = _bounded(total * evaluate(factor, point))
    return total


def _quotient(node: Quotient, point: Point) -> Value:
    under = evaluate(node.under, point)
    if not under:
        raise Undecided("a division by zero")
    return evaluate(node.over, point) / under


def _power(node: Power, point: Point) -> Value:
    base, exponent = node.base, evaluate(node.exponent, point)
    if base == Constant("e"):
        return FUNCTIONS["exp"](exponent)
    return power(evaluate(base, point), exponent)


def _constant(node: Constant, point: Point) -> Value:
    if node.name == "pi":
        return PI
    if node.name == "e":
        return E
    if node.name == "i":
        return Big(ZERO, decimal.Decimal(1))
    raise Undecided("infinity")


def _call(node: Call, point: Point) -> Value:
    values = [evaluate(argument, point) for argument in node.arguments]
    several = _SEVERAL.get(node.name)
    if several is not None:
        return several(*values) if _fits(node.name, len(values)) else _unknown(node.name, values)
    function = FUNCTIONS.get(node.name)
    if function is None or len(values) != 1:
        return _unknown(node.name, values)
    if node.name == "log" and point.common_log:
        function = FUNCTIONS["lg"]
    return function(values[0])


def _unknown(name: str, values: list[Value]) -> Value:
    """A function nobody knows has some value: the same for the same name and arguments."""
    arguments = ",".join(f"{as_big(value).re:.30e}{as_big(value).im:.30e}" for value in values)
    return Fraction(zlib.crc32(f"{name}({arguments})".encode()) + 1, 2**31)


def _root(value: Value, degree: Value) -> Value:
    if isinstance(degree, Fraction) and degree.denominator == 1 and degree > 0:
        return root(value, degree.numerator)
    return power(value, Fraction(1) / degree)


def _extreme(pick: Callable[..., Fraction], *values: Value) -> Value:
    if all(isinstance(value, Fraction) for value in values):
        return pick(values)
    if not all(is_real(value) for value in values):
        raise Undecided("the largest of numbers that are not real")
    return Big(pick(as_big(value).re for value in values))  # type: ignore[arg-type]


def _whole(function: Callable[..., int], *values: Value) -> Value:
    if not all(isinstance(value, Fraction) and value.denominator == 1 for value in values):
        raise Undecided("a divisor of numbers that are not whole")
    return Fraction(function(*(int(value) for value in values)))  # type: ignore[arg-type]


_SEVERAL: Final[dict[str, Callable[..., Value]]] = {
    "root": _root,
    "binom": binomial,
    "factorial": factorial,
    "max": lambda *values: _extreme(max, *values),
    "min": lambda *values: _extreme(min, *values),
    "gcd": lambda *values: _whole(math.gcd, *values),
    "lcm": lambda *values: _whole(math.lcm, *values),
}

KNOWN_FUNCTIONS: Final = frozenset(FUNCTIONS) | frozenset(_SEVERAL)
"""Functions that can be worked out."""


def _fits(name: str, count: int) -> bool:
    return count == {"root": 2, "binom": 2, "factorial": 1}.get(name, count)


def _in_base(node: InBase, point: Point) -> Value:
    return Fraction(int(node.digits, node.base))


def _hidden(node: Opaque, point: Point) -> Value:
    return _unknown(node.text, [])


def _ratio(node: Ratio, point: Point) -> Value:
    if len(node.parts) != 2:
        raise Undecided("a ratio of more than two")
    return _quotient(Quotient(*node.parts), point)


def _single(node: Sequence, point: Point) -> Value:
    if len(node.items) != 1:
        raise Undecided("a sequence")
    return evaluate(node.items[0], point)


_HANDLERS: Final[dict[type, Callable[[Any, Point], Value]]] = {
    Number: lambda node, point: node.value,
    Symbol: lambda node, point: point.value_of(node.name),
    Constant: _constant,
    Sum: _sum,
    Product: _product,
    Quotient: _quotient,
    Power: _power,
    Negative: lambda node, point: -evaluate(node.value, point),
    Call: _call,
    Percent: lambda node, point: evaluate(node.value, point) / Fraction(100),
    Degrees: lambda node, point: evaluate(node.value, point) * PI / Fraction(180),
    Measure: lambda node, point: evaluate(node.value, point),
    InBase: _in_base,
    Opaque: _hidden,
    Ratio: _ratio,
    Sequence: _single,
}
