# SPDX-License-Identifier: Apache-2.0
"""Whether two expressions are the same: at random points, and to the last digit.

Different at one point means different. Equal means equal at several points, of either sign, exactly (fractions) or to
46 digits with nothing rounded away; that is what no coincidence of an answer passes.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from typing import Final, NamedTuple

from reward_kit.mathematics.evaluate import LARGE_WHOLE_POINTS, POINTS, WHOLE_POINTS, Point, StepBudget, evaluate
from reward_kit.mathematics.nodes import (
    Call,
    Constant,
    Degrees,
    Measure,
    Negative,
    Node,
    Number,
    Percent,
    Power,
    Quotient,
    opaque,
    parts,
    symbols,
)
from reward_kit.mathematics.polynomials import degree
from reward_kit.mathematics.values import Undecided, Value, as_big, close, context, is_real

__all__ = ["EXACT", "Tolerance", "constant", "same_direction", "same_expression", "same_number", "same_solutions"]

_ENOUGH: Final = 3
_ENOUGH_STEPS: Final = 12
_STEPS: Final = frozenset({"floor", "ceil", "sgn", "gcd", "lcm", "max", "min"})
"""Functions that do not change from one point to the next, and then do."""
_KINKS: Final = frozenset({"abs", "sgn", "max", "min", "floor", "ceil"})
_COUNTING: Final = frozenset("nmklijNMK")
"""Letters that stand for whole numbers."""
_MANY_DIGITS: Final = 7
"""A decimal of this many digits stands for what it is the correct rounding of."""
_FLOAT_DIGITS: Final = 14
"""A decimal of this many digits is a float that a program printed: its last bits may be off."""
_LONGEST_FLOAT: Final = 17
"""No float is printed with more digits."""
_NOISE: Final = 3
"""How many digits larger than noise a number is that is not zero."""
_SMALLEST_BINARY: Final = 2**40
"""A fraction over a power of two as large as this is a float in disguise."""


_exactly: Final = decimal.Context(prec=2000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
"""Enough digits for the product of any float and a value."""


class Tolerance(NamedTuple):
    """How far an answer may be from the right one: not at all, unless someone says so."""

    relative: float = 0.0
    """What rounding to the decimals that are written may change, relative to the right value."""
    absolute: float = 0.0
    """What counts as nothing, between numbers that are not both whole."""


EXACT: Final = Tolerance()


def constant(node: Node, budget: StepBudget) -> Value | None:
    """The value of an expression without variables; `None` if it has some, or no value."""
    if symbols(node):
        return None
    try:
        return evaluate(node, Point(budget))
    except Undecided:
        return None


def same_expression(gold: Node, answer: Node, tolerance: Tolerance, budget: StepBudget) -> bool | None:
    """Whether two expressions are equal for all values of their variables; `None` where it cannot be told."""
    verdict = _same(gold, answer, tolerance, budget, common_log=False)
    if verdict is not True and _mentions_log(gold) != _mentions_log(answer):
        verdict = _same(gold, answer, tolerance, budget, common_log=True) or verdict
    return None if verdict is False and (opaque(gold) or opaque(answer)) else verdict


def _mentions_log(node: Node) -> bool:
    return any(isinstance(part, Call) and part.name == "log" for part in parts(node))


def _same(gold: Node, answer: Node, tolerance: Tolerance, budget: StepBudget, *, common_log: bool) -> bool | None:
    names = symbols(gold) | symbols(answer)
    if not names:
        try:
            point = Point(budget, common_log=common_log)
            right, given = evaluate(gold, point), evaluate(answer, point)
            return same_number(right, given, gold, answer, tolerance)
        except Undecided:
            return None
    if any(isinstance(part, Call) and part.name in _STEPS for part in (*parts(gold), *parts(answer))):
        return _same_steps(gold, answer, names, budget)
    if _kinked(gold) or _kinked(answer):
        return _same_everywhere(gold, answer, budget, common_log=common_log)
    imaginary = any(part == Constant("i") for part in (*parts(gold), *parts(answer)))
    return _same_at_points(gold, answer, budget, imaginary=imaginary, common_log=common_log)


def _same_at_points(gold: Node, answer: Node, budget: StepBudget, *, imaginary: bool, common_log: bool) -> bool | None:
    agreed = complex_agreed = complex_differed = 0
    for index in (*range(POINTS), *WHOLE_POINTS):
        if index == POINTS and agreed + complex_agreed + complex_differed:
            break  # whole numbers only count for what is defined nowhere else
        found = _values(gold, answer, Point(budget, index, common_log=common_log))
        if found is None:
            continue
        equal, real, both_complex = found
        if real or imaginary:
            if not equal:
                return False
            agreed += 1
            if agreed >= _ENOUGH:
                return True
        elif equal:
            complex_agreed += 1
        elif both_complex:
            complex_differed += 1
    # Where a formula is not real at most points, its complex values speak for it.
    if complex_differed and agreed < 2:
        return False
    return True if agreed + complex_agreed >= 2 else None


def _kinked(node: Node) -> bool:
    """Whether a formula may be another one beyond some point: |x - 5|, the root of a square, the larger of two."""
    return any(
        isinstance(part, Call)
        and (part.name in _KINKS or (part.name == "root" and any(_is_square(inner) for inner in parts(part))))
        and symbols(part)
        for part in parts(node)
    )


def _bends_with(node: Node, name: str) -> bool:
    """Whether a variable stands inside of what makes a formula bend."""
    return any(isinstance(part, Call) and _kinked(part) and name in symbols(part) for part in parts(node))


def _is_square(node: Node) -> bool:
    return isinstance(node, Power) and bool(symbols(node.base))


def _points(budget: StepBudget, *nodes: Node, common_log: bool = False) -> list[Point]:
    """Points of both signs; for formulas with kinks also beyond all numbers in them, on either side."""
    found = [Point(budget, index, common_log=common_log) for index in range(POINTS)]
    if any(_kinked(node) for node in nodes):
        numbers = (part.value for node in nodes for part in parts(node) if isinstance(part, Number))
        far = 2 * max((abs(number) for number in numbers), default=Fraction(1)) + Fraction(7, 3)
        names = sorted({name for node in nodes for name in symbols(node)})
        for sizes in product((far, -far, Fraction(2, 7)), (1, -1)):
            values: dict[str, Value] = {
                name: sizes[0] * sizes[1] ** index + Fraction(index, 3 if sizes[0] > 0 else -3)
                for index, name in enumerate(names)
            }
            found.append(Point(budget, POINTS - 1, common_log=common_log, values=values))
    return found


def _same_everywhere(gold: Node, answer: Node, budget: StepBudget, *, common_log: bool) -> bool | None:
    """Whether two formulas with kinks agree at every point where both are real."""
    agreed = 0
    for point in _points(budget, gold, answer, common_log=common_log):
        found = _values(gold, answer, point)
        if found is None or not (found.real or found.both_complex):
            continue  # ln x has no real value where ln |x| has one
        if not found.equal:
            return False
        agreed += 1
    return True if agreed >= _ENOUGH else None


def _same_steps(gold: Node, answer: Node, names: frozenset[str], budget: StepBudget) -> bool | None:
    """Whether two formulas with steps agree at many points: whole numbers, and others unless all variables count."""
    counting = all(name[0] in _COUNTING for name in names)
    agreed = 0
    for index in (*(() if counting else range(POINTS)), *WHOLE_POINTS, *LARGE_WHOLE_POINTS):
        found = _values(gold, answer, Point(budget, index))
        if found is not None and not found.equal:
            return False
        agreed += found is not None
    return True if agreed >= _ENOUGH_STEPS else None


class _Found(NamedTuple):
    equal: bool
    real: bool
    both_complex: bool


def _values(gold: Node, answer: Node, point: Point) -> _Found | None:
    try:
        right, given = evaluate(gold, point), evaluate(answer, point)
        equal = close(right, given)
    except Undecided:
        return None
    real = is_real(right), is_real(given)
    return _Found(equal, all(real), not any(real))


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def same_number(gold: Value, given: Value, gold_node: Node, answer_node: Node, tolerance: Tolerance) -> bool:
    """Whether two values are equal, or one is the other as a program prints it, or rounded within the tolerance."""
    if close(gold, given):
        return True
    if not is_real(gold) or not is_real(given):
        return False
    written = [found for node in (gold_node, answer_node) if (found := _decimal(node)) is not None]
    if not written and not tolerance.absolute:
        return False
    both_whole = _whole(gold) and _whole(given)
    if both_whole and all(not literal.digits for literal in written):
        return False
    # In decimals, which may be as large as 2^(10^10): as fractions, such numbers would have to be written out.
    difference, size = as_big(gold - given).re.copy_abs(), as_big(gold).re.copy_abs()
    return _printed(difference, size, written) or (
        not both_whole and _rounded(difference, size, written, tolerance, gold)
    )


def _printed(difference: Decimal, size: Decimal, written: list[Number]) -> bool:
    """Whether one is what a program prints of the other: many digits, correctly rounded, or a float's last bits off."""
    for literal in written:
        if literal.digits >= _MANY_DIGITS and difference <= _half_a_unit(literal.decimals or 0):
            return True
        if _FLOAT_DIGITS <= literal.digits <= _LONGEST_FLOAT and difference.scaleb(12, context) <= size:
            return True
    return False


