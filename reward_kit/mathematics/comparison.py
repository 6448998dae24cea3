"""Compare two answers as read: numbers and expressions, lists and tuples, sets, equations, matrices.

same(gold, answer)
  labels and chains     x = 3 says 3;  3 + 1 = 4 says 4;  f(n) = n^2 and f(m) = m^2 say the same
  ± and alternatives    become lists
  sets                  intervals, inequalities, builders     real_sets
  sequences             ordered in brackets, any order without
  equations             multiples of each other               identity.same_solutions
  expressions           identity.same_expression
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any, Final

from reward_kit.mathematics.big import as_big, is_real
from reward_kit.mathematics.evaluation import spend, symbols
from reward_kit.mathematics.identity import (
    constant,
    same_direction,
    same_solutions,
)
from reward_kit.mathematics.labels import bare, renamed, renaming, said, unlabelled
from reward_kit.mathematics.matrices import has_matrix, rows_of
from reward_kit.mathematics.nodes import (
    Negative,
    Node,
    Number,
    Relation,
    Sequence,
    Sum,
)
from reward_kit.mathematics.numerals import number
from reward_kit.mathematics.parameters import (
    Family,
    other_kinds,
    same_parameters,
    same_union,
    unconditional,
)
from reward_kit.mathematics.real_sets import NotReal, is_set, pieces, same_pieces, unknown_calls
from reward_kit.mathematics.scalars import ScalarComparison, all_same
from reward_kit.mathematics.signs import expanded

__all__ = ["Comparison"]

_MAX_UNORDERED: Final = 60
"""Items that are compared each with each."""


class Comparison(ScalarComparison):
    """Comparisons under one tolerance."""

    def same(self, gold: Node, answer: Node) -> bool | None:
        """Whether the two mean the same; `None` where that cannot be told."""
        spend(1)
        if gold == answer:
            return True
        if isinstance(gold, Sequence) or isinstance(answer, Sequence):
            right, given = unconditional(gold), unconditional(answer)
            if other_kinds(right, given):
                return False
            gold, answer = self._declared(right, given)
        gold, answer = expanded(gold), expanded(answer)
        named, others = _named_values(gold), _named_values(answer)
        if named is not None and others is not None and named.keys() == others.keys():
            if len(named) > 1 and (_joined_by(gold) == "or") != (_joined_by(answer) == "or"):
                return False  # x = 2 or y = 3 leaves it open
            return self.in_order(tuple(named.values()), tuple(others[name] for name in named))
        if isinstance(gold, Relation) or isinstance(answer, Relation):
            return self._with_relations(gold, answer)
        if is_set(gold) or is_set(answer):
            return self._sets(gold, answer)
        if has_matrix(gold) or has_matrix(answer):
            return self._matrices(gold, answer)
        if isinstance(gold, Sequence) or isinstance(answer, Sequence):
            return self._sequences(gold, answer)
        return self.scalars(gold, answer)

    def _declared(self, gold: Family, answer: Family) -> tuple[Node, Node]:
        """Both answers without what they declare of their variables, which is noted."""
        for family in (gold, answer):
            if family.whole:
                self._integers |= frozenset(family.parameters)
            else:
                self._others |= frozenset(family.parameters)
        return same_parameters(gold, answer)

    # ── relations ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _with_relations(self, gold: Node, answer: Node) -> bool | None:
        if isinstance(gold, Relation) and isinstance(answer, Relation):
            return self._two_relations(gold, answer)
        relation, other = (gold, answer) if isinstance(gold, Relation) else (answer, gold)
        assert isinstance(relation, Relation)
        value = said(relation)
        if value is not None and not (isinstance(other, Sequence) and is_set(other)):
            return self.same(*((value, other) if relation is gold else (other, value)))
        if is_set(relation):
            return self._sets(gold, answer)
        if isinstance(other, Sequence) and other.opening in ("", "{") and len(symbols(relation)) == 1:
            return self._sets(gold, answer)  # x² = 4 and ±2
        if isinstance(other, Sequence) and len(other.items) == 1:
            return self.same(*((relation, other.items[0]) if relation is gold else (other.items[0], relation)))
        return False

    def _two_relations(self, gold: Relation, answer: Relation) -> bool | None:
        label, other_label = bare(gold), bare(answer)
        if label is not None and other_label is not None:
            verdict = self._labelled(label, other_label, gold, answer)
            if verdict is not False:
                return verdict
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
                return same_pieces(pieces(gold), pieces(answer), self.same)
            except NotReal:
                return self._inequalities(gold, answer)
        if is_set(gold) != is_set(answer):
            return self._sets(gold, answer)
        return None

    def _labelled(self, label: Node, other_label: Node, gold: Relation, answer: Relation) -> bool | None:
        right, given = unlabelled(gold), unlabelled(answer)
        changes = renaming(label, other_label)
        if changes is None:
            return False
        return self.same(right, renamed(given, changes))

    def _equations(self, gold: Relation, answer: Relation) -> bool | None:
        if len(gold.operands) != len(answer.operands) or not symbols(gold) | symbols(answer):
            # Without variables nothing is to be solved, and any two differences are multiples of each other.
            values = said(gold), said(answer)
            if bare(gold) is not None and bare(answer) is not None:
                return False  # T(3) = 5 and T(3) = 7, which _labelled found to differ
            return None if values[0] is None or values[1] is None else self.same(values[0], values[1])
        if len(gold.operands) > 2:
            return self.in_order(gold.operands, answer.operands) or None
        return same_solutions(_difference(gold), _difference(answer))

    def _inequalities(self, gold: Relation, answer: Relation) -> bool | None:
        if len(gold.operators) != len(answer.operators):
            return False
        if gold.operators == answer.operators and self.in_order(gold.operands, answer.operands):
            return True
        if len(gold.operators) > 1:
            flipped = answer.operands[::-1]
            return self.in_order(gold.operands, flipped) if gold.operators[0] != answer.operators[0] else False
        signs = {"<": -1, "≤": -1, ">": 1, "≥": 1}
        (left,), (right,) = gold.operators, answer.operators
        if left not in signs or right not in signs or (left in "≤≥") != (right in "≤≥"):
            return False if left != right else None
        given = _difference(answer)
        return same_direction(_difference(gold), given if signs[left] == signs[right] else Negative(given))

    # ── sets ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sets(self, gold: Node, answer: Node) -> bool | None:
        try:
            left, right = pieces(gold), pieces(answer)
        except NotReal:
            if isinstance(gold, Sequence) and isinstance(answer, Sequence):
                return self._sequences(gold, answer)
            return None if is_set(gold) and is_set(answer) else False
        return same_pieces(left, right, self.same)

    # ── sequences ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sequences(self, gold: Node, answer: Node) -> bool | None:
        verdict = self._lists(gold, answer)
        if verdict is False and self._families(gold, answer):
            return True
        return verdict

    def _families(self, gold: Node, answer: Node) -> bool:
        """Whether two lists of families run through the same numbers: 4k + 1, 4k + 3 and 2k + 1."""
        ours, theirs = _members_of(gold), _members_of(answer)
        return same_union(ours, theirs, self._integers, self._others)

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
        labels, other_labels = _labels(ours), _labels(theirs)
        if labels and other_labels:
            if sorted(labels) == sorted(other_labels):
                by_label = dict(zip(other_labels, theirs.items, strict=True))
                return self.in_order(ours.items, tuple(by_label[label] for label in labels))
            return self.in_order(ours.items, theirs.items)
        ordered = bool(labels or other_labels) or ours.opening in ("(", "[") or theirs.opening in ("(", "[")
        if ordered:
            return self.in_order(ours.items, theirs.items)
        return self._any_order(ours.items, theirs.items, repeats=_counts_repeats(ours, theirs))

    def _tuples(self, ours: Sequence, theirs: Sequence) -> bool | None:
        """Item by item; the only parameter of a family may have another name."""
        verdict = self.in_order(ours.items, theirs.items)
        names, other_names = symbols(ours), symbols(theirs)
        if verdict is not False or len(names) != 1 or len(other_names) != 1 or names == other_names:
            return verdict
        (right,), (given,) = names, other_names
        return self.in_order(ours.items, renamed(theirs.items, {given: right}))

    def _brackets_agree(self, ours: Sequence, theirs: Sequence) -> bool:
        """(1, 3) and [1, 3] differ where they may be intervals; longer ones, and falling pairs, are tuples."""
        if ours.opening == theirs.opening or len(ours.items) != 2:
            return True
        low, high = (constant(item) for item in ours.items)
        if low is None or high is None or not is_real(low) or not is_real(high):
            return False
        return as_big(low).re >= as_big(high).re

    def in_order(self, gold: tuple[Node, ...], answer: tuple[Node, ...]) -> bool | None:
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
        forth = self._covered(gold, answer, once=repeats)
        return forth if repeats else forth and self._covered(answer, gold, once=False)

    def _covered(self, items: tuple[Node, ...], by: tuple[Node, ...], *, once: bool) -> bool | None:
        """Whether each item is one of the others, each of which counts `once` or any number of times."""
        known, left = True, list(by)
        for item in items:
            verdicts = [self._members(item, other) for other in left]
            if True in verdicts:
                if once:
                    del left[verdicts.index(True)]
            elif None not in verdicts:
                return False
            else:
                known = False
        return True if known else None

    def _members(self, gold: Node, answer: Node) -> bool | None:
        """Whether two members of lists are the same: {2} is not 2 there, and (1, 2) not {1, 2}."""
        shapes = [item.opening if isinstance(item, Sequence) else None for item in (gold, answer)]
        if "{" in shapes and shapes[0] != shapes[1]:
            return False
        return self.same(gold, answer)

    # ── matrices ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _matrices(self, gold: Node, answer: Node) -> bool | None:
        left, right = rows_of(gold), rows_of(answer)
        if left is None or right is None:
            value = constant(gold), constant(answer)
            return None if value == (None, None) else False
        if len(left) == 1 and len(right) == len(left[0]) and all(len(row) == 1 for row in right):
            right = (tuple(row[0] for row in right),)  # a row and a column of the same numbers are the same vector
        elif len(right) == 1 and len(left) == len(right[0]) and all(len(row) == 1 for row in left):
            left = (tuple(row[0] for row in left),)
        if [len(row) for row in left] != [len(row) for row in right]:
            return False
        cells = tuple(cell for row in left for cell in row)
        return self.in_order(cells, tuple(cell for row in right for cell in row))


def _members_of(node: Node) -> tuple[Node, ...]:
    """The items of a list or a set, without their labels."""
    items = node.items if isinstance(node, Sequence) and node.opening in ("", "{") else (node,)
    return tuple(unlabelled(item) if isinstance(item, Relation) else item for item in items)


def _holds_one(node: Sequence) -> bool:
    """Whether a set has one member, which is a set or a tuple."""
    return len(node.items) == 1 and isinstance(node.items[0], Sequence)


def _named_values(node: Node) -> dict[str, Node] | None:
    """The values that `(x, y) = (1, 2)` or `x = 1, y = 2` give to variables; `None` for anything else."""
    if isinstance(node, Relation):
        label, value = bare(node), node.operands[-1]
        if not isinstance(label, Sequence) or not isinstance(value, Sequence) or len(node.operands) != 2:
            return None
        if len(label.items) != len(value.items) or value.opening not in ("(", "["):
            return None
        return {repr(name): item for name, item in zip(label.items, value.items, strict=True)}
    names = _labels(node) if isinstance(node, Sequence) and not node.opening else None
    if names is None or not isinstance(node, Sequence):
        return None
    return {name: unlabelled(item) for name, item in zip(names, node.items, strict=True) if isinstance(item, Relation)}


def _joined_by(node: Node) -> str:
    return node.closing if isinstance(node, Sequence) else ""


def _about_others(gold: Relation, answer: Relation) -> bool:
    """Whether two inequalities are each about one variable, and not the same one: x > 0 and y > 0."""
    (ours, theirs) = symbols(gold), symbols(answer)
    return len(ours) == len(theirs) == 1 and {name.lower() for name in ours} != {name.lower() for name in theirs}


def _counts_repeats(ours: Sequence, theirs: Sequence) -> bool:
    """A list of values says how often, as in 2, 3, 3 for prime factors; sets, alternatives and solutions do not."""
    if any(isinstance(item, Sequence | Relation) for item in (*ours.items, *theirs.items)):
        return False
    return "{" not in (ours.opening, theirs.opening) and "or" not in (ours.closing, theirs.closing)


def _difference(relation: Relation) -> Node:
    return Sum((relation.operands[0], Negative(relation.operands[1])))


def _split_groups(node: Number) -> Sequence:
    return Sequence(tuple(number(part) for part in node.grouped.split(",")))


def _labels(node: Sequence) -> list[str] | None:
    """The names of items that are all labelled, each differently and not as solutions of one unknown."""
    names: list[str] = []
    for item in node.items:
        label = bare(item) if isinstance(item, Relation) else None
        if label is None:
            return None
        names.append(repr(label))
    stems = {name.split("_")[0] for name in names}
    return names if len(stems) == len(names) > 1 else None


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
