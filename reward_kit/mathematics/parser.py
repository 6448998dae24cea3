r"""Parse a whole answer: lists, relations, units, tuples, sets, intervals, matrices, around `expressions`.

    answer    item , item; item and item
    item      label: relation, then a unit
    relation  a < b = c, x ∈ S
    joined    sets with ∪ ∩ \
    ratio     a : b : c
"""

from __future__ import annotations

from typing import Final

from reward_kit.mathematics.evaluation import symbols
from reward_kit.mathematics.matrices import determinant
from reward_kit.mathematics.measures import MeasureParser
from reward_kit.mathematics.nodes import (
    Builder,
    Constant,
    Interval,
    Matrix,
    Negative,
    Node,
    Number,
    Product,
    Ratio,
    Relation,
    Sequence,
    SetOperation,
    Symbol,
)
from reward_kit.mathematics.numerals import number
from reward_kit.mathematics.tokens import END, Token, Unreadable

__all__ = ["CLOSING", "AnswerParser"]

CLOSING: Final = {"(": ")", "[": "]", "{": "}", "\\{": "\\}", "langle": "rangle"}
"""Brackets, and what closes them."""
_SHAPE: Final = {"\\{": "{", "langle": "(", "\\}": "}", "rangle": ")"}
_SET_OPERATORS: Final = {"cup": "∪", "cap": "∩", "setminus": "∖", "backslash": "∖"}
_EITHER: Final = frozenset({"or", "oder", "ou"})
_SYSTEMS: Final = frozenset({"cases", "aligned", "align", "array*", "gathered", "dcases"})
_MATRICES: Final = frozenset("matrix pmatrix bmatrix vmatrix Bmatrix Vmatrix smallmatrix array".split())