def _rounded(difference: Decimal, size: Decimal, written: list[Number], tolerance: Tolerance, gold: Value) -> bool:
    # Noise is small beside the number, too: 2e-24 is not 1e-24.
    if difference <= Decimal(tolerance.absolute) and (not size or difference.scaleb(_NOISE, context) <= size):
        return True
    if _whole(gold) or not written or difference > _exactly.multiply(Decimal(tolerance.relative), size):
        return False
    # Half a unit of the coarser one's last place, either way: rounding half up and half to even are both in use.
    return difference <= _half_a_unit(min(literal.decimals or 0 for literal in written))


def _half_a_unit(decimals: int) -> Decimal:
    """Half a unit of the last of so many decimals."""
    return Decimal((0, (5,), -decimals - 1))


def _decimal(node: Node) -> Number | None:
    """The decimal number that `node` is, if it was written with a point."""
    while isinstance(node, Negative):
        node = node.value
    if isinstance(node, Quotient) and isinstance(node.under, Number) and isinstance(node.over, Number):
        under = node.under.value.numerator
        binary = under >= _SMALLEST_BINARY and not under & (under - 1)
        return Number(node.over.value, _FLOAT_DIGITS, _FLOAT_DIGITS) if binary else None
    if isinstance(node, Percent | Degrees | Measure):
        return _decimal(node.value)
    return node if isinstance(node, Number) and node.decimals is not None else None


