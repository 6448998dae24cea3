# SPDX-License-Identifier: Apache-2.0
"""Families of answers: `x = \\pi/4 + k\\pi, k \\in \\mathbb{Z}` is about x, and k may have any name; `5 (mod 7)`."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final, NamedTuple

from reward_kit.mathematics.evaluate import Point, StepBudget, evaluate
from reward_kit.mathematics.labels import renamed
from reward_kit.mathematics.nodes import Node, Relation, Sequence, Symbol, symbols
from reward_kit.mathematics.polynomials import degree
from reward_kit.mathematics.text import plain
from reward_kit.mathematics.values import Undecided, Value, as_fraction, close, is_real

__all__ = [
    "Family",
    "integers_in",
    "other_kinds",
    "same_family",
    "same_parameters",
    "same_residue",
    "same_union",
    "unconditional",
]

_SETS: Final = frozenset("ℝℤℕℚℂ") | {"ℤ+", "ℕ+", "ℕ*", "Z", "N", "R", "Q"}


_INTEGERS: Final = frozenset({"ℤ", "Z"})
_NATURALS: Final = frozenset({"ℕ", "N", "ℕ+", "ℕ*", "ℤ+"})
_MOST_FAMILIES: Final = 24
"""Families, and periods of one in the common one, that are compared."""
_COUNTERS: Final = frozenset({"k", "n", "m", "l", "j"})
"""Letters that stand for any whole number where an answer has a period."""
_SAID: Final = re.compile(
    r"(?:where|for|with|if|when)?(?:all|any|some|every)?(?P<name>[a-zA-Z])(?:is|are|in|∈)?(?:an|any)?"
    r"(?:integers?|Z)\.?"
)


_CLASS: Final = re.compile(
    r"(?:(?P<name>[A-Za-z])\s*(?:\\equiv\s*|=\s*))?(?P<number>-?\d{1,30})\s*\\pmod\s(?P<modulus>\d{1,30})"
)
_WHOLE: Final = re.compile(r"-?\d{1,30}")
_LONGEST_CLASS: Final = 120


class Family(NamedTuple):
    """An answer, and the variables that it declares to be any number of a kind."""

    node: Node
    parameters: tuple[str, ...] = ()
    kind: str = ""
    """The set they are from: ℤ, ℕ."""

    @property
    def whole(self) -> bool:
        """Whether the kind is all whole numbers, so that a shift does not matter."""
        return self.kind in _INTEGERS


def integers_in(condition: str) -> frozenset[str]:
    """The variable of a condition that says no more than "where k is an integer"."""
    match = _SAID.fullmatch(condition.replace("mathbb", ""))
    return frozenset({match["name"]}) if match else frozenset()


def same_family(gold: Node, answer: Node, integers: frozenset[str], others: frozenset[str], budget: StepBudget) -> bool:
    """Whether `a k + b` and `c n + d` run through the same numbers: see `same_union`."""
    return same_union((gold,), (answer,), integers, others, budget)


def same_union(
    gold: tuple[Node, ...],
    answer: tuple[Node, ...],
    integers: frozenset[str],
    others: frozenset[str],
    budget: StepBudget,
) -> bool:
    """Whether two lists of families run through the same numbers; `others` are declared to be no whole numbers.

    Without a declaration that holds for what has a period: a multiple of π, degrees, or a multiple of k as in 2k + 1.
    """
    if len(gold) + len(answer) > _MOST_FAMILIES:
        return False
    names = {name for node in (*gold, *answer) for name in symbols(node)}
    if not names or names & others or not names <= _COUNTERS | integers:
        return False
    try:
        ours, theirs = (_progressions(nodes, budget) for nodes in (gold, answer))
        if ours is None or theirs is None:
            return False
        steps = [step for _, step in (*ours, *theirs)]
        listed = len(gold) + len(answer) > 2  # 6k ± 1 can only be a family; 2k and 2n may be two formulas
        counted = names == {"k"} or (listed and "k" in names)
        if not names & integers and not all(_periodic(step, counted=counted) for step in steps):
            return False
        period = _common_period(steps)
        return period is not None and _same_starts(_starts(ours, period), _starts(theirs, period), period)
    except Undecided:
        return False


def _progressions(nodes: tuple[Node, ...], budget: StepBudget) -> list[tuple[Value, Value]] | None:
    """The first number and the step of each family; `None` where one is no progression."""
    found: list[tuple[Value, Value]] = []
    for node in nodes:
        names = symbols(node)
        if len(names) != 1 or degree(node, next(iter(names))) != 1:
            return None
        start, step = _progression(node, next(iter(names)), budget)
        if not step:
            return None
        found.append((start, step))
    return found


def _common_period(steps: list[Value]) -> Value | None:
    """The least number that each step divides; `None` where there is none, or where it is a large one."""
    ratios: list[Fraction] = []
    for step in steps:
        ratio = step / steps[0]
        if not is_real(ratio):
            return None
        near = as_fraction(ratio).limit_denominator(_MOST_FAMILIES)
        if not near or not close(ratio, near):
            return None
        ratios.append(abs(near))
    multiple = Fraction(math.lcm(*(ratio.numerator for ratio in ratios)), math.gcd(*(r.denominator for r in ratios)))
    return steps[0] * multiple if max(multiple / ratio for ratio in ratios) <= _MOST_FAMILIES else None


def _starts(families: list[tuple[Value, Value]], period: Value) -> list[Value]:
    """Where families with one common period begin, each family with a smaller one counted several times."""
    found: list[Value] = []
    for start, step in families:
        times = abs(round(as_fraction(period / step)))
        found += [start + step * Fraction(index) for index in range(times)]
    return found


def _same_starts(ours: list[Value], theirs: list[Value], period: Value) -> bool:
    return all(
        any(_is_whole((start - other) / period) for other in others)
        for starts, others in ((ours, theirs), (theirs, ours))
        for start in starts
    )


def _progression(node: Node, name: str, budget: StepBudget) -> tuple[Value, Value]:
    start, following = (evaluate(node, Point(budget, values={name: Fraction(at)})) for at in (0, 1))
    return start, following - start


def _is_whole(value: Value) -> bool:
    if not is_real(value):
        return False
    near = round(as_fraction(value))
    return close(value, Fraction(near)) if near else not value


def _periodic(step: Value, *, counted: bool) -> bool:
    if not isinstance(step, Fraction):
        return True
    return counted and step.denominator == 1 and abs(step) > 1


def unconditional(node: Node) -> Family:
    """An answer without the items that only say what its variables are."""
    if not isinstance(node, Sequence) or node.opening or len(node.items) < 2:
        return Family(node)
    last = node.items[-1]
    names = _declared(last)
    rest = node.items[:-1]
    if not names or not all(name in symbols(Sequence(rest)) for name in names):
        return Family(node)
    declared = last.operands[1] if isinstance(last, Relation) else None
    kind = declared.name if isinstance(declared, Symbol) else ""
    return Family(rest[0] if len(rest) == 1 else Sequence(rest, "", node.closing), names, kind)


def _declared(node: Node) -> tuple[str, ...]:
    """The variables of `k \\in \\mathbb{Z}`."""
    if not isinstance(node, Relation) or node.operators != ("∈",):
        return ()
    subject, kind = node.operands
    if not isinstance(kind, Symbol) or kind.name not in _SETS:
        return ()
    return (subject.name,) if isinstance(subject, Symbol) else ()


def other_kinds(gold: Family, answer: Family) -> bool:
    """Whether two families are declared over different numbers: all whole ones, or only the positive ones."""
    kinds = {"Z" if family.kind in _INTEGERS else "N" if family.kind in _NATURALS else "" for family in (gold, answer)}
    return kinds == {"Z", "N"}


def same_parameters(gold: Family, answer: Family) -> tuple[Node, Node]:
    """Both answers, with the parameters of the second named as in the first where both declare one."""
    if len(gold.parameters) == len(answer.parameters) == 1 and gold.parameters != answer.parameters:
        (right,), (given,) = gold.parameters, answer.parameters
        if right not in symbols(answer.node):
            return gold.node, renamed(answer.node, {given: right})
    return gold.node, answer.node


def same_residue(gold: str, answer: str) -> bool | None:
    """Whether two texts name one residue class, or a class and the number that stands for it; `None` for others."""
    if max(len(gold), len(answer)) > _LONGEST_CLASS:
        return None
    texts = plain(gold), plain(answer)
    right, given = (_CLASS.fullmatch(text) for text in texts)
    if right is not None and given is not None:
        if right["name"] and given["name"] and right["name"] != given["name"]:
            return False
        modulus = int(right["modulus"])
        same = modulus == int(given["modulus"]) and modulus > 0
        return same and (int(right["number"]) - int(given["number"])) % modulus == 0
    one, other = (right, texts[1]) if right is not None else (given, texts[0])
    if one is None or not _WHOLE.fullmatch(other) or not int(one["modulus"]):
        return None
    return int(other) in (int(one["number"]), int(one["number"]) % int(one["modulus"]))
