"""The unit that an answer names."""

from __future__ import annotations

from reward_kit.mathematics.dimensions import read_unit
from reward_kit.mathematics.nodes import Degrees, Measure, Node, Percent, Relation
from reward_kit.mathematics.reader import read_answer
from reward_kit.mathematics.tokens import Unreadable

__all__ = ["unit_of"]


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
