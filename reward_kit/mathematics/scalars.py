"""Compare two values: numbers, expressions, measures, percentages, angles, ratios, numbers in a base."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from itertools import permutations, product
from typing import Any, Final, NamedTuple

from reward_kit.mathematics.dimensions import GENERIC, Size, read_unit, same_nouns
from reward_kit.mathematics.evaluation import parts, symbols
from reward_kit.mathematics.identity import EXACT, Tolerance, same_expression
from reward_kit.mathematics.labels import renamed
from reward_kit.mathematics.nodes import (
    Constant,
    Degrees,
    InBase,
    Measure,
    Negative,
    Node,
    Number,
    Percent,
    Power,
    Product,
    Ratio,
    Sum,
    Symbol,
)
from reward_kit.mathematics.parameters import same_family

__all__ = ["ScalarComparison", "all_same"]

_INTEGRATION: Final = re.compile(r"C|[Cc]_\d")
_CONSTANT: Final = re.compile(r"[CcKkABD](?:_\d)?")
_MOST_CONSTANTS: Final = 3
_IMAGINARY: Final = Constant("i")
_IMAGINARIES: Final = (_IMAGINARY, Symbol("I"), Symbol("j"))


class ScalarComparison(ABC):
    """Comparisons of values under one tolerance."""

    def __init__(self, tolerance: Tolerance = EXACT, integers: frozenset[str] = frozenset()) -> None:
        self._tolerance = tolerance
        self._integers = integers
        """Variables that an answer declares to be any whole number."""
        self._others: frozenset[str] = frozenset()
        """Variables that an answer declares to be something else."""

    @abstractmethod
    def same(self, gold: Node, answer: Node) -> bool | None:
        """Whether the two mean the same; `None` where that cannot be told."""

    @abstractmethod
    def in_order(self, gold: tuple[Node, ...], answer: tuple[Node, ...]) -> bool | None:
        """Whether two rows of items mean the same, one by one."""

    def scalars(self, gold: Node, answer: Node) -> bool | None:
        """Whether two values are the same."""
        if isinstance(gold, Measure) or isinstance(answer, Measure):
            return self._measures(gold, answer)
        if isinstance(gold, Ratio) and isinstance(answer, Ratio):
            return self._ratios(gold, answer)
        infinite = [node for node in (gold, answer) if _has_infinity(node)]
        if infinite:
            return _infinity_sign(gold) == _infinity_sign(answer)
        if isinstance(gold, InBase) or isinstance(answer, InBase):
            return self._in_bases(gold, answer)
        if isinstance(gold, Percent | Degrees) or isinstance(answer, Percent | Degrees):
            return self._marked(gold, answer)
        if isinstance(gold, Ratio) != isinstance(answer, Ratio):
            right, given = _told(gold), _told(answer)
            if right is not gold or given is not answer:
                return self.same(right, given)
        return self._expressions(gold, answer)

    def _marked(self, gold: Node, answer: Node) -> bool | None:
        """Percentages and angles; 5 % is not 5°."""
        kind = Percent if isinstance(gold, Percent) or isinstance(answer, Percent) else Degrees
        if isinstance(gold, kind) and isinstance(answer, kind):
            return self.scalars(gold.value, answer.value)
        if isinstance(gold, Degrees) != isinstance(answer, Degrees) and kind is Percent:
            return False
        return self._marked_once(gold, answer, kind)

    def _expressions(self, gold: Node, answer: Node) -> bool | None:
        verdict = same_expression(gold, answer, self._tolerance)
        if verdict is not False:
            return verdict
        return (
            self._as_groups(gold, answer)
            or self._renamed(gold, answer)
            or same_family(gold, answer, self._integers, self._others)
        )

    def _marked_once(self, gold: Node, answer: Node, kind: type[Percent] | type[Degrees]) -> bool | None:
        """50%, 50 and 0.5 are the same answer, and so are 30°, 30 and π/6."""
        plain_gold = gold.value if isinstance(gold, kind) else gold
        plain_answer = answer.value if isinstance(answer, kind) else answer
        return self.scalars(plain_gold, plain_answer) or same_expression(gold, answer, self._tolerance)

    def _measures(self, gold: Node, answer: Node) -> bool | None:
        """Units that can be converted are, and other units or words are other answers; what is missing does no harm."""
        if isinstance(gold, Measure) and isinstance(answer, Measure) and gold.unit == answer.unit:
            return self.same(gold.value, answer.value)
        ours, theirs = _amount(gold), _amount(answer)
        if ours.percent != theirs.percent and (ours.sizes or theirs.sizes):
            return False  # $5 is not 5 %
        if not same_nouns(ours.words, theirs.words):
            return False
        if (
            bool(ours.words) != bool(theirs.words)
            and bool(ours.sizes) != bool(theirs.sizes)
            and (ours.words if theirs.sizes else theirs.words)
        ):
            return False  # 5 m is not 5 apples
        if ours.sizes and theirs.sizes:
            return self._sizes(ours, theirs)
        if isinstance(gold, Measure) and isinstance(answer, Measure):
            return self.same(gold.value, answer.value)
        measure, other = (gold, answer) if isinstance(gold, Measure) else (answer, gold)
        assert isinstance(measure, Measure)
        value = measure.product if measure.product is not None and symbols(other) else measure.value
        return self.same(*((value, other) if measure is gold else (other, value)))

    def _sizes(self, ours: _Amount, theirs: _Amount) -> bool | None:
        """Whether two amounts are the same for one meaning of each unit."""
        verdict: bool | None = False
        for size, other in product(ours.sizes, theirs.sizes):
            if size.dimensions == other.dimensions:
                found = self.scalars(_converted(ours.value, size), _converted(theirs.value, other))
            elif _generic(size) != _generic(other) and _as_length(size) == _as_length(other):
                found = self.same(ours.value, theirs.value)  # 8 square units are 8 cm²
            else:
                continue
            if found:
                return True
            verdict = None if found is None else verdict
        return verdict

    def _ratios(self, gold: Ratio, answer: Ratio) -> bool | None:
        if len(gold.parts) != len(answer.parts):
            return False
        if gold.clock and answer.clock:
            return self.in_order(gold.parts, answer.parts)
        if self.in_order(gold.parts, answer.parts):
            return True
        crossed = (
            self.scalars(Product((right, answer.parts[0])), Product((given, gold.parts[0])))
            for right, given in zip(gold.parts[1:], answer.parts[1:], strict=True)
        )
        return all_same(crossed)

    def _in_bases(self, gold: Node, answer: Node) -> bool | None:
        if isinstance(gold, InBase) and isinstance(answer, InBase):
            if gold.base == answer.base:
                return gold.digits.lstrip("0") == answer.digits.lstrip("0")
            return same_expression(gold, answer)
        based, other = (gold, answer) if isinstance(gold, InBase) else (answer, gold)
        assert isinstance(based, InBase)
        return same_expression(Number(Fraction(int(based.digits))), other)

    def _as_groups(self, gold: Node, answer: Node) -> bool:
        """`1,22` may be a decimal comma."""
        pair = (gold, answer)
        return any(
            isinstance(node, Number) and node.grouped.startswith("0") and isinstance(other, Number)
            and Fraction(node.grouped.replace(",", ".", 1).replace(",", "")) == other.value
            for node, other in (pair, pair[::-1])
        )  # fmt: skip

    def _renamed(self, gold: Node, answer: Node) -> bool:
        """A parameter may be called C or c, and the imaginary unit I or j."""
        ours, theirs = symbols(gold), symbols(answer)
        units = _imaginary_units(gold), _imaginary_units(answer)
        if units[0] != units[1] and units[0] and units[1]:
            return same_expression(_imaginary(gold), _imaginary(answer), self._tolerance) is True
        if len(ours) != len(theirs):
            return False
        if self._other_constants(gold, answer):
            return True
        lower = {name.lower(): name for name in ours}
        changes = {name: lower[name.lower()] for name in theirs if name.lower() in lower}
        if ours == theirs or len(lower) != len(ours) or len(changes) != len(theirs):
            return False
        return same_expression(gold, renamed(answer, changes), self._tolerance) is True

    def _other_constants(self, gold: Node, answer: Node) -> bool:
        """Constants of integration may have any name: C_1 e^x + C_2 and A e^x + B."""
        ours, theirs = (sorted(filter(_CONSTANT.fullmatch, symbols(node))) for node in (gold, answer))
        variables, others = symbols(gold) - {*ours}, symbols(answer) - {*theirs}
        if not variables or variables != others or len(ours) != len(theirs) or not 0 < len(ours) <= _MOST_CONSTANTS:
            return False
        if not any(all(map(_INTEGRATION.fullmatch, names)) for names in (ours, theirs)):
            return False
        for order in permutations(ours):
            changes = dict(zip(theirs, order, strict=True))
            if same_expression(gold, renamed(answer, changes), self._tolerance):
                return True
        return False


class _Amount(NamedTuple):
    """A value and what is said to be measured or counted."""

    value: Node
    sizes: tuple[Size, ...]
    words: frozenset[str]
    percent: bool


def _amount(node: Node) -> _Amount:
    if isinstance(node, Degrees):
        return _Amount(node.value, read_unit("degree").sizes, frozenset(), percent=False)
    if not isinstance(node, Measure):
        return _Amount(node, (), frozenset(), percent=isinstance(node, Percent))
    inner, unit = _amount(node.value), read_unit(node.unit)
    return _Amount(inner.value, unit.sizes or inner.sizes, unit.words, inner.percent)


def _converted(value: Node, size: Size) -> Node:
    if size.zero:
        value = Sum((value, Number(-size.zero)))
    if size.pi:
        value = Product((value, Power(Constant("pi"), Number(Fraction(size.pi)))))
    return value if size.factor == 1 else Product((value, Number(size.factor)))


def _generic(size: Size) -> bool:
    return any(name == GENERIC for name, _ in size.dimensions)


def _as_length(size: Size) -> list[tuple[str, int]]:
    return [("length" if name == GENERIC else name, power) for name, power in size.dimensions]


def _told(node: Node) -> Node:
    """`x: 5` says 5."""
    named = isinstance(node, Ratio) and len(node.parts) == 2 and isinstance(node.parts[0], Symbol)
    return node.parts[1] if named and isinstance(node, Ratio) else node


def _imaginary_units(node: Node) -> set[Node]:
    """What in `node` may stand for the imaginary unit."""
    return {part for part in parts(node) if part in _IMAGINARIES}


def _imaginary(node: Any) -> Any:
    """`node` with each name of the imaginary unit read as that."""
    if isinstance(node, Symbol) and node in _IMAGINARIES:
        return _IMAGINARY
    if isinstance(node, tuple):
        changed = [_imaginary(part) for part in node]
        return type(node)(*changed) if hasattr(node, "_fields") else tuple(changed)
    return node


def all_same(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all are; `None` where that is not known of one, and none is not."""
    known = True
    for verdict in verdicts:
        if verdict is False:
            return False
        known = known and verdict is not None
    return True if known else None


def _has_infinity(node: Node) -> bool:
    return any(part == Constant("inf") for part in parts(node))


def _infinity_sign(node: Node) -> int:
    if node == Constant("inf"):
        return 1
    if isinstance(node, Negative):
        return -_infinity_sign(node.value)
    return 0
