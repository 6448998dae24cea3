# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of values, to sixty digits: roots, powers, exponentials, logarithms, circles.

Where school and analysis part ways, school wins: the cube root of -8 is -2. Everything has a bound; what lies beyond
it raises `Undecided`.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Final

from reward_kit.mathematics.values import DIGITS, ZERO, Big, Undecided, Value, as_big, context, is_real

__all__ = ["FUNCTIONS", "MAX_BITS", "PI", "E", "binomial", "factorial", "logarithm", "power", "root"]

MAX_BITS: Final = 12_000
"""The longest fraction that is kept exactly."""
_MAX_FACTORIAL: Final = 5_000
_MAX_ANGLE: Final = Decimal(10) ** 20
_TINY: Final = -DIGITS + 8
_HALF: Final = Fraction(1, 2)
_ONE: Final = Decimal(1)
_finer: Final = decimal.Context(prec=DIGITS + 25, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

_PI_DIGITS: Final = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
)
_E_DIGITS: Final = Decimal(
    "2.71828182845904523536028747135266249775724709369995957496696762772407663035354759457138217852516642743"
)
PI: Final = Big(context.plus(_PI_DIGITS))
E: Final = Big(context.plus(_E_DIGITS))
_TWO_PI: Final = _finer.multiply(_PI_DIGITS, Decimal(2))
_HALF_PI: Final = context.divide(_PI_DIGITS, Decimal(2))


# ── roots and powers ─────────────────────────────────────────────────────────────────────────────────────────────────


def power(base: Value, exponent: Value) -> Value:
    """`base` raised to the power of `exponent`; `Undecided` where zero has no such power."""
    if isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            return _whole_power(base, exponent.numerator)
        if exponent == _HALF:
            return root(base, 2)
        if is_real(base) and exponent.denominator % 2 and _negative(base) and exponent.denominator < MAX_BITS:
            return _whole_power(root(base, exponent.denominator), exponent.numerator)
    if not base:
        raise Undecided("a power of zero")
    return exponential(exponent * logarithm(base))


def _whole_power(base: Value, exponent: int) -> Value:
    if not base and exponent <= 0:
        raise Undecided("a power of zero")
    if isinstance(base, Fraction):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(exponent) * (bits - 1) <= MAX_BITS:
            return base**exponent
    whole = as_big(base)
    if not whole.im:
        return Big(_checked(context.power(whole.re, Decimal(exponent))))
    if abs(exponent) > DIGITS:
        return exponential(Fraction(exponent) * logarithm(whole))
    result: Value = Fraction(1)
    for _ in range(abs(exponent)):
        result = result * whole
    return result if exponent > 0 else Fraction(1) / result


def root(value: Value, degree: int) -> Value:
    """The root that school means: the real one where there is one, else the principal one."""
    if not value:
        return Fraction(0)
    if isinstance(value, Fraction) and (exact := _exact_root(value, degree)) is not None:
        return exact
    if is_real(value):
        size = as_big(value).re
        if size < 0 and degree % 2:
            return -as_big(root(Big(size.copy_negate()), degree))
        positive = context.sqrt(size.copy_abs()) if degree == 2 else _positive_root(size.copy_abs(), degree)
        if size > 0:
            return Big(positive)
        if degree == 2:
            return Big(ZERO, positive)
    return exponential(Fraction(1, degree) * logarithm(value))


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    if value < 0 or degree > DIGITS or max(value.numerator, value.denominator).bit_length() > MAX_BITS:
        return None
    over, under = _whole_root(value.numerator, degree), _whole_root(value.denominator, degree)
    return None if over is None or under is None else Fraction(over, under)


def _whole_root(number: int, degree: int) -> int | None:
    if degree == 2:
        found = math.isqrt(number)
    elif number.bit_length() < 1000:
        found = round(number ** (1 / degree))
    else:
        return None
    return found if found**degree == number else None


def _positive_root(size: Decimal, degree: int) -> Decimal:
    with_spare = _finer.divide(_finer.ln(size), Decimal(degree))
    return context.plus(_finer.exp(with_spare))


# ── exponentials and logarithms ──────────────────────────────────────────────────────────────────────────────────────


def exponential(value: Value) -> Value:
    """e raised to the power of `value`."""
    if not value:
        return Fraction(1)
    big = as_big(value)
    size = _checked(context.exp(big.re)) if big.re.adjusted() < 19 else _out_of_bounds()
    if not big.im:
        return Big(size)
    sine, cosine = _circle(big.im)
    return Big(context.multiply(size, cosine), context.multiply(size, sine))


