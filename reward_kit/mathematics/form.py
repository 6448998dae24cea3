# SPDX-License-Identifier: Apache-2.0
r"""The form of an answer, beside its value: is it worked out, and which unit does it name?

`17 \cdot 23` equals 391, and `\sum_{k=1}^{100} k` equals 5050, but nobody who was asked for the value would call them
answers. Each kind of undone work has a name; an answer may leave undone what the right answer leaves undone too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import isqrt
from typing import Final

from reward_kit.answers.final_answer import unboxed
from reward_kit.mathematics.evaluate import KNOWN_FUNCTIONS, Exhausted, StepBudget
from reward_kit.mathematics.labels import label_of
from reward_kit.mathematics.nodes import (
    Call,
    Constant,
    Degrees,
    InBase,
    Interval,
    Matrix,
    Measure,
    Negative,
    Node,
    Number,
    Opaque,
    Percent,
    PlusMinus,
    Power,
    Product,
    Quotient,
    Ratio,
    Relation,
    Sequence,
    SetOperation,
    Sum,
    Symbol,
    parts,
    symbols,
)
from reward_kit.mathematics.numbers import roman_number
from reward_kit.mathematics.numeric import constant
from reward_kit.mathematics.parser import read_answer
from reward_kit.mathematics.spoken import in_symbols
from reward_kit.mathematics.text import MAX_LENGTH
from reward_kit.mathematics.tokens import Unreadable
from reward_kit.mathematics.units import read_unit
from reward_kit.mathematics.values import Undecided

__all__ = ["left_undone", "unit_of"]

_LARGE: Final = (
    ("sum", re.compile(r"\\sum(?![A-Za-z])|∑|Σ|\bsum\s?\(")),
    ("product", re.compile(r"\\prod(?![A-Za-z])|∏|\bprod\s?\(")),
    ("integral", re.compile(r"\\i{1,3}nt(?![A-Za-z])|\\oint|∫|\bintegrate\s?\(")),
    ("limit", re.compile(r"\\lim(?![A-Za-z])|\blim(?:it)?\s?[_(]")),
    ("determinant", re.compile(r"\\det(?![A-Za-z])|\bdet\s?\(|\{vmatrix\}")),
    ("derivative", re.compile(r"\\frac\s?\{d(?:\^\d)?\}\s?\{d[a-z]")),
    ("remainder", re.compile(r"\d\s?(?:\\[bp]?mod(?![A-Za-z])|%|\bmod\b)\s?\(?\d")),
)
"""Work that is undone wherever it stands, whatever the right answer is: as it is written."""
_OPERATOR: Final = re.compile(
    r"[+*×·⋅∙÷]|\\(?:cdot|times|div|ast|pm)(?![A-Za-z])|[\d)}]\s*[-−]\s*[\d(\\]|[\d)]\s*\(|matrix\}"
)
"""Without one there is no arithmetic: `2 1/3` is a number, and so is `5 hours 30 minutes`."""
_DIVISION: Final = re.compile(r"÷|\\div(?![A-Za-z])")
"""A division that is to be done, and no fraction."""
_CALLS: Final = {
    **dict.fromkeys(("sin", "cos", "tan", "cot", "sec", "csc"), "trigonometric"),
    **dict.fromkeys(("sinh", "cosh", "tanh", "coth"), "hyperbolic"),
    **dict.fromkeys(("arcsin", "arccos", "arctan", "arccot"), "inverse trigonometric"),
    **dict.fromkeys(("arsinh", "arcosh", "artanh"), "inverse hyperbolic"),
    **dict.fromkeys(("factorial", "binom"), "counting"),
    **dict.fromkeys(("gcd", "lcm"), "divisor"),
    **dict.fromkeys(("max", "min"), "extreme"),
    **dict.fromkeys(("floor", "ceil"), "rounding"),
    **dict.fromkeys(("abs", "sgn", "Re", "Im", "conjugate", "det"), "part"),
}
_RELATED: Final = ("=", "<", ">", "≤", "≥", "≠", "\\le", "\\ge", "\\ne", "\\lt", "\\gt", "\\cap", "∩")
"""Without one of these there is no equation, inequality or intersection."""
_OPERATION: Final = re.compile(
    r"[-+*×·⋅∙÷^/:|√−]|\\(?:cdot|times|div|ast|pm|[dt]?frac|sqrt|over)(?![A-Za-z])|[\d)]\s*\(|matrix"
)
"""Without one of these an answer in digits is a number, and `5 hours 30 minutes` is an amount."""
_TEN: Final = Number(Fraction(10))
_ONE: Final = Number(Fraction(1))
_SCALES: Final = frozenset({100, 1000, 10**5, 10**6, 10**7, 10**9, 10**12, 12})
_LARGEST_PRIME: Final = 10**6
_IRRATIONAL: Final = frozenset({"root", "sqrt", "cbrt", "exp", "ln", "log", "lg"})


def left_undone(gold: str, answer: str) -> str | None:
    r"""The kind of work that `answer` leaves undone and `gold` does not; `None` if it is an answer.

    >>> left_undone("391", r"17 \cdot 23"), left_undone("5050", r"\sum_{k=1}^{100} k"), left_undone("2", r"\sqrt{4}")
    ('arithmetic', 'sum', 'root or power')
    >>> left_undone("10!", "90 * 8!"), left_undone(r"\sqrt{3}", r"\frac{3}{\sqrt{3}}") is None
    (None, True)
    """
    if gold == answer or len(answer) > MAX_LENGTH or len(gold) > MAX_LENGTH:
        return None
    gold, answer = in_symbols(unboxed(gold)), in_symbols(unboxed(answer))
    for kind, sign in _LARGE:
        if sign.search(_result_of(answer)) and not sign.search(gold):
            return kind
    if answer.isdecimal() or roman_number(answer.strip()) is not None:
        return None
    if _unsolved(answer) and not _unsolved(gold):
        return "an equation or inequality"
    right, given = _read(gold), _read(answer)
    if right is None or given is None or symbols(right):
        return None
    return _undone(right, given, gold, answer)


def _undone(right: Node, given: Node, gold: str, answer: str) -> str | None:
    """The kind of work that an expression leaves undone beside the right one; both as read and as written."""
    allowed = _kinds(right, gold)
    if _rational(right) and _computed(given, answer, gold):
        return "arithmetic"
    undone = sorted(_kinds(given, answer) - allowed)
    if undone:
        return undone[0]
    if _rational(right) and not _rational_form(given) and _rational_form(right):
        return "root or power"
    if _OPERATION.search(answer) is None or not all(map(_is_number, _values(right))):
        return None
    worked_out = all(_is_number(value) for value in _values(given) if _rational(value) and _rational_form(value))
    return None if worked_out else "arithmetic"


def _computed(given: Node, answer: str, gold: str) -> bool:
    """Whether an answer divides with a sign, or holds variables that cancel."""
    if _DIVISION.search(answer) and not _DIVISION.search(gold):
        return True
    return isinstance(given, Sum | Product | Quotient | Power) and bool(symbols(given))


def _result_of(text: str) -> str:
    """What a chain of equations ends in, where that says something: of `\\sum_{k=1}^9 k = 45`, 45."""
    _, equals, result = text.rpartition("=")
    return result if equals and _balanced(result) and any(map(str.isalnum, result)) else text


def _balanced(text: str) -> bool:
    """Whether every brace that a text closes was opened in it: the equals sign before it is not in a subscript."""
    depth = 0
    for brace in re.findall(r"[{}]", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return not depth


def _read(text: str) -> Node | None:
    """The mathematics of an answer: of a chain of equations, the side that is worked out furthest."""
    try:
        node = read_answer(text).node
    except (Unreadable, RecursionError):
        return None
    if not isinstance(node, Relation) or any(operator not in "=≈≡∈" for operator in node.operators):
        return node
    values = [operand for operand in node.operands if not symbols(operand)]
    return next((value for value in reversed(values) if not _kinds(value, text)), node.operands[-1])


def _unsolved(text: str) -> bool:
    """Whether `text` is an equation or inequality in one variable that is still to be solved, or sets to intersect."""
    if not any(sign in text for sign in _RELATED):
        return False
    try:
        node = read_answer(text).node
    except (Unreadable, RecursionError):
        return False
    for part in parts(node):
        if isinstance(part, SetOperation) and part.operator == "∩":
            return True
        if isinstance(part, Relation) and label_of(part) is None and any(map(_to_solve, part.operands)):
            return len(symbols(part)) == 1
    return False


def _to_solve(node: Node) -> bool:
    """Whether one side of a relation is more than the name of its variable, with or without bars around it."""
    if isinstance(node, Measure):
        node = node.value
    if isinstance(node, Call) and node.name == "abs":
        node = node.arguments[0]
    named = isinstance(node, Symbol | Sequence) or (isinstance(node, Call) and node.name not in KNOWN_FUNCTIONS)
    return not named and bool(symbols(node))


def _kinds(node: Node, text: str) -> set[str]:
    """The kinds of work that an expression leaves undone, but for roots and powers."""
    arithmetic = _OPERATOR.search(text) is not None
    found: set[str] = set()
    for part in parts(node):
        if isinstance(part, Call) and part.name in _CALLS and not (part.name == "abs" and symbols(part)):
            found.add(_CALLS[part.name])
        if arithmetic and _computes(part):
            found.add("arithmetic")
    return found


def _computes(node: Node) -> bool:
    """Whether two plain numbers stand beside each other that could be added or multiplied."""
    if isinstance(node, Sum):
        return sum(map(_plain, node.terms)) > 1
    if isinstance(node, Product):
        return sum(map(_plain, node.factors)) > 1
    return isinstance(node, Quotient) and _plain(node) and not (_simple(node.over) and _simple(node.under))


def _plain(node: Node) -> bool:
    """Whether a node is a number or a fraction of numbers."""
    if isinstance(node, Negative | Percent):
        return _plain(node.value)
    return isinstance(node, Number) or (isinstance(node, Quotient) and _plain(node.over) and _plain(node.under))


def _values(node: Node) -> Iterator[Node]:
    """The values that an answer is made of, without the brackets, names and units around them."""
    if isinstance(node, Relation):
        node = node.operands[-1]
    if isinstance(node, Sequence):
        inside: Iterable[Node] = node.items
    elif isinstance(node, Interval):
        inside = (node.low, node.high)
    elif isinstance(node, Matrix):
        inside = (cell for row in node.rows for cell in row)
    elif isinstance(node, SetOperation):
        inside = node.parts
    else:
        yield node
        return
    for part in inside:
        yield from _values(part)


def _is_number(node: Node) -> bool:
    """Whether a rational value is written as one: a number, a fraction of whole ones, a × 10^n, a product of powers."""
    if isinstance(node, Negative | Percent | Degrees | Measure):
        return _is_number(node.value)
    if isinstance(node, Number | InBase | Symbol | Constant | Opaque | PlusMinus):
        return True
    if isinstance(node, Quotient):
        return _whole(node.over) and _whole(node.under)
    if isinstance(node, Ratio):
        return all(map(_simple, node.parts))
    if isinstance(node, Sum):
        return _is_mixed(node)
    if isinstance(node, Power):
        return _power_of(node) is not None
    return isinstance(node, Product) and _is_product(node)


def _is_mixed(node: Sum) -> bool:
    """A whole number and a proper fraction: 2 1/3, but not 380 22/2."""
    if len(node.terms) != 2:
        return False
    whole, part = node.terms
    if not isinstance(whole, Number) or not isinstance(part, Quotient):
        return False
    over, under = part.over, part.under
    return isinstance(over, Number) and isinstance(under, Number) and over.value < under.value


def _is_product(node: Product) -> bool:
    """`3 \\times 10^5`, or powers of different primes: 2^3 · 5^2."""
    factors = node.factors
    if len(factors) == 2 and isinstance(factors[1], Power) and factors[1].base == _TEN and _simple(factors[0]):
        return _simple(factors[1].exponent)
    if len(factors) == 2 and _scale(factors[1]):
        return _simple(factors[0])
    bases = [factor.value.numerator if isinstance(factor, Number) else _power_of(factor) for factor in factors]
    primes = [base for base in bases if base is not None and _is_prime(base)]
    return len(primes) == len(set(primes)) == len(factors) and any(isinstance(factor, Power) for factor in factors)


def _scale(node: Node) -> bool:
    """Whether a factor is a word such as million, written as its number."""
    return isinstance(node, Number) and node.value in _SCALES


def _power_of(node: Node) -> int | None:
    """The base of a power that stands for a number: of a prime, or of ten; `None` for others, and for a first power."""
    if not isinstance(node, Power) or not isinstance(node.base, Number) or not _simple(node.exponent):
        return None
    base = node.base.value
    if base.denominator > 1 or node.exponent == _ONE or not (base == 10 or _is_prime(base.numerator)):
        return None
    return base.numerator


def _is_prime(number: int) -> bool:
    return 1 < number < _LARGEST_PRIME and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def _simple(node: Node) -> bool:
    return isinstance(node, Number) or (isinstance(node, Negative) and _simple(node.value))


def _whole(node: Node) -> bool:
    """Whether a part of a fraction is a whole number, as written."""
    return (isinstance(node, Number) and node.decimals is None) or (isinstance(node, Negative) and _whole(node.value))


def _rational(node: Node) -> bool:
    """Whether a value is rational."""
    try:
        return isinstance(constant(node, StepBudget()), Fraction)
    except (Undecided, Exhausted, RecursionError):
        return False


def _rational_form(node: Node) -> bool:
    """Whether an expression is written without what only irrational numbers need."""
    for part in parts(node):
        if isinstance(part, Call) and part.name in _IRRATIONAL:
            return False
        if isinstance(part, Constant) and part.name in ("pi", "e", "i"):
            return False
        if isinstance(part, Power) and isinstance(part.exponent, Quotient):
            return False
    return True


# ── units ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def unit_of(text: str) -> str:
    """The kind of unit in `text`, the same text for units that convert into each other; empty where it names none."""
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
        return _kind("degree")
    return _kind(node.unit) if isinstance(node, Measure) else ""


def _kind(text: str) -> str:
    unit = read_unit(text)
    measured = [f"{name}^{power}" for size in unit.sizes[:1] for name, power in size.dimensions]
    return " ".join(measured or sorted(unit.words))