def _whole(value: Value) -> bool:
    return isinstance(value, Fraction) and value.denominator == 1


# ── equations ────────────────────────────────────────────────────────────────────────────────────────────────────────


def same_solutions(gold: Node, answer: Node, budget: StepBudget) -> bool | None:
    """Whether `gold = 0` and `answer = 0` say the same: one is a multiple of the other, or gives its solutions."""
    if symbols(gold) != symbols(answer):
        return False
    ratio = _constant_ratio(gold, answer, budget)
    if ratio is not None and ratio is not False:
        return True
    solved = _solves_each_other(gold, answer, budget)
    return solved if solved is not None else (None if ratio is None else False)


def same_direction(gold: Node, answer: Node, budget: StepBudget) -> bool | None:
    """Whether `gold > 0` and `answer > 0` say the same: one is a positive multiple of the other."""
    ratio = _constant_ratio(gold, answer, budget)
    if ratio is None or ratio is False:
        return ratio
    return ratio is not True and is_real(ratio) and as_big(ratio).re > 0


def _constant_ratio(gold: Node, answer: Node, budget: StepBudget) -> Value | bool | None:
    """What `gold` is a multiple of `answer` by; `False` if by nothing constant, `None` if unknown."""
    found: Value | None = None
    agreed = 0
    wanted = POINTS if _kinked(gold) or _kinked(answer) else _ENOUGH
    for point in _points(budget, gold, answer):
        try:
            right, given = evaluate(gold, point), evaluate(answer, point)
            if not right or not given:
                if bool(right) != bool(given):
                    return False
                continue
            ratio = right / given
            if found is not None and not close(found, ratio):
                return False
        except Undecided:
            continue
        found = ratio
        agreed += 1
        if agreed >= wanted and wanted == _ENOUGH:
            return found
    return found if agreed >= _ENOUGH else None


def _solves_each_other(gold: Node, answer: Node, budget: StepBudget) -> bool | None:
    """Whether each side's solution for a variable that it is linear in solves the other one."""
    kinked = _kinked(gold) or _kinked(answer)
    for name in sorted(symbols(gold)):
        if degree(gold, name) is None or degree(answer, name) is None:
            continue
        if kinked and (_bends_with(gold, name) or _bends_with(answer, name)):
            continue  # |y| + x is linear in y only on one side of zero
        points = _points(budget, gold, answer)
        for point in points if kinked else (points[0], points[1], points[3]):
            try:
                right, given = _solution(gold, name, point), _solution(answer, name, point)
            except Undecided:
                break
            if not close(right, given):
                return False
        else:
            return True
    return None


def _solution(node: Node, name: str, point: Point) -> Value:
    """The value of `name` at which `node`, a polynomial in it, is zero, if it is linear in it."""
    count = max(degree(node, name) or 0, 1) + 2
    others = {other: value for other, value in point.values.items() if other != name}
    values = [
        evaluate(node, Point(point.budget, point.index, values={**others, name: Fraction(at)}))
        for at in range(1, count + 1)
    ]
    slope = values[1] - values[0]
    if not slope or any(not close(after - before, slope) for before, after in pairwise(values[1:])):
        raise Undecided("not linear")
    return Fraction(1) - values[0] / slope