def logarithm(value: Value) -> Value:
    """The natural logarithm, on its principal branch."""
    if not value:
        raise Undecided("the logarithm of zero")
    if value == 1:
        return Fraction(0)
    big = as_big(value)
    if not big.im:
        return Big(context.ln(big.re.copy_abs()), ZERO if big.re > 0 else PI.re)
    angle = _angle(big.re, big.im)
    size = context.ln(big.size())
    return Big(ZERO if size.adjusted() < _TINY else size, angle)


def _angle(re: Decimal, im: Decimal) -> Decimal:
    if not re:
        return _HALF_PI.copy_sign(im)
    slope = _arctangent(context.divide(im, re))
    if re > 0:
        return slope
    return context.add(slope, PI.re.copy_sign(im))


# ── circles ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _circle(angle: Decimal) -> tuple[Decimal, Decimal]:
    """Sine and cosine of a real angle."""
    if angle.copy_abs() > _MAX_ANGLE:
        raise Undecided("an angle beyond all turns")
    turned = _finer.remainder_near(angle, _TWO_PI)
    eighth = _finer.divide(turned, Decimal(8))
    square = _finer.multiply(eighth, eighth).copy_negate()
    sine, cosine, term, count = eighth, _ONE, eighth, 1
    even = _ONE
    while term and term.adjusted() > -DIGITS - 12:
        even = _finer.divide(_finer.multiply(even, square), Decimal((2 * count - 1) * (2 * count)))
        term = _finer.divide(_finer.multiply(term, square), Decimal((2 * count) * (2 * count + 1)))
        sine, cosine, count = _finer.add(sine, term), _finer.add(cosine, even), count + 1
    for _ in range(3):
        sine, cosine = (
            _finer.multiply(2, _finer.multiply(sine, cosine)),
            _finer.subtract(1, _finer.multiply(2, _finer.multiply(sine, sine))),
        )
    return _snapped(sine), _snapped(cosine)


def _snapped(value: Decimal) -> Decimal:
    return ZERO if not value or value.adjusted() < _TINY else context.plus(value)


def _arctangent(value: Decimal) -> Decimal:
    if value.copy_abs() > 1:
        return context.subtract(_HALF_PI.copy_sign(value), _arctangent(context.divide(_ONE, value)))
    halvings = 4
    for _ in range(halvings):
        hypotenuse = _finer.sqrt(_finer.add(1, _finer.multiply(value, value)))
        value = _finer.divide(value, _finer.add(1, hypotenuse))
    square = _finer.multiply(value, value).copy_negate()
    total, term, odd = value, value, 1
    while term and term.adjusted() > -DIGITS - 12:
        term, odd = _finer.multiply(term, square), odd + 2
        total = _finer.add(total, _finer.divide(term, odd))
    return _snapped(_finer.multiply(total, Decimal(2**halvings)))


def _sine(value: Value) -> Value:
    big = as_big(value)
    if not big.im:
        return _plain(_circle(big.re)[0])
    i_times = Big(big.im.copy_negate(), big.re)
    return (exponential(i_times) - exponential(-i_times)) * Big(ZERO, Decimal("-0.5"))


def _cosine(value: Value) -> Value:
    big = as_big(value)
    if not big.im:
        return _plain(_circle(big.re)[1])
    i_times = Big(big.im.copy_negate(), big.re)
    return (exponential(i_times) + exponential(-i_times)) * _HALF


def _plain(value: Decimal) -> Value:
    return Big(value) if value else Fraction(0)


def _arcsine(value: Value) -> Value:
    if isinstance(value, Fraction) and value in (1, -1):
        return PI * value * _HALF
    return _arctan(value / root(Fraction(1) - value * value, 2))


def _arctan(value: Value) -> Value:
    big = as_big(value)
    if not big.im:
        return _plain(_arctangent(big.re))
    i = Big(ZERO, _ONE)
    return (logarithm(Fraction(1) + i * value) - logarithm(Fraction(1) - i * value)) / Big(ZERO, Decimal(2))


def _hyperbolic_sine(value: Value) -> Value:
    return (exponential(value) - exponential(-value)) * _HALF


def _hyperbolic_cosine(value: Value) -> Value:
    return (exponential(value) + exponential(-value)) * _HALF


