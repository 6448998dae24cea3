"""± as the list of what it stands for."""

from __future__ import annotations

from typing import Any, Final

from reward_kit.mathematics.evaluation import parts
from reward_kit.mathematics.labels import bare, unlabelled
from reward_kit.mathematics.nodes import (
    Interval,
    Matrix,
    Negative,
    Node,
    PlusMinus,
    Relation,
    Sequence,
    Sum,
)

__all__ = ["expanded"]

_MAX_SIGNS: Final = 4
"""Items of a tuple whose signs are chosen independently."""
_STRUCTURES: Final = (Sequence, Interval, Relation, Matrix)


def expanded(node: Node) -> Node:
    """A node with ± as the list of what it stands for; the signs of one expression go together, of items apart."""
    if isinstance(node, Sequence) and node.opening in ("(", "[") and any(_has_sign(item) for item in node.items):
        return _expanded_tuple(node)
    if isinstance(node, Sequence) and any(_has_sign(item) for item in node.items):
        items: list[Node] = []
        for item in node.items:
            found = expanded(item)
            items += found.items if _has_sign(item) and isinstance(found, Sequence) else [found]
        return Sequence(tuple(items), node.opening, node.closing)
    if isinstance(node, Relation) and bare(node) is not None and _has_sign(node):
        return expanded(unlabelled(node))
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
