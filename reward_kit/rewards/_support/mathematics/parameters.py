"""Families of answers: `x = \\pi/4 + k\\pi, k \\in \\mathbb{Z}` is about x, and k may have any name."""

from __future__ import annotations

from typing import Final, NamedTuple

from reward_kit.rewards._support.mathematics.evaluation import symbols
from reward_kit.rewards._support.mathematics.labels import renamed
from reward_kit.rewards._support.mathematics.nodes import Node, Relation, Sequence, Symbol

__all__ = ["Family", "same_parameters", "unconditional"]

_SETS: Final = frozenset("ℝℤℕℚℂ") | {"ℤ+", "ℕ+", "ℕ*", "Z", "N", "R", "Q"}


class Family(NamedTuple):
    """An answer, and the variables that it declares to be any number of a kind."""

    node: Node
    parameters: tuple[str, ...] = ()


def unconditional(node: Node) -> Family:
    """An answer without the items that only say what its variables are."""
    if not isinstance(node, Sequence) or node.opening or len(node.items) < 2:
        return Family(node)
    last = node.items[-1]
    names = _declared(last)
    rest = node.items[:-1]
    if not names or not all(name in symbols(Sequence(rest)) for name in names):
        return Family(node)
    return Family(rest[0] if len(rest) == 1 else Sequence(rest, "", node.closing), names)


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