class AnswerParser(MeasureParser):
    """The levels above an expression."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self._inside = ""
        """The innermost bracket that is open."""

    def answer(self) -> Node:
        """The whole of the tokens."""
        items, rows = self._items()
        if self._peek() is not END:
            raise Unreadable(f"{self._peek().text!r} is left over")
        if len(rows) > 1 and any(count > 1 for count in rows):
            return Sequence(tuple(Sequence(part) for part in _split(items, rows)))
        joined = {token.text for token in self._tokens if token.kind == "conjunction"}
        closing = "or" if joined & _EITHER else "and" if joined else ""
        return items[0] if len(items) == 1 else Sequence(tuple(items), "", closing)

    def _items(self) -> tuple[list[Node], list[int]]:
        """Items up to the end of this bracket, and how many there are between semicolons."""
        items = [self.item()]
        rows = [1]
        while self._separator():
            semicolon = self._tokens[self._at - 1].text == ";"
            if self._ended():
                break
            items.append(self.item())
            if semicolon:
                rows.append(1)
            else:
                rows[-1] += 1
        return items, rows

    def _separator(self) -> bool:
        found = False
        while True:
            token = self._peek()
            apart = token.kind == "conjunction" or (token.kind == "mark" and token.text in (",", ";", "\\\\"))
            if (token.text == "\\\\" and self._inside == "begin") or not apart:
                return found
            found = True
            self._at += 1
            if token.kind == "mark" and self._is(";"):
                continue

    def _ended(self) -> bool:
        return self._peek() is END or self._peek().text in (")", "]", "}", "\\}", "rangle")

    # ── one item ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def item(self) -> Node:
        """One item of a list: a label, a relation, a unit."""
        self._skip_label()
        node = self._relation()
        if self._peek().kind == "word" or self._is("/") or self._is("{") or self._is("°"):
            node = self.with_unit(node)
        return _named_point(node)

    def _skip_label(self) -> None:
        """`Minimum:`, `Maximum =`, `Sequence 1:`, `lower_bound:`."""
        ahead = 0
        while self._peek(ahead).kind in ("word", "number") or (ahead and self._is("_", ahead)):
            ahead += 1
        words = any(self._peek(index).kind == "word" for index in range(ahead))
        if words and (self._is(":", ahead) or self._peek(ahead) == Token("relation", "=", self._peek(ahead).spaced)):
            self._at += ahead + 1

    def _relation(self) -> Node:
        operands = [self._operand()]
        operators: list[str] = []
        while self._peek().kind == "relation":
            operators.append(self._next().text)
            operand = self._operand()
            operands.append(_number_set(operand) if operators[-1] == "∈" else operand)
        return Relation(tuple(operands), tuple(operators)) if operators else operands[0]

    def _operand(self) -> Node:
        measure = self.measure()
        return measure if measure is not None else self._joined()

    def _joined(self) -> Node:
        node = self._ratio()
        while self._peek().kind == "command" and self._peek().text in _SET_OPERATORS:
            operator = _SET_OPERATORS[self._next().text]
            right = self._ratio()
            if isinstance(node, SetOperation) and node.operator == operator:
                node = SetOperation(operator, (*node.parts, right))
            else:
                node = SetOperation(operator, (node, right))
        return node

    def _ratio(self) -> Node:
        start = self._at
        parts = [self.sum()]
        while self._inside != "\\{" and self._is(":"):
            self._at += 1
            if self._peek().kind == "relation":  # x := 5
                self._at -= 1
                break
            parts.append(self.sum())
        if len(parts) == 1:
            return parts[0]
        if self._inside == "{" and isinstance(parts[0], Symbol):  # {"alpha": 1}
            return Relation((parts[0], parts[1]), ("=",))
        return Ratio(tuple(parts), clock=_is_clock(self._tokens[start : self._at]))

    # ── brackets ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def bracketed(self) -> Node:
        """A group, a tuple, a set, an interval, a vector or a matrix."""
        start = self._at
        if start in self._seen:  # a letter before them was tried as a function; twice at each level would be forever
            node, self._at = self._seen[start]
            return node
        self._deeper()
        opening = self._next().text
        before, self._inside = self._inside, opening
        bars, self._bars = self._bars, int(opening == "\\{")
        closing = CLOSING[opening]
        if self._accept(closing):
            node = Sequence((), _SHAPE.get(opening, opening), _SHAPE.get(closing, closing))
        else:
            node = self._contents(start, opening, closing, before)
        self._inside, self._bars = before, bars
        self._depth -= 1
        self._seen[start] = node, self._at
        return node

    def _contents(self, start: int, opening: str, closing: str, outside: str) -> Node:
        items, rows = self._items()
        if opening != "{" or len(items) > 1:
            items = _ungrouped(items)
        if opening == "\\{" and len(items) == 1 and (self._is("|") or self._is("mid") or self._is(":")):
            self._at += 1
            self._bars = 0
            conditions, _ = self._items()
            self._expect(closing)
            return Builder(items[0], conditions[0] if len(conditions) == 1 else Sequence(tuple(conditions)))
        found = self._next()
        if found.text != closing and (opening not in "([" or found.text not in (")", "]")):
            raise Unreadable(f"{opening!r} is closed by {found.text!r}")
        alone = len(items) == 1 and not isinstance(items[0], Matrix | Relation) and not symbols(items[0])
        if alone and self._is_set(start, opening, found.text, outside):
            return Sequence((items[0],), "{", "}")
        return _bracketed(items, rows, _SHAPE.get(opening, opening), _SHAPE.get(found.text, found.text))

    def _is_set(self, start: int, opening: str, closing: str, outside: str) -> bool:
        r"""Whether braces around one item make a set: `\\{2\\}`, and the inner ones of `{1, {2}}`."""
        if opening == "\\{":
            return closing == "\\}"
        before = self._tokens[start - 1].text if start else ""
        return opening == "{" and outside in ("{", "\\{") and (before == "," or self._is(","))

    def environment(self) -> Node:
        r"""`\begin{pmatrix} a & b \\ c & d \end{pmatrix}`."""
        self._at += 1
        name = self._environment_name()
        if name in _SYSTEMS:
            return self._system()
        if name not in _MATRICES:
            raise Unreadable(f"the environment {name!r}")
        if name == "array" and self._accept("{"):
            while not self._accept("}"):
                if self._next() is END:
                    raise Unreadable("an array without an end")
        before, self._inside = self._inside, "begin"
        rows: list[tuple[Node, ...]] = []
        while not self._accept("end"):
            rows.append(self._row())
        self._environment_name()
        self._inside = before
        if name == "array" and all(len(row) == 1 and isinstance(row[0], Relation) for row in rows):
            return Sequence(tuple(row[0] for row in rows))  # a system of equations
        return determinant(tuple(rows)) if name == "vmatrix" else Matrix(tuple(rows))

    def _system(self) -> Node:
        r"""Equations one below the other: `\\begin{cases} x = 1 \\\\ y = 2 \\end{cases}`; no function by pieces."""
        before, self._inside = self._inside, "begin"
        equations: list[Node] = []
        while not self._accept("end"):
            equations.append(self.item())
            while self._accept(","):
                pass
            if not self._accept("\\\\") and not self._is("end"):
                raise Unreadable("a system without an end")
        self._environment_name()
        self._inside = before
        if not all(isinstance(equation, Relation) for equation in equations):
            raise Unreadable("a function by pieces")
        return Sequence(tuple(equations))

    def _environment_name(self) -> str:
        self._expect("{")
        name = ""
        while not self._accept("}"):
            if self._peek() is END:
                raise Unreadable("an environment without a name")
            name += self._next().text
        return name

    def _row(self) -> tuple[Node, ...]:
        cells = [self._relation()]
        while self._accept("&"):
            cells.append(self._relation())
        if not self._accept("\\\\") and not self._is("end"):
            raise Unreadable("a row of a matrix without an end")
        return tuple(cells)


def _number_set(node: Node) -> Node:
    """R, Z, N and Q after ∈ are the sets."""
    at = "RZNQ".find(node.name) if isinstance(node, Symbol) else -1
    return Symbol("ℝℤℕℚ"[at]) if at >= 0 else node


def _named_point(node: Node) -> Node:
    """`A(2, 5)` says that A is (2, 5)."""
    if isinstance(node, Product) and len(node.factors) == 2:
        name, point = node.factors
        if isinstance(name, Symbol) and name.name[0].isupper() and isinstance(point, Sequence) and len(point.items) > 1:
            return Relation((name, point), ("=",))
    return node


def _bracketed(items: list[Node], rows: list[int], opening: str, closing: str) -> Node:
    if len(items) == 1 and isinstance(items[0], Matrix):
        return items[0]
    if len(items) == 1 and opening in "({" and closing in ")}":
        return Sequence((items[0],), opening, closing) if isinstance(items[0], Sequence) else _one(items[0], opening)
    if opening == "[" and len(rows) > 1 and max(rows) > 1 and len(set(rows)) == 1:
        return Matrix(tuple(_split(items, rows)))
    two = len(items) == 2
    if two and (opening + closing in ("(]", "[)") or any(_is_infinite(item) for item in items)):
        return Interval(items[0], items[1], opening, closing)
    return Sequence(tuple(items), opening, closing)


def _one(item: Node, opening: str) -> Node:
    return item if opening == "(" or not isinstance(item, Relation) else Sequence((item,), "{", "}")


def _split(items: list[Node], rows: list[int]) -> list[tuple[Node, ...]]:
    parts: list[tuple[Node, ...]] = []
    start = 0
    for count in rows:
        parts.append(tuple(items[start : start + count]))
        start += count
    return parts


def _ungrouped(items: list[Node]) -> list[Node]:
    """Inside brackets a comma separates: (312,123,231) has three items."""
    if not any(isinstance(item, Number) and item.grouped for item in items):
        return items
    parts: list[Node] = []
    for item in items:
        grouped = item.grouped if isinstance(item, Number) else ""
        parts += [number(part) for part in grouped.split(",")] if grouped else [item]
    return parts


def _is_infinite(node: Node) -> bool:
    return node == Constant("inf") or (isinstance(node, Negative) and node.value == Constant("inf"))


def _is_clock(tokens: list[Token]) -> bool:
    parts = [token.text for token in tokens if token.text != ":"]
    later = parts[1:]
    return all(part.isdigit() for part in parts) and bool(later) and all(len(part) == 2 for part in later)
