"""Families of answers: `x = \\pi/4 + k\\pi, k \\in \\mathbb{Z}` is about x, and k may have any name."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final, NamedTuple

from reward_kit.rewards._support.mathematics.big import Undecided, Value, as_big, close, is_real
from reward_kit.rewards._support.mathematics.evaluation import Point, evaluate, symbols
from reward_kit.rewards._support.mathematics.labels import renamed
from reward_kit.rewards._support.mathematics.nodes import Node, Relation, Sequence, Symbol
from reward_kit.rewards._support.mathematics.polynomials import degree

__all__ = ["Family", "integers_in", "same_family", "same_parameters", "unconditional"]

_SETS: Final = frozenset("ℝℤℕℚℂ") | {"ℤ+", "ℕ+", "ℕ*", "Z", "N", "R", "Q"}


_INTEGERS: Final = frozenset({"ℤ", "Z"})
_COUNTERS: Final = frozenset({"k", "n", "m", "l", "j"})
"""Letters that stand for any whole number where an answer has a period."""
_SAID: Final = re.compile(
    r"(?:where|for|with|if|when)?(?:all|any|some|every)?(?P<name>[a-zA-Z])(?:is|are|in|∈)?(?:an|any)?"
    r"(?:integers?|Z)\.?"
)


class Family(NamedTuple):
    """An answer, and the variables that it declares to be any number of a kind."""

    node: Node
    parameters: tuple[str, ...] = ()
    whole: bool = False
    """Whether the kind is all whole numbers, so that a shift does not matter."""


def integers_in(condition: str) -> frozenset[str]:
    """The variable of a condition that says no more than "where k is an integer"."""
    match = _SAID.fullmatch(condition.replace("mathbb", ""))
    return frozenset({match["name"]}) if match else frozenset()


def same_family(gold: Node, answer: Node, integers: frozenset[str], others: frozenset[str]) -> bool:
    """Whether `a k + b` and `c n + d` run through the same numbers; `others` are declared to be no whole numbers.

    Without a declaration that holds for what has a period: a multiple of π, degrees, or a multiple of k as in 2k + 1.
    """
    ours, theirs = symbols(gold), symbols(answer)
    if len(ours) != 1 or len(theirs) != 1 or (ours | theirs) & others:
        return False
    (name,), (other,) = ours, theirs
    declared = bool((ours | theirs) & integers)
    if not {name, other} <= _COUNTERS | integers:
        return False
    if degree(gold, name) != 1 or degree(answer, other) != 1:
        return False
    try:
        start, step = _progression(gold, name)
        begin, stride = _progression(answer, other)
        if not step or not stride or not (close(step, stride) or close(step, -stride)):
            return False
        shift = (start - begin) / step
        return _is_whole(shift) and (declared or _periodic(step, {name, other}))
    except Undecided:
        return False


def _progression(node: Node, name: str) -> tuple[Value, Value]:
    start, following = (evaluate(node, Point(values={name: Fraction(at)})) for at in (0, 1))
    return start, following - start


def _is_whole(value: Value) -> bool:
    if not is_real(value):
        return False
    near = round(Fraction(as_big(value).re))
    return close(value, Fraction(near)) if near else not value


def _periodic(step: Value, names: set[str]) -> bool:
    if not isinstance(step, Fraction):
        return True
    return names == {"k"} and step.denominator == 1 and abs(step) > 1


def unconditional(node: Node) -> Family:
    """An answer without the items that only say what its variables are."""
    if not isinstance(node, Sequence) or node.opening or len(node.items) < 2:
        return Family(node)
    last = node.items[-1]
    names = _declared(last)
    rest = node.items[:-1]
    if not names or not all(name in symbols(Sequence(rest)) for name in names):
        return Family(node)
    whole = isinstance(last, Relation) and isinstance(last.operands[1], Symbol) and last.operands[1].name in _INTEGERS
    return Family(rest[0] if len(rest) == 1 else Sequence(rest, "", node.closing), names, whole)


def _declared(node: Node) -> tuple[str, ...]:
    """The variables of `k \\in \\mathbb{Z}`."""
    if not isinstance(node, Relation) or node.operators != ("∈",):
        return ()
    subject, kind = node.operands
    if not isinstance(kind, Symbol) or kind.name not in _SETS:
        return ()
    return (subject.name,) if isinstance(subject, Symbol) else ()


def same_parameters(gold: Family, answer: Family) -> tuple[Node, Node]:
    """Both answers, with the parameters of the second named as in the first where both declare one."""
    if len(gold.parameters) == len(answer.parameters) == 1 and gold.parameters != answer.parameters:
        (right,), (given,) = gold.parameters, answer.parameters
        if right not in symbols(answer.node):
            return gold.node, renamed(answer.node, {given: right})
    return gold.node, answer.node