# ── whole numbers, parts and sizes ───────────────────────────────────────────────────────────────────────────────────


def factorial(value: Value) -> Value:
    """n! of a whole number that is not too large."""
    if not isinstance(value, Fraction) or value.denominator != 1 or value < 0 or value > _MAX_FACTORIAL:
        raise Undecided("a factorial of something else than a moderate whole number")
    return Fraction(_factorial(value.numerator))


@cache
def _factorial(number: int) -> int:
    return math.factorial(number)


def binomial(n: Value, k: Value) -> Value:
    """n choose k, of moderate whole numbers."""
    both = isinstance(n, Fraction) and isinstance(k, Fraction)
    if not both or n.denominator != 1 or k.denominator != 1 or not k >= 0 or not 0 <= n <= _MAX_FACTORIAL:  # type: ignore[union-attr,operator]
        raise Undecided("a binomial coefficient of something else than moderate whole numbers")
    return Fraction(math.comb(int(n), int(k)))  # type: ignore[arg-type]


def _size(value: Value) -> Value:
    return abs(value) if isinstance(value, Fraction) else Big(value.size())


def _floor(value: Value) -> Value:
    if isinstance(value, Fraction):
        return Fraction(math.floor(value))
    if value.im or value.re.adjusted() > DIGITS // 2:
        raise Undecided("the floor of a number that is too large, or not real")
    nearest = value.re.to_integral_value()
    if context.subtract(value.re, nearest).copy_abs() < Decimal(10) ** (
        -DIGITS // 2
    ):  # a whole number but for rounding
        return Fraction(int(nearest))
    return Fraction(math.floor(value.re))


def _ceiling(value: Value) -> Value:
    return -_floor(-value)


def _common_logarithm(value: Value) -> Value:
    return logarithm(value) / logarithm(Fraction(10))


def _real_part(value: Value) -> Value:
    return value if isinstance(value, Fraction) else _plain(value.re)


def _imaginary_part(value: Value) -> Value:
    return Fraction(0) if isinstance(value, Fraction) else _plain(value.im)


def _conjugate(value: Value) -> Value:
    return value if isinstance(value, Fraction) else Big(value.re, value.im.copy_negate())


def _negative(value: Value) -> bool:
    return value < 0 if isinstance(value, Fraction) else value.re < 0


def _sign(value: Value) -> Value:
    return Fraction(0 if not value else -1 if _negative(value) else 1)


def _checked(value: Decimal) -> Decimal:
    if not value.is_finite() or not value:
        _out_of_bounds()
    return value


def _out_of_bounds() -> Decimal:
    raise Undecided("a value beyond all bounds")


def _inverse_of(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda value: Fraction(1) / function(value)


def _tangent(value: Value) -> Value:
    return _sine(value) / _cosine(value)


FUNCTIONS: Final[dict[str, Callable[[Value], Value]]] = {
    "sqrt": lambda value: root(value, 2),
    "cbrt": lambda value: root(value, 3),
    "exp": exponential,
    "ln": logarithm,
    "log": logarithm,
    "lg": _common_logarithm,
    "sin": _sine,
    "cos": _cosine,
    "tan": _tangent,
    "cot": lambda value: _cosine(value) / _sine(value),
    "sec": _inverse_of(_cosine),
    "csc": _inverse_of(_sine),
    "arcsin": _arcsine,
    "arccos": lambda value: PI * _HALF - _arcsine(value),
    "arctan": _arctan,
    "arccot": lambda value: PI * _HALF - _arctan(value),
    "sinh": _hyperbolic_sine,
    "cosh": _hyperbolic_cosine,
    "tanh": lambda value: _hyperbolic_sine(value) / _hyperbolic_cosine(value),
    "coth": lambda value: _hyperbolic_cosine(value) / _hyperbolic_sine(value),
    "arsinh": lambda value: logarithm(value + root(value * value + Fraction(1), 2)),
    "arcosh": lambda value: logarithm(value + root(value * value - Fraction(1), 2)),
    "artanh": lambda value: logarithm((Fraction(1) + value) / (Fraction(1) - value)) * _HALF,
    "abs": _size,
    "floor": _floor,
    "ceil": _ceiling,
    "Re": _real_part,
    "Im": _imaginary_part,
    "conjugate": _conjugate,
    "cis": lambda value: _cosine(value) + _sine(value) * Big(Decimal(0), Decimal(1)),
    "sgn": _sign,
}
"""Functions of one value, by the name the parser gives them."""
