# SPDX-License-Identifier: Apache-2.0
"""Compare two answers as read: numbers and expressions, amounts, lists and tuples, sets, equations, matrices.

same(gold, answer)
  declarations          x = 2πk, k ∈ ℤ is about x             families
  ±                     becomes a list
  labels and chains     x = 3 says 3;  3 + 1 = 4 says 4       labels
  equations             multiples of each other               numeric.same_solutions
  sets                  intervals, inequalities, builders     sets
  matrices              cell by cell                          matrices
  lists and tuples      ordered in brackets, any order without
  amounts               converted to one unit                 units
  expressions           at random points                      numeric.same_expression
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any, Final, NamedTuple

from reward_kit.mathematics.evaluate import StepBudget
from reward_kit.mathematics.families import Family, other_kinds, same_family, same_parameters, same_union, unconditional
from reward_kit.mathematics.labels import label_of, renamed, renaming, spoken_labels, stated_value, unlabelled
from reward_kit.mathematics.matrices import has_matrix, rows_of
from reward_kit.mathematics.nodes import (
    CASES,
    OTHERWISE,
    Builder,
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
    Percent,
    PlusMinus,
    Power,
    Product,
    Ratio,
    Relation,
    Sequence,
    Sum,
    Symbol,
    opaque,
    parts,
    symbols,
)
from reward_kit.mathematics.numbers import number
from reward_kit.mathematics.numeric import (
    EXACT,
    Tolerance,
    constant,
    same_direction,
    same_expression,
    same_number,
    same_solutions,
)
from reward_kit.mathematics.sets import NotReal, RealSets, all_same, is_set, same_members, unknown_calls
from reward_kit.mathematics.units import GENERIC, Size, read_unit, same_nouns
from reward_kit.mathematics.values import as_big, is_real

__all__ = ["Comparer"]

_MAX_SIGNS: Final = 4
"""Items of a tuple whose signs are chosen independently."""
_STRUCTURES: Final = (Sequence, Interval, Relation, Matrix)
_INTEGRATION: Final = re.compile(r"C|[Cc]_\d")
_CONSTANT: Final = re.compile(r"[CcKkABD](?:_\d)?")
_MOST_CONSTANTS: Final = 3
_IMAGINARY: Final = Constant("i")
_IMAGINARIES: Final = (_IMAGINARY, Symbol("I"), Symbol("j"))
_MAX_UNORDERED: Final = 60
"""Items that are compared each with each."""


_ROUNDING: Final = Tolerance(0.05)
"""What the sides of a chain of equations may differ by, where one of them is rounded."""


class Comparer:
    """Compares two answers under one tolerance, at the cost of one budget."""

    def __init__(self, tolerance: Tolerance, integers: frozenset[str], budget: StepBudget) -> None:
        self._tolerance = tolerance
        self._integers = integers
        """Variables that an answer declares to be any whole number."""
        self._others: frozenset[str] = frozenset()
        """Variables that an answer declares to be something else."""
        self._budget = budget
        self._sets = RealSets(budget)

    def same(self, gold: Node, answer: Node) -> bool | None:
        """Whether the two mean the same; `None` where that cannot be told."""
        self._budget.spend(1)
        if gold == answer:
            return True
        if _is_by_pieces(gold) or _is_by_pieces(answer):
            return self._by_pieces(gold, answer)
        if isinstance(gold, Sequence) or isinstance(answer, Sequence):
            right, given = unconditional(gold), unconditional(answer)
            if other_kinds(right, given):
                return False
            gold, answer = self._declared(right, given)
        gold, answer = _expanded(gold), _expanded(answer)
        if isinstance(gold, _STRUCTURES) != isinstance(answer, _STRUCTURES) or isinstance(gold, Relation | Sequence):
            gold, answer = _each_named(gold, answer), _each_named(answer, gold)
            gold, answer = _as_tuple(gold, answer), _as_tuple(answer, gold)
        return self._of_one_kind(gold, answer)

    def _of_one_kind(self, gold: Node, answer: Node) -> bool | None:
        """Whether two answers are the same, by the kind of what they are."""
        named, others = _named_values(gold), _named_values(answer)
        if named is not None and others is not None and named.keys() == others.keys():
            if len(named) > 1 and (_joined_by(gold) == "or") != (_joined_by(answer) == "or"):
                return False  # x = 2 or y = 3 leaves it open
            return self._in_order(tuple(named.values()), tuple(others[name] for name in named))
        if isinstance(gold, Relation) or isinstance(answer, Relation):
            return self._with_relations(gold, answer)
        if is_set(gold) or is_set(answer):
            return self._as_sets(gold, answer)
        if has_matrix(gold) or has_matrix(answer):
            return self._matrices(gold, answer)
        if isinstance(gold, Sequence) or isinstance(answer, Sequence):
            return self._sequences(gold, answer)
        return self._scalars(gold, answer)

    def _declared(self, gold: Family, answer: Family) -> tuple[Node, Node]:
        """Both answers without what they declare of their variables, which is noted."""
        for family in (gold, answer):
            if family.whole:
                self._integers |= frozenset(family.parameters)
            else:
                self._others |= frozenset(family.parameters)
        return same_parameters(gold, answer)

    def _by_pieces(self, gold: Node, answer: Node) -> bool | None:
        """Two functions by pieces, in whatever order the pieces stand; a name may be left out."""
        if isinstance(gold, Relation) or isinstance(answer, Relation):
            if isinstance(gold, Relation) and isinstance(answer, Relation):
                return self._two_relations(gold, answer)
            values = [stated_value(node) if isinstance(node, Relation) else node for node in (gold, answer)]
            return None if values[0] is None or values[1] is None else self.same(values[0], values[1])
        if not _is_by_pieces(gold) or not _is_by_pieces(answer):
            return False
        assert isinstance(gold, Sequence) and isinstance(answer, Sequence)
        if len(gold.items) != len(answer.items):
            return None
        others = [[item for item in node.items if _is_otherwise(item)] for node in (gold, answer)]
        if all(others) and self._pieces(others[0][0], others[1][0]) is not True:
            return False
        return same_members(gold.items, answer.items, self._pieces, once=True)

    def _pieces(self, gold: Node, answer: Node) -> bool | None:
        """Whether two pieces are the same; where one of them is for all other values, its value decides."""
        assert isinstance(gold, Builder) and isinstance(answer, Builder)
        conditions = gold.condition, answer.condition
        if OTHERWISE not in conditions and self.same(*conditions) is not True:
            return False
        return self.same(gold.what, answer.what)

    # ── relations ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _with_relations(self, gold: Node, answer: Node) -> bool | None:
        if isinstance(gold, Relation) and isinstance(answer, Relation):
            return self._two_relations(gold, answer)
        relation, other = (gold, answer) if isinstance(gold, Relation) else (answer, gold)
        assert isinstance(relation, Relation)
        value = stated_value(relation)
        if isinstance(label_of(relation), Call) and isinstance(other, Sequence) and len(other.items) > 1:
            value = None  # |x| = 3 and ±3
        if value is not None and not (isinstance(other, Sequence) and is_set(other)):
            verdict = self.same(*((value, other) if relation is gold else (other, value)))
            return False if verdict and self._is_false(relation) else verdict
        if is_set(relation):
            return self._as_sets(gold, answer)
        if isinstance(other, Sequence) and other.opening in ("", "{") and len(symbols(relation)) == 1:
            return self._as_sets(gold, answer)  # x² = 4 and ±2
        if isinstance(other, Sequence) and len(other.items) == 1:
            return self.same(*((relation, other.items[0]) if relation is gold else (other.items[0], relation)))
        return False

    def _is_false(self, relation: Relation) -> bool:
        """Whether an equation between numbers does not hold: 5 = 7 says nothing."""
        if any(operator != "=" for operator in relation.operators):
            return False
        sides = relation.operands[label_of(relation) is not None :]
        values = [node for node in sides if not isinstance(node, Measure | Percent | Degrees | InBase | Ratio)]
        numbers = [
            (constant(node, self._budget), node)
            for node in values
            if not isinstance(node, _STRUCTURES) and not opaque(node)
        ]
        known = [(value, node) for value, node in numbers if value is not None]
        return any(
            not same_number(one, two, first, second, _ROUNDING) for (one, first), (two, second) in pairwise(known)
        )

    def _two_relations(self, gold: Relation, answer: Relation) -> bool | None:
        label, other_label = label_of(gold), label_of(answer)
        if label is not None and other_label is not None:
            verdict = self._labelled(label, other_label, gold, answer)
            if verdict is not False:
                return verdict
        if _unknown_words(gold) != _unknown_words(answer):
            return False
        return self._unlabelled(gold, answer)

    def _unlabelled(self, gold: Relation, answer: Relation) -> bool | None:
        """Whether two relations say the same, where they are more than names of values."""
        if all(operator == "=" for operator in (*gold.operators, *answer.operators)):
            return self._equations(gold, answer)
        if is_set(gold) and is_set(answer):
            if _about_others(gold, answer):
                return False
            if unknown_calls(gold) != unknown_calls(answer):
                return self._inequalities(gold, answer)
            if len(symbols(gold)) > 1 and self._inequalities(gold, answer):
                return True  # A > B and B < A
            try:
                return self._sets.same_pieces(self._sets.pieces(gold), self._sets.pieces(answer), self.same)
            except NotReal:
                return self._inequalities(gold, answer)
        if is_set(gold) != is_set(answer):
            return self._as_sets(gold, answer)
        return None

    def _labelled(self, label: Node, other_label: Node, gold: Relation, answer: Relation) -> bool | None:
        right, given = unlabelled(gold), unlabelled(answer)
        changes = renaming(label, other_label)
        if changes is None or not symbols(given).isdisjoint(set(changes.values()) - changes.keys()):
            return False  # f(y) = x is not f(x) = x
        return self.same(right, renamed(given, changes))

    def _equations(self, gold: Relation, answer: Relation) -> bool | None:
        if len(gold.operands) != len(answer.operands) or not symbols(gold) | symbols(answer):
            # Without variables nothing is to be solved, and any two differences are multiples of each other.
            values = stated_value(gold), stated_value(answer)
            if label_of(gold) is not None and label_of(answer) is not None:
                return False  # T(3) = 5 and T(3) = 7, which _labelled found to differ
            return None if values[0] is None or values[1] is None else self.same(values[0], values[1])
        if len(gold.operands) > 2:
            return self._in_order(gold.operands, answer.operands) or None
        return same_solutions(_difference(gold), _difference(answer), self._budget)

    def _inequalities(self, gold: Relation, answer: Relation) -> bool | None:
        if len(gold.operators) != len(answer.operators):
            return False
        if gold.operators == answer.operators and self._in_order(gold.operands, answer.operands):
            return True
        if len(gold.operators) > 1:
            flipped = answer.operands[::-1]
            return self._in_order(gold.operands, flipped) if gold.operators[0] != answer.operators[0] else False
        signs = {"<": -1, "≤": -1, ">": 1, "≥": 1}
        (left,), (right,) = gold.operators, answer.operators
        if left not in signs or right not in signs or (left in "≤≥") != (right in "≤≥"):
            return False if left != right else None
        given = _difference(answer)
        given = given if signs[left] == signs[right] else Negative(given)
        return same_direction(_difference(gold), given, self._budget)

    # ── sets ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _as_sets(self, gold: Node, answer: Node) -> bool | None:
        try:
            left, right = self._sets.pieces(gold), self._sets.pieces(answer)
        except NotReal:
            if isinstance(gold, Sequence) and isinstance(answer, Sequence):
                return self._sequences(gold, answer)
            return None if is_set(gold) and is_set(answer) else False
        return self._sets.same_pieces(left, right, self.same)

    # ── lists, tuples and matrices ───────────────────────────────────────────────────────────────────────────────────

    def _sequences(self, gold: Node, answer: Node) -> bool | None:
        verdict = self._lists(gold, answer)
        if verdict is False and self._families(gold, answer):
            return True
        return verdict

    def _families(self, gold: Node, answer: Node) -> bool:
        """Whether two lists of families run through the same numbers: 4k + 1, 4k + 3 and 2k + 1."""
        ours, theirs = _members_of(gold), _members_of(answer)
        return same_union(ours, theirs, self._integers, self._others, self._budget)

    def _lists(self, gold: Node, answer: Node) -> bool | None:
        if isinstance(gold, Number) and gold.grouped:
            gold = _split_groups(gold)
        if isinstance(answer, Number) and answer.grouped:
            answer = _split_groups(answer)
        ours = gold if isinstance(gold, Sequence) else Sequence((gold,))
        theirs = answer if isinstance(answer, Sequence) else Sequence((answer,))
        if ours.opening == theirs.opening == "{":
            if _holds_one(ours) != _holds_one(theirs):
                return False  # {(1, 2)} and {1, 2}
            if _holds_one(ours):
                return self._members(ours.items[0], theirs.items[0])
        if len(ours.items) == 1 and isinstance(ours.items[0], Sequence):
            return self.same(ours.items[0], answer)
        if len(theirs.items) == 1 and isinstance(theirs.items[0], Sequence):
            return self.same(gold, theirs.items[0])
        if len(ours.items) == len(theirs.items) == 1:
            return self.same(ours.items[0], theirs.items[0])
        if 1 in (len(ours.items), len(theirs.items)) and "or" not in (ours.closing, theirs.closing):
            return False
        return self._items(ours, theirs)

    def _items(self, ours: Sequence, theirs: Sequence) -> bool | None:
        if ours.opening in ("(", "[") and theirs.opening in ("(", "["):
            return self._brackets_agree(ours, theirs) and self._tuples(ours, theirs)
        if {ours.opening, theirs.opening} == {"(", "{"}:
            return False  # a set has no order
        labels, other_labels = _labels(ours), _labels(theirs)
        if labels and other_labels:
            if sorted(labels) == sorted(other_labels):
                by_label = dict(zip(other_labels, theirs.items, strict=True))
                return self._in_order(ours.items, tuple(by_label[label] for label in labels))
            return self._in_order(ours.items, theirs.items)
        if spoken_labels(ours) != spoken_labels(theirs) and "(" not in (ours.opening, theirs.opening):
            return self._any_order(_members_of(ours), _members_of(theirs), repeats=True)  # Tom: 5, Ann: 3 are 3, 5
        if {ours.opening, theirs.opening} == {"[", "{"} and len(ours.items) == len(theirs.items) == 2:
            return not self._rises(ours) and not self._rises(theirs) and self._in_order(ours.items, theirs.items)
        ordered = bool(labels or other_labels) or ours.opening in ("(", "[") or theirs.opening in ("(", "[")
        if ordered:
            return self._in_order(ours.items, theirs.items)
        return self._any_order(ours.items, theirs.items, repeats=_counts_repeats(ours, theirs))

    def _tuples(self, ours: Sequence, theirs: Sequence) -> bool | None:
        """Item by item; the only parameter of a family may have another name."""
        verdict = self._in_order(ours.items, theirs.items)
        names, other_names = symbols(ours), symbols(theirs)
        if verdict is not False or len(names) != 1 or len(other_names) != 1 or names == other_names:
            return verdict
        (right,), (given,) = names, other_names
        return self._in_order(ours.items, renamed(theirs.items, {given: right}))

    def _brackets_agree(self, ours: Sequence, theirs: Sequence) -> bool:
        """(1, 3) and [1, 3] differ where they may be intervals; longer ones, and falling pairs, are tuples."""
        pairs = [pair for pair in (ours, theirs) if len(pair.items) == 2]
        return ours.opening == theirs.opening or not pairs or any(map(self._falls, pairs))

    def _rises(self, pair: Sequence) -> bool:
        """Whether both are known numbers, the second of which is the larger one: [1, 3] may be an interval."""
        return all(constant(item, self._budget) is not None for item in pair.items) and not self._falls(pair)

    def _falls(self, pair: Sequence) -> bool:
        """Whether both are known numbers, the second of which is not the larger one."""
        low, high = (constant(item, self._budget) for item in pair.items)
        if low is None or high is None or not is_real(low) or not is_real(high):
            return False
        return as_big(low).re >= as_big(high).re

    def _in_order(self, gold: tuple[Node, ...], answer: tuple[Node, ...]) -> bool | None:
        """Whether two rows of items mean the same, one by one."""
        if len(gold) != len(answer):
            return False
        return all_same(self.same(right, given) for right, given in zip(gold, answer, strict=True))

    def _any_order(self, gold: tuple[Node, ...], answer: tuple[Node, ...], *, repeats: bool) -> bool | None:
        """Whether two lists hold the same; how often counts only where `repeats` says so."""
        if repeats and len(gold) != len(answer):
            return False
        keys, other_keys = [_key(item) for item in gold], [_key(item) for item in answer]
        if None not in keys and None not in other_keys:
            return Counter(keys) == Counter(other_keys) if repeats else set(keys) == set(other_keys)
        if max(len(gold), len(answer)) > _MAX_UNORDERED:
            return None
        return same_members(gold, answer, self._members, once=repeats)

    def _members(self, gold: Node, answer: Node) -> bool | None:
        """Whether two members of lists are the same: {2} is not 2 there, and (1, 2) not {1, 2}."""
        shapes = [item.opening if isinstance(item, Sequence) else None for item in (gold, answer)]
        if "{" in shapes and shapes[0] != shapes[1]:
            return False
        return self.same(gold, answer)

    def _matrices(self, gold: Node, answer: Node) -> bool | None:
        left, right = rows_of(gold), rows_of(answer)
        if left is None or right is None:
            size = len(left or right or ())
            left, right = (rows_of(_with_identity(node, size)) for node in (gold, answer))
        if left is None or right is None:
            value = constant(gold, self._budget), constant(answer, self._budget)
            return None if value == (None, None) else False
        if len(left) == 1 and len(right) == len(left[0]) and all(len(row) == 1 for row in right):
            right = (tuple(row[0] for row in right),)  # a row and a column of the same numbers are the same vector
        elif len(right) == 1 and len(left) == len(right[0]) and all(len(row) == 1 for row in left):
            left = (tuple(row[0] for row in left),)
        if [len(row) for row in left] != [len(row) for row in right]:
            return False
        cells = tuple(cell for row in left for cell in row)
        return self._in_order(cells, tuple(cell for row in right for cell in row))

    # ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _scalars(self, gold: Node, answer: Node) -> bool | None:
        """Whether two values are the same."""
        if isinstance(gold, Measure) or isinstance(answer, Measure):
            return self._measures(gold, answer)
        if isinstance(gold, Ratio) and isinstance(answer, Ratio):
            return self._ratios(gold, answer)
        if _has_infinity(gold) or _has_infinity(answer):
            signs = _infinity_sign(gold), _infinity_sign(answer)
            return None if None in signs else signs[0] == signs[1]
        if isinstance(gold, InBase) or isinstance(answer, InBase):
            return self._in_bases(gold, answer)
        if isinstance(gold, Percent | Degrees) or isinstance(answer, Percent | Degrees):
            return self._marked(gold, answer)
        if isinstance(gold, Ratio) != isinstance(answer, Ratio):
            right, given = _ratio_value(gold), _ratio_value(answer)
            if right is not gold or given is not answer:
                return self.same(right, given)
        return self._expressions(gold, answer)

    def _marked(self, gold: Node, answer: Node) -> bool | None:
        """Percentages and angles; 5 % is not 5°."""
        kind = Percent if isinstance(gold, Percent) or isinstance(answer, Percent) else Degrees
        if isinstance(gold, kind) and isinstance(answer, kind):
            return self._scalars(gold.value, answer.value)
        if isinstance(gold, Degrees) != isinstance(answer, Degrees) and kind is Percent:
            return False
        return self._marked_once(gold, answer, kind)

    def _marked_once(self, gold: Node, answer: Node, kind: type[Percent] | type[Degrees]) -> bool | None:
        """50%, 50 and 0.5 are the same answer, and so are 30°, 30 and π/6."""
        plain_gold = gold.value if isinstance(gold, kind) else gold
        plain_answer = answer.value if isinstance(answer, kind) else answer
        return self._scalars(plain_gold, plain_answer) or same_expression(gold, answer, self._tolerance, self._budget)

    def _expressions(self, gold: Node, answer: Node) -> bool | None:
        verdict = same_expression(gold, answer, self._tolerance, self._budget)
        if verdict is not False:
            return verdict
        return (
            self._as_groups(gold, answer)
            or self._renamed(gold, answer)
            or same_family(gold, answer, self._integers, self._others, self._budget)
        )

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
            return same_expression(_imaginary(gold), _imaginary(answer), self._tolerance, self._budget) is True
        if len(ours) != len(theirs):
            return False
        if self._other_constants(gold, answer):
            return True
        lower = {name.lower(): name for name in ours}
        changes = {name: lower[name.lower()] for name in theirs if name.lower() in lower}
        if ours == theirs or len(lower) != len(ours) or len(changes) != len(theirs):
            return False
        return same_expression(gold, renamed(answer, changes), self._tolerance, self._budget) is True

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
            if same_expression(gold, renamed(answer, changes), self._tolerance, self._budget):
                return True
        return False

    # ── amounts, ratios, numbers in a base ───────────────────────────────────────────────────────────────────────────

    def _measures(self, gold: Node, answer: Node) -> bool | None:
        """Units that can be converted are, and other units or words are other answers; what is missing does no harm."""
        if isinstance(gold, Measure) and isinstance(answer, Measure) and gold.unit == answer.unit:
            return self.same(gold.value, answer.value)
        ours, theirs = _amount(gold), _amount(answer)
        if ours.percent != theirs.percent and (ours.sizes or theirs.sizes):
            return False  # $5 is not 5 %
        if ours.unknown != theirs.unknown or not same_nouns(ours.words, theirs.words):
            return False  # what is not known to say nothing decides
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
                found = self._scalars(_converted(ours.value, size), _converted(theirs.value, other))
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
            return self._in_order(gold.parts, answer.parts)
        if self._in_order(gold.parts, answer.parts):
            return True
        crossed = (
            self._scalars(Product((right, answer.parts[0])), Product((given, gold.parts[0])))
            for right, given in zip(gold.parts[1:], answer.parts[1:], strict=True)
        )
        return all_same(crossed)

    def _in_bases(self, gold: Node, answer: Node) -> bool | None:
        if isinstance(gold, InBase) and isinstance(answer, InBase):
            if gold.base == answer.base:
                return gold.digits.lstrip("0") == answer.digits.lstrip("0")
            return same_expression(gold, answer, EXACT, self._budget)
        based, other = (gold, answer) if isinstance(gold, InBase) else (answer, gold)
        assert isinstance(based, InBase)
        return same_expression(Number(Fraction(int(based.digits))), other, EXACT, self._budget)


# ── ± ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _expanded(node: Node) -> Node:
    """A node with ± as the list of what it stands for; the signs of one expression go together, of items apart."""
    if isinstance(node, Sequence) and node.opening in ("(", "[") and any(_has_sign(item) for item in node.items):
        return _expanded_tuple(node)
    if isinstance(node, Sequence) and any(_has_sign(item) for item in node.items):
        items: list[Node] = []
        for item in node.items:
            found = _expanded(item)
            items += found.items if _has_sign(item) and isinstance(found, Sequence) else [found]
        return Sequence(tuple(items), node.opening, node.closing)
    if isinstance(node, Relation) and label_of(node) is not None and _has_sign(node):
        return _expanded(unlabelled(node))
    if isinstance(node, _STRUCTURES) or not _has_sign(node):
        return node
    return Sequence(tuple(_signed(node, sign) for sign in (1, -1)))


def _expanded_tuple(node: Sequence) -> Node:
    options: list[tuple[Node, ...]] = [()]
    if sum(_has_sign(item) for item in node.items) > _MAX_SIGNS:
        return node
    for item in node.items:
        choices = (_signed(item, 1), _signed(item, -1)) if _has_sign(item) else (item,)
        options = [(*chosen, choice) for chosen in options for choice in choices]
    return Sequence(tuple(Sequence(items, node.opening, node.closing) for items in options))


def _has_sign(node: Node) -> bool:
    return any(isinstance(part, PlusMinus) for part in parts(node))


def _signed(node: Any, sign: int) -> Any:
    """`node` with every ± read as its upper (1) or lower (-1) sign."""
    if isinstance(node, PlusMinus):
        right = _signed(node.right, sign)
        term = right if sign * node.upper > 0 else Negative(right)
        return term if node.left is None else Sum((_signed(node.left, sign), term))
    if isinstance(node, tuple):
        changed = [_signed(part, sign) for part in node]
        return type(node)(*changed) if hasattr(node, "_fields") else tuple(changed)
    return node


# ── pieces, vectors, several names ───────────────────────────────────────────────────────────────────────────────────


def _is_by_pieces(node: Node) -> bool:
    if isinstance(node, Relation):
        return _is_by_pieces(node.operands[-1])
    return isinstance(node, Sequence) and node.opening == CASES


def _each_named(node: Node, other: Node) -> Node:
    """`p = q = 3` as `p = 3, q = 3`, beside a list."""
    if not isinstance(node, Relation) or not isinstance(other, Sequence) or len(node.operands) < 3:
        return node
    *names, value = node.operands
    if any(operator != "=" for operator in node.operators) or not all(isinstance(name, Symbol) for name in names):
        return node
    return Sequence(tuple(Relation((name, value), ("=",)) for name in names))


def _is_otherwise(node: Node) -> bool:
    """Whether a piece of a function holds for all values that no other is for."""
    return isinstance(node, Builder) and node.condition == OTHERWISE


_DIRECTIONS: Final = ("i", "j", "k")


def _as_tuple(node: Node, other: Node) -> Node:
    """`3i - 2j` as `(3, -2)`, beside a vector of as many parts."""
    if isinstance(other, Relation):
        other = other.operands[-1]
    size = len(other.rows) if isinstance(other, Matrix) else len(other.items) if isinstance(other, Sequence) else 0
    if size not in (2, 3) or (isinstance(other, Sequence) and other.opening != "("):
        return node
    inside = unlabelled(node) if isinstance(node, Relation) and label_of(node) is not None else node
    if not isinstance(inside, Sum | Product | Symbol | Negative) or not symbols(inside) & {"j", "k"}:
        return node
    along = tuple(_replaced(inside, {name: int(name == kept) for name in _DIRECTIONS}) for kept in _DIRECTIONS[:size])
    return node if size == 2 and "k" in symbols(inside) else Sequence(along, "(", ")")


def _with_identity(node: Node, size: int) -> Node:
    """`node` with the matrix that `I` and `I_2` stand for, beside a matrix of so many rows."""
    ones = Matrix(tuple(tuple(Number(Fraction(int(row == column))) for column in range(size)) for row in range(size)))
    return ones if _is_identity(node, size) else _filled(node, ones, size)


def _filled(node: Node, ones: Matrix, size: int) -> Node:
    if isinstance(node, Product):
        return Product(tuple(ones if _is_identity(factor, size) else factor for factor in node.factors))
    if isinstance(node, Negative):
        return Negative(_with_identity(node.value, size))
    return Sum(tuple(_with_identity(term, size) for term in node.terms)) if isinstance(node, Sum) else node


def _is_identity(node: Node, size: int) -> bool:
    return isinstance(node, Symbol) and node.name in ("I", f"I_{size}")


def _replaced(node: Any, numbers: dict[str, int]) -> Any:
    """`node` with numbers for some names."""
    if isinstance(node, Symbol | Constant) and node.name in numbers:
        return Number(Fraction(numbers[node.name]))
    if isinstance(node, tuple):
        changed = [_replaced(part, numbers) for part in node]
        return type(node)(*changed) if hasattr(node, "_fields") else tuple(changed)
    return node


# ── relations and lists ──────────────────────────────────────────────────────────────────────────────────────────────


def _named_values(node: Node) -> dict[str, Node] | None:
    """The values that `(x, y) = (1, 2)` or `x = 1, y = 2` give to variables; `None` for anything else."""
    if isinstance(node, Relation):
        label, value = label_of(node), node.operands[-1]
        if not isinstance(label, Sequence) or not isinstance(value, Sequence) or len(node.operands) != 2:
            return None
        if len(label.items) != len(value.items) or value.opening not in ("(", "["):
            return None
        return {repr(name): item for name, item in zip(label.items, value.items, strict=True)}
    names = _labels(node) if isinstance(node, Sequence) and not node.opening else None
    if names is None or not isinstance(node, Sequence):
        return None
    return {name: unlabelled(item) for name, item in zip(names, node.items, strict=True) if isinstance(item, Relation)}


def _labels(node: Sequence) -> list[str] | None:
    """The names of items that are all labelled, each differently and not as solutions of one unknown."""
    names: list[str] = []
    for item in node.items:
        label = label_of(item) if isinstance(item, Relation) else None
        if label is None:
            return None
        names.append(repr(label))
    stems = {name.split("_")[0] for name in names}
    return names if len(stems) == len(names) > 1 else None


def _joined_by(node: Node) -> str:
    return node.closing if isinstance(node, Sequence) else ""


def _about_others(gold: Relation, answer: Relation) -> bool:
    """Whether two inequalities are each about one variable, and not the same one: x > 0 and y > 0."""
    (ours, theirs) = symbols(gold), symbols(answer)
    return len(ours) == len(theirs) == 1 and {name.lower() for name in ours} != {name.lower() for name in theirs}


def _difference(relation: Relation) -> Node:
    return Sum((relation.operands[0], Negative(relation.operands[1])))


def _members_of(node: Node) -> tuple[Node, ...]:
    """The items of a list or a set, without their labels."""
    items = node.items if isinstance(node, Sequence) and node.opening in ("", "{") else (node,)
    return tuple(unlabelled(item) if isinstance(item, Relation) else item for item in items)


def _holds_one(node: Sequence) -> bool:
    """Whether a set has one member, which is a set or a tuple."""
    return len(node.items) == 1 and isinstance(node.items[0], Sequence)


def _counts_repeats(ours: Sequence, theirs: Sequence) -> bool:
    """A list of values says how often, as in 2, 3, 3 for prime factors; sets, alternatives and solutions do not."""
    if any(isinstance(item, Sequence | Relation) for item in (*ours.items, *theirs.items)):
        return False
    return "{" not in (ours.opening, theirs.opening) and "or" not in (ours.closing, theirs.closing)


def _split_groups(node: Number) -> Sequence:
    return Sequence(tuple(number(part) for part in node.grouped.split(",")))


def _key(node: Node) -> Any:
    """Something equal for equal items, where that is easy: exact numbers and tuples of them."""
    if isinstance(node, Sequence) and node.opening == "(":
        keys = tuple(_key(item) for item in node.items)
        return None if None in keys else keys
    if isinstance(node, Number) and node.decimals is None and not node.grouped:
        return node.value
    if isinstance(node, Negative):
        inner = _key(node.value)
        return -inner if isinstance(inner, Fraction) else None
    return None


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ratio_value(node: Node) -> Node:
    """The value in an answer such as `x: 5`, which names a variable and is no ratio; any other node as it is."""
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


def _has_infinity(node: Node) -> bool:
    return any(part == Constant("inf") for part in parts(node))


def _infinity_sign(node: Node) -> int | None:
    """1 or -1 for an infinity, 0 for what is finite; `None` for ∞ - ∞ and whatever else is made with one."""
    if node == Constant("inf"):
        return 1
    if isinstance(node, Negative):
        sign = _infinity_sign(node.value)
        return None if sign is None else -sign
    if isinstance(node, Sum):
        signs = {_infinity_sign(term) for term in node.terms} - {0}
        return signs.pop() if len(signs) == 1 else None if signs else 0
    return None if _has_infinity(node) else 0


# ── amounts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Amount(NamedTuple):
    """A value and what is said to be measured or counted."""

    value: Node
    sizes: tuple[Size, ...]
    words: frozenset[str]
    percent: bool
    unknown: frozenset[str] = frozenset()


def _amount(node: Node) -> _Amount:
    if isinstance(node, Degrees):
        return _Amount(node.value, read_unit("degree").sizes, frozenset(), percent=False)
    if not isinstance(node, Measure):
        return _Amount(node, (), frozenset(), percent=isinstance(node, Percent))
    inner, unit = _amount(node.value), read_unit(node.unit)
    return _Amount(inner.value, unit.sizes or inner.sizes, unit.words, inner.percent, unit.unknown)


def _unknown_words(node: Node) -> frozenset[str]:
    """The words beside the values in a node of which nobody knows what they say of them."""
    return frozenset(word for part in parts(node) if isinstance(part, Measure) for word in read_unit(part.unit).unknown)


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
