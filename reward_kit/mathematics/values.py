# SPDX-License-Identifier: Apache-2.0
"""Complex numbers of sixty digits, beside exact fractions.

A value is a `Fraction` as long as it can be, and a `Big` from the first irrational step on. Rounding is never
mistaken for meaning: a sum that cancels to nothing but rounding is an exact zero, and one in which the smaller part
would be rounded away raises `Undecided` instead of losing it.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from typing import Final

__all__ = [
    "DIGITS",
    "ZERO",
    "Big",
    "Undecided",
    "Value",
    "as_big",
    "as_fraction",
    "close",
    "context",
    "is_real",
    "negligible",
]

DIGITS: Final = 60
"""Digits of every value that is not a fraction."""
_NOISE: Final = 46
"""A sum this many digits smaller than its parts is nothing but their rounding."""
_LOST: Final = 52
"""A part this many digits smaller than the other would be lost in their sum."""

_LONGEST_FRACTION: Final = 20_000
"""Digits of a numerator or denominator: that of 2^(10^10) has three billion."""

context: Final = decimal.Context(
    prec=DIGITS,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
"""Where all decimal arithmetic of this package happens; the caller's own decimal context is left alone."""

ZERO: Final = Decimal(0)


class Undecided(Exception):
    """A value cannot be had: it is undefined, out of bounds, or needs more digits than there are."""


class Big:
    """A complex number of sixty digits."""

    __slots__ = ("im", "re")

    def __init__(self, re: Decimal, im: Decimal = ZERO) -> None:
        self.re = re
        self.im = im

    def __repr__(self) -> str:
        return f"Big({self.re}, {self.im})"

    def __bool__(self) -> bool:
        return bool(self.re) or bool(self.im)

    def __neg__(self) -> Big:
        return Big(self.re.copy_negate(), self.im.copy_negate())

    def __add__(self, other: Value) -> Value:
        right = as_big(other)
        re, im = _sum(self.re, right.re), _sum(self.im, right.im)
        return Big(re, im) if re or im else Fraction(0)

    __radd__ = __add__

    def __sub__(self, other: Value) -> Value:
        return self + -other

    def __rsub__(self, other: Value) -> Value:
        return -self + other

    def __mul__(self, other: Value) -> Value:
        if isinstance(other, Fraction) and not other:
            return other
        right = as_big(other)
        if not self.im and not right.im:
            return Big(context.multiply(self.re, right.re))
        re = _sum(context.multiply(self.re, right.re), context.multiply(self.im, right.im).copy_negate())
        im = _sum(context.multiply(self.re, right.im), context.multiply(self.im, right.re))
        return Big(re, im) if re or im else Fraction(0)

    __rmul__ = __mul__

    def __truediv__(self, other: Value) -> Value:
        return self * _inverse(as_big(other))

    def __rtruediv__(self, other: Value) -> Value:
        return _inverse(self) * other

    def size(self) -> Decimal:
        """The absolute value: the distance from zero in the complex plane."""
        if not self.im:
            return self.re.copy_abs()
        squares = context.add(context.multiply(self.re, self.re), context.multiply(self.im, self.im))
        return context.sqrt(squares)


Value = Fraction | Big


def as_big(value: Value) -> Big:
    """The value with sixty digits."""
    if isinstance(value, Big):
        return value
    over = context.create_decimal(value.numerator)
    return Big(over if value.denominator == 1 else context.divide(over, context.create_decimal(value.denominator)))


def as_fraction(value: Value) -> Fraction:
    """The fraction that sixty digits of a real value are; `Undecided` where it would be too long to write down."""
    number = as_big(value).re
    if number and abs(number.adjusted()) > _LONGEST_FRACTION:
        raise Undecided("a number with too many zeros")
    return Fraction(number)


def is_real(value: Value) -> bool:
    """Whether the value has no imaginary part, beyond rounding."""
    return isinstance(value, Fraction) or not value.im or value.im.adjusted() < value.size().adjusted() - _NOISE


def close(left: Value, right: Value) -> bool:
    """Whether two values are the same number: exactly for fractions, in all but the last digits otherwise."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left == right
    sizes = as_big(left).size(), as_big(right).size()
    if sizes[0] and sizes[1] and abs(sizes[0].adjusted() - sizes[1].adjusted()) > 1:
        return False
    return not left - right


def negligible(value: Decimal, beside: Decimal) -> bool:
    """Whether `value` is nothing but rounding of something as large as `beside`."""
    return not value or value.adjusted() < beside.adjusted() - _NOISE


def _sum(left: Decimal, right: Decimal) -> Decimal:
    if not left:
        return right
    if not right:
        return left
    larger, smaller = max(left.adjusted(), right.adjusted()), min(left.adjusted(), right.adjusted())
    if larger - smaller > _LOST:
        raise Undecided("a sum of parts too far apart")
    total = context.add(left, right)
    return ZERO if not total or total.adjusted() < larger - _NOISE else total


def _inverse(value: Big) -> Big:
    if not value.im:
        if not value.re:
            raise Undecided("a division by zero")
        return Big(context.divide(Decimal(1), value.re))
    norm = context.add(context.multiply(value.re, value.re), context.multiply(value.im, value.im))
    return Big(context.divide(value.re, norm), context.divide(value.im, norm).copy_negate())
