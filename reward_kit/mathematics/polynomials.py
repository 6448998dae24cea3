# SPDX-License-Identifier: Apache-2.0
"""Polynomials in one variable: whether an expression is one, its coefficients, and its real roots."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isqrt
from typing import Final

from reward_kit.mathematics.evaluate import Point, StepBudget, evaluate
from reward_kit.mathematics.nodes import (
    Call,
    Measure,
    Negative,
    Node,
    Number,
    Power,
    Product,
    Quotient,
    Sequence,
    Sum,
    Symbol,
    symbols,
)
from reward_kit.mathematics.values import Undecided

__all__ = ["coefficients", "degree", "roots", "value_at"]

_HIGHEST: Final = 8
_MOST_DIVISORS: Final = 400


def degree(node: Node, name: str) -> int | None:
    """A bound for the degree of `node` as a polynomial in `name`, by its form; `None` where it is no polynomial."""
    found = _degree(node, name)
    return found if found is not None and found <= _HIGHEST else None


def _degree(node: Node, name: str) -> int | None:
    if isinstance(node, Symbol):
        return int(node.name == name)
    if name not in symbols(node):
        return 0
    if isinstance(node, Negative | Measure):
        return _degree(node.value, name)
    if isinstance(node, Sequence) and len(node.items) == 1:
        return _degree(node.items[0], name)
    if isinstance(node, Sum):
        return _largest([_degree(term, name) for term in node.terms])
    if isinstance(node, Product):
        found = [_degree(factor, name) for factor in node.factors]
        return None if None in found else sum(part or 0 for part in found)
    if isinstance(node, Quotient):
        return _degree(node.over, name) if name not in symbols(node.under) else None
    if isinstance(node, Power) and isinstance(node.exponent, Number) and node.exponent.value.denominator == 1:
        base = _degree(node.base, name)
        return None if base is None or node.exponent.value < 0 else base * int(node.exponent.value)
    return None


def _largest(found: list[int | None]) -> int | None:
    return None if None in found else max(part or 0 for part in found)


def coefficients(node: Node, name: str, budget: StepBudget) -> list[Fraction] | None:
    """The coefficients of a polynomial with fractions in it, the constant first; `None` where it is none."""
    bound = degree(node, name)
    if bound is None or symbols(node) - {name}:
        return None
    found: list[Fraction] = [Fraction(0)]
    basis = [Fraction(1)]
    for at in range(bound + 1):  # Newton: each point adds a multiple of what is zero at all points before it
        try:
            value = evaluate(node, Point(budget, values={name: Fraction(at)}))
        except Undecided:
            return None
        if not isinstance(value, Fraction):
            return None
        missing = (value - value_at(found, Fraction(at))) / value_at(basis, Fraction(at))
        found = [
            (found[power] if power < len(found) else Fraction(0)) + missing * part for power, part in enumerate(basis)
        ]
        basis = [left - at * right for left, right in zip([Fraction(0), *basis], [*basis, Fraction(0)], strict=True)]
    while len(found) > 1 and not found[-1]:
        found.pop()
    return found


def value_at(polynomial: list[Fraction], at: Fraction) -> Fraction:
    """The value of a polynomial."""
    total = Fraction(0)
    for coefficient in reversed(polynomial):
        total = total * at + coefficient
    return total


def roots(polynomial: list[Fraction]) -> list[Node] | None:
    """The real roots, in no order; `None` where some cannot be written down."""
    found: list[Node] = []
    while len(polynomial) > 3:
        root = _rational_root(polynomial)
        if root is None:
            return None
        found.append(Number(root))
        polynomial = _divided(polynomial, root)
    if len(polynomial) == 3:
        return [*found, *_of_square(polynomial)]
    return [*found, Number(-polynomial[0] / polynomial[1])] if len(polynomial) == 2 else found


def _of_square(polynomial: list[Fraction]) -> list[Node]:
    c, b, a = polynomial
    inside = b * b - 4 * a * c
    if inside < 0:
        return []
    middle, half = -b / (2 * a), inside / (4 * a * a)
    over, under = isqrt(half.numerator), isqrt(half.denominator)
    if over * over == half.numerator and under * under == half.denominator:
        return [Number(middle - Fraction(over, under)), Number(middle + Fraction(over, under))]
    root = Call("root", (Number(half), Number(Fraction(2))))
    return [Sum((Number(middle), Negative(root))), Sum((Number(middle), root))]


def _rational_root(polynomial: list[Fraction]) -> Fraction | None:
    if not polynomial[0]:
        return Fraction(0)
    scale = 1
    for coefficient in polynomial:
        scale *= coefficient.denominator // gcd(scale, coefficient.denominator)
    first, last = abs(int(polynomial[0] * scale)), abs(int(polynomial[-1] * scale))
    for over in _divisors(first):
        for under in _divisors(last):
            for candidate in (Fraction(over, under), Fraction(-over, under)):
                if not value_at(polynomial, candidate):
                    return candidate
    return None


def _divisors(number: int) -> list[int]:
    return [at for at in range(1, min(number, _MOST_DIVISORS) + 1) if not number % at]


def _divided(polynomial: list[Fraction], root: Fraction) -> list[Fraction]:
    quotient: list[Fraction] = []
    carried = Fraction(0)
    for coefficient in reversed(polynomial[1:]):
        carried = carried * root + coefficient
        quotient.append(carried)
    return quotient[::-1]
