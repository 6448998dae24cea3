# SPDX-License-Identifier: Apache-2.0
"""Names that answers give to what they say: `x = 3`, `f(n) = n^2`, `(p, q) = (3, 2)`, `AB = 4`."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from reward_kit.mathematics.evaluate import KNOWN_FUNCTIONS
from reward_kit.mathematics.nodes import (
    Call,
    Measure,
    Node,
    Number,
    Product,
    Quotient,
    Ratio,
    Relation,
    Sequence,
    Symbol,
    parts,
    symbols,
)
from reward_kit.mathematics.units import SPOKEN, STRANGE, same_nouns

__all__ = ["label_of", "renamed", "renaming", "spoken_labels", "stated_value", "unlabelled"]

_SAYS: Final = frozenset({"=", "≈", "∈", "≡"})
_VARIABLE: Final = re.compile(r"[a-z]|[XYZT]|theta|phi|alpha")


def label_of(relation: Node) -> Node | None:
    """The name that a relation gives to its other side; `None` if it is not of that kind."""
    if not isinstance(relation, Relation) or relation.operators[0] not in ("=", "≈", "∈"):
        return None
    if any(operator not in _SAYS for operator in relation.operators):
        return None
    label = relation.operands[0]
    return label if _is_name(label) and not _defines_itself(label, relation) else None


def stated_value(relation: Relation) -> Node | None:
    """What a relation says when all it does is to name or to compute something; `None` otherwise."""
    if any(operator not in _SAYS for operator in relation.operators):
        return None
    computed = not symbols(relation) and "∈" not in relation.operators
    label = label_of(relation)
    if (label is None and not computed) or (isinstance(label, Symbol) and label.name.startswith(STRANGE)):
        return None
    return unlabelled(relation)


def unlabelled(relation: Relation) -> Node:
    """What a relation says about what it names: the end of a chain, but not an approximation of it."""
    operands = relation.operands
    named = label_of(relation) is not None
    for index, operator in enumerate(relation.operators):
        if operator == "≈" and (index or not named):
            exact = [operand for operand in operands[named:] if not _rounded(operand)]
            return operands[index] if not _rounded(operands[index]) or not exact else exact[-1]
    return operands[-1]


def _rounded(node: Node) -> bool:
    return any(isinstance(part, Number) and part.decimals is not None for part in parts(node))


def renamed(node: Any, changes: dict[str, str]) -> Any:
    """A copy of `node` in which variables have the names that `changes` gives them."""
    if not changes:
        return node
    if isinstance(node, Symbol):
        return Symbol(changes.get(node.name, node.name))
    if isinstance(node, tuple):
        changed = [renamed(part, changes) for part in node]
        return type(node)(*changed) if hasattr(node, "_fields") else tuple(changed)
    return node


def spoken_labels(node: Sequence) -> bool:
    """Whether each item of a list has a name in words."""
    labels = [label_of(item) for item in node.items]
    return all(isinstance(label, Symbol) and label.name[0] in SPOKEN + STRANGE for label in labels)


def renaming(label: Node, other: Node) -> dict[str, str] | None:
    """How to rename the variables under `other` so that both labels name the same thing; `None` if they do not."""
    if label == other:
        return {}
    if any(isinstance(name, Call) and name.name in KNOWN_FUNCTIONS for name in (label, other)):
        return None  # |y| is not y
    ours, theirs = _label_parts(label), _label_parts(other)
    if not _same_name(ours, theirs):
        return None
    if not ours.called or not theirs.called:
        return {}  # f(x) = … and y = … are two ways to name a function
    if len(ours.arguments) != len(theirs.arguments):
        return None
    changes = {given: right for right, given in zip(ours.arguments, theirs.arguments, strict=True) if given != right}
    variables = all(_VARIABLE.fullmatch(name) for pair in changes.items() for name in pair)
    return changes if variables else None  # P(A) is not P(B), and T(2) not T(3)


class _Label(NamedTuple):
    name: str
    arguments: tuple[str, ...]
    called: bool
    """Whether it is a function of these arguments."""
    lettered: bool
    """Whether its name is a letter, with what may stand at it."""


def _label_parts(label: Node) -> _Label:
    if isinstance(label, Call):
        names = tuple(part.name if isinstance(part, Symbol) else repr(part) for part in label.arguments)
        return _Label(label.name, names, True, True)
    if isinstance(label, Symbol):
        return _Label(label.name, (), False, label.name[0] not in SPOKEN + STRANGE)
    if isinstance(label, Product):
        return _Label(
            " ".join(sorted(part.name for part in label.factors if isinstance(part, Symbol))), (), False, True
        )
    return _Label(repr(label), (), False, not isinstance(label, Sequence))


def _same_name(ours: _Label, theirs: _Label) -> bool:
    """Whether two names may be those of one thing: a word and a letter may, two words or two letters must agree."""
    if STRANGE in (ours.name[0], theirs.name[0]):
        return ours.name == theirs.name
    if not ours.lettered and not theirs.lettered:
        spoken = ours.name.startswith(SPOKEN) and theirs.name.startswith(SPOKEN)
        return not spoken or same_nouns(*(frozenset(label.name[1:].split()) for label in (ours, theirs)))
    if ours.lettered != theirs.lettered:
        return True
    if _marks(ours.name) != _marks(theirs.name):
        return False  # f' is not f
    if ours.called != theirs.called:
        return True
    if ours.called:
        return ours.name == theirs.name
    segments = " " in ours.name, " " in theirs.name
    if segments[0] != segments[1]:
        return True
    base, other = ours.name.lower().split("_"), theirs.name.lower().split("_")
    return base == other or (base[0] == other[0] and 1 in (len(base), len(other)))


def _marks(name: str) -> tuple[int, bool]:
    return name.count("'"), name.endswith("_bar")


def _is_name(node: Node) -> bool:
    if isinstance(node, Symbol):
        return True
    if isinstance(node, Call):
        return node.name not in KNOWN_FUNCTIONS or (node.name == "abs" and _is_name(node.arguments[0]))
    if isinstance(node, Measure):
        return _is_name(node.value)
    if isinstance(node, Sequence):
        return bool(node.items) and all(_is_name(item) for item in node.items)
    if isinstance(node, Quotient):
        return _is_segment(node.over) and _is_segment(node.under)
    if isinstance(node, Ratio):
        return all(isinstance(part, Symbol) or _is_segment(part) for part in node.parts)
    return isinstance(node, Product) and _is_segment(node)


def _is_segment(node: Node) -> bool:
    """`AB`, `S_{ABC}`: capital letters side by side."""
    if isinstance(node, Symbol):
        return node.name[0].isupper()
    return isinstance(node, Product) and all(isinstance(part, Symbol) and _is_segment(part) for part in node.factors)


def _defines_itself(label: Node, relation: Relation) -> bool:
    """x = x^2 - 1 is an equation, not a name."""
    return isinstance(label, Symbol) and any(label.name in symbols(operand) for operand in relation.operands[1:])
