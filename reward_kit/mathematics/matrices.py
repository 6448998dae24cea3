# SPDX-License-Identifier: Apache-2.0
"""Matrices and vectors: the rows of what is written as one, after sums, products and factors are worked out."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import islice, permutations
from typing import Final

from reward_kit.mathematics.nodes import (
    Matrix,
    Negative,
    Node,
    Number,
    Power,
    Product,
    Quotient,
    Sequence,
    Sum,
    Symbol,
    parts,
)
from reward_kit.mathematics.tokens import Unreadable

__all__ = ["Rows", "determinant", "has_matrix", "rows_of"]

_TRANSPOSED: Final = Symbol("T")
_MINUS_ONE: Final = Fraction(-1)
_MAX_PRODUCTS: Final = 1_000
_LARGEST_DETERMINANT: Final = 4
_MAX_PARTS: Final = 4_000
"""Nodes in all cells of a matrix that was worked out."""

Rows = tuple[tuple[Node, ...], ...]


def has_matrix(node: Node) -> bool:
    """Whether a matrix is written anywhere in `node`."""
    tuples = False
    for part in parts(node):
        if type(part) is Matrix:
            return True
        tuples = tuples or (type(part) is Sequence and _is_tuple(part))
    return tuples and any(_is_transposed(part) or _combines_tuples(part) for part in parts(node))


def _combines_tuples(node: Node) -> bool:
    """Whether a tuple is added, or multiplied by a number: 2(1, 3) is a vector."""
    if isinstance(node, Sum):
        return any(map(_is_tuple, node.terms))
    if isinstance(node, Product):
        return any(map(_is_tuple, node.factors))
    if isinstance(node, Negative):
        return _is_tuple(node.value)
    return isinstance(node, Quotient) and _is_tuple(node.over)


def _is_tuple(node: Node) -> bool:
    return isinstance(node, Sequence) and node.opening in ("(", "[") and len(node.items) > 1


def _is_transposed(node: Node) -> bool:
    """Whether `node` is a transposed row, column or matrix, such as `[1, 2]^T`."""
    return isinstance(node, Power) and node.exponent == _TRANSPOSED and isinstance(node.base, Matrix | Sequence)


def determinant(rows: Rows) -> Node:
    """The determinant as an expression, by permutations; a matrix that has none, or a large one, is not one."""
    size = len(rows)
    if size > _LARGEST_DETERMINANT or any(len(row) != size for row in rows) or _is_large(rows):
        raise Unreadable("a determinant of no small square")
    terms: list[Node] = []
    for order in permutations(range(size)):
        product = Product(tuple(rows[at][column] for at, column in enumerate(order)))
        swaps = sum(order[first] > order[second] for first in range(size) for second in range(first + 1, size))
        terms.append(Negative(product) if swaps % 2 else product)
    return Sum(tuple(terms))


def rows_of(node: Node) -> Rows | None:
    """The rows of a matrix, a list of lists, a vector, or a combination of matrices; `None` if it is none of these."""
    if isinstance(node, Matrix):
        return node.rows
    if isinstance(node, Power) and _is_transposed(node):
        rows = rows_of(node.base)
        regular = rows is not None and len({len(row) for row in rows}) == 1
        return tuple(zip(*rows, strict=True)) if rows is not None and regular else None
    if isinstance(node, Sequence) and len(node.items) == 1 and isinstance(node.items[0], Sequence):
        return rows_of(node.items[0])
    if isinstance(node, Sequence):
        nested = tuple(item.items for item in node.items if isinstance(item, Sequence))
        return nested if nested and len(nested) == len(node.items) else (node.items,)
    if isinstance(node, Negative):
        return _scaled(node.value, Number(_MINUS_ONE))
    if isinstance(node, Quotient):
        rows = rows_of(node.over)
        return None if rows is None else _each(rows, lambda cell: Quotient(cell, node.under))
    if isinstance(node, Product):
        return _product(node)
    return _sum(node) if isinstance(node, Sum) else None


def _scaled(node: Node, factor: Node) -> Rows | None:
    rows = rows_of(node)
    return None if rows is None else _each(rows, lambda cell: Product((factor, cell)))


def _each(rows: Rows, change: Callable[[Node], Node]) -> Rows:
    return tuple(tuple(change(cell) for cell in row) for row in rows)


def _sum(node: Sum) -> Rows | None:
    found = [rows_of(term) for term in node.terms]
    shapes = {tuple(map(len, rows)) for rows in found if rows is not None}
    if None in found or len(shapes) != 1:
        return None
    known = [rows for rows in found if rows is not None]
    return tuple(tuple(Sum(cells) for cells in zip(*row, strict=True)) for row in zip(*known, strict=True))


def _product(node: Product) -> Rows | None:
    total: Rows | None = None
    factors: list[Node] = []
    for factor in node.factors:
        rows = rows_of(factor) if has_matrix(factor) or _is_tuple(factor) else None
        if rows is None:
            factors.append(factor)
        else:
            total = rows if total is None else _multiplied(total, rows)
            if total is None:
                return None
    if total is None:
        return None
    return _each(total, lambda cell: Product((*factors, cell))) if factors else total


def _multiplied(left: Rows, right: Rows) -> Rows | None:
    if any(len(row) != len(right) for row in left) or len(left) * len(right) * len(right[0]) > _MAX_PRODUCTS:
        return None
    columns = tuple(zip(*right, strict=True))
    product = tuple(
        tuple(Sum(tuple(Product(pair) for pair in zip(row, column, strict=True))) for column in columns) for row in left
    )
    return None if _is_large(product) else product


def _is_large(rows: Rows) -> bool:
    """Whether the cells have grown beyond what is worth comparing: a product of n matrices has cells of 2^n terms."""
    cells = (part for row in rows for cell in row for part in parts(cell))
    return next(islice(cells, _MAX_PARTS, None), None) is not None
