r"""Read values with units: `5 m`, `9.8\,\mathrm{m/s^2}`, `1.6 \times 10^{-19} C`, `2 hours 30 minutes`."""

from __future__ import annotations

from abc import ABC
from fractions import Fraction
from typing import Final

from reward_kit.mathematics.dimensions import Size, known_unit, read_unit
from reward_kit.mathematics.expressions import ExpressionParser
from reward_kit.mathematics.nodes import (
    Degrees,
    Measure,
    Node,
    Number,
    Percent,
    Product,
    Quotient,
    Relation,
    Sum,
    Symbol,
)
from reward_kit.mathematics.numerals import number
from reward_kit.mathematics.tokens import END, Token, Unreadable
from reward_kit.mathematics.vocabulary import UNIT_LETTERS

__all__ = ["MeasureParser"]

_FACTORS: Final = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "lakh": 10**5, "crore": 10**7,
}  # fmt: skip
_NOT_UNITS: Final = frozenset(
    "not or than least most about approximately cannot can is are was were if does do no error none "
    "null true false undefined infinite to between from".split()
)
_IDLE: Final = frozenset({"only", "exactly", "total", "altogether"})
_MAX_UNIT_TOKENS: Final = 9
_LONGEST_GLUED: Final = 12
"""Letters of a unit that is written without a space before it."""
_PERCENT_WORDS: Final = frozenset({"percent", "pct", "percentage", "per cent", "percents"})
_DEGREE_WORDS: Final = frozenset({"degree", "degrees", "deg"})
_BETWEEN_UNITS: Final = frozenset({"/", "*", "cdot", "times"})
_EXPONENTS: Final = frozenset({"2", "3"})
_IN_VALUES: Final = frozenset("- + * / ^ ( ) { } frac dfrac tfrac cdot times sqrt".split())
"""What may stand in a value that has no variable in it."""
_LONGEST_VALUE: Final = 24
"""Tokens of such a value."""


class MeasureParser(ExpressionParser, ABC):
    """Values with units."""

    def measure(self) -> Node | None:
        """A number with a unit of letters that might be variables: `5 m`, `9.8 m/s^2`; `None` where there is none."""
        start, depth = self._at, self._depth
        end = self._value_end(start)
        if end == start or not self._may_be_unit(end, negative=self._is("-")):
            end = self._constant_end(start)
        if end == start:
            return None
        stop = self._unit_end(end)
        following = self._tokens[stop] if stop < len(self._tokens) else END
        unit = self._joined_text(end, stop)
        if following.kind == "number":
            return self._in_two_units(type(self)(self._tokens[start:end]).sum(), unit, stop)
        if following is not END and following.kind != "conjunction" and following.text not in (",", ";"):
            return None
        try:
            product: Node | None = self.sum()
        except Unreadable:
            product = None
        if self._at != stop:
            product = None
        self._depth = depth
        parser = type(self)(self._tokens[start:end])
        try:
            value = parser.sum()
        except Unreadable:
            value = None
        if value is None or parser._peek() is not END:
            self._at = start
            return None
        self._at = stop
        if unit == "k":  # 70k
            return Measure(Product((value, Number(Fraction(1000)))), "", product)
        return Measure(value, unit, product)

    def _in_two_units(self, value: Node, unit: str, stop: int) -> Node | None:
        """`2 m 50 cm`; `None` where the second unit is no smaller one of the same kind."""
        start, self._at = self._at, stop
        larger = Measure(value, unit)
        both = self._with_smaller(larger)
        if both is not larger:
            return both
        self._at = start
        return None

    def _value_end(self, at: int) -> int:
        r"""Where a number ends that begins here: `-5`, `3 \times 10^{8}`; `at` itself where none does."""
        begin = at
        at += self._text(at) == "-"
        if self._kind(at) != "number":
            return begin
        at += 1
        if self._text(at) in _BETWEEN_UNITS and self._text(at + 1) == "10" and self._text(at + 2) == "^":
            end = self._exponent_end(at + 2)
            return end if end > at + 2 else at
        return at

    def _constant_end(self, at: int) -> int:
        r"""Where `-1/2`, `3\sqrt{2}` or `\frac{\pi}{4}` ends, if a space and a unit of one letter follow; else `at`."""
        depth = 0
        for end in range(at, min(at + _LONGEST_VALUE, len(self._tokens))):
            token = self._tokens[end]
            if end > at and token.spaced and not depth and token.kind == "symbol" and token.text in UNIT_LETTERS:
                return end
            if token.kind not in ("number", "constant") and token.text not in _IN_VALUES:
                return at
            depth += (token.text in ("(", "{")) - (token.text in (")", "}"))
        return at

    def _may_be_unit(self, at: int, *, negative: bool) -> bool:
        """Whether a unit of letters may begin here; a letter glued to a negative number is a variable: -48g."""
        token = self._tokens[at] if at < len(self._tokens) else END
        if token.text in ("frac", "{"):
            return self._unit_end(at) > at
        lone = at + 1 >= len(self._tokens) or self._tokens[at + 1].kind == "conjunction"
        if token.text == "k":
            return lone and not token.spaced
        return token.text in UNIT_LETTERS and not (negative and lone and not token.spaced)

    def _kind(self, at: int) -> str:
        return self._tokens[at].kind if at < len(self._tokens) else "end"

    def _text(self, at: int) -> str:
        return self._tokens[at].text if at < len(self._tokens) else ""

    # ── the grammar of units ─────────────────────────────────────────────────────────────────────────────────────────

    def _unit_end(self, at: int) -> int:
        """Where the unit ends that begins here; `at` itself where none does."""
        while True:
            if self._names_unit(at):
                at = self._exponent_end(at + 1)
            elif self._text(at) in ("frac", "dfrac", "tfrac") and (end := self._fraction_end(at)):
                at = end
            elif self._text(at) in _BETWEEN_UNITS and self._names_unit(at + 1):
                at += 1
            elif (
                self._text(at) == "{" and self._names_unit(at + 1) and self._text(end := self._unit_end(at + 1)) == "}"
            ):
                at = self._exponent_end(end + 1)
            else:
                return at

    def _names_unit(self, at: int) -> bool:
        if self._kind(at) == "word":
            name = self._text(at).lower()
            return name not in _NOT_UNITS or (name == "to" and self._text(at + 1) == "the")  # 3 m to the left
        return self._kind(at) == "symbol" and (self._text(at) in UNIT_LETTERS or self._text(at) == "k")

    def _fraction_end(self, at: int) -> int:
        r"""Where a `\frac{m}{s^2}` ends that begins here; 0 where none does."""
        at += 1
        for _ in range(2):
            end = self._unit_end(at + 1)
            if self._text(at) != "{" or end == at + 1 or self._text(end) != "}":
                return 0
            at = end + 1
        return at

    def _exponent_end(self, at: int) -> int:
        """Where the exponent ends that begins here: `^2`, `^{-1}`, or a 2 or 3 glued to the unit."""
        if self._text(at) != "^":
            glued = self._kind(at) == "number" and self._text(at) in _EXPONENTS and not self._tokens[at].spaced
            return at + 1 if glued else at
        braced = self._text(at + 1) == "{"
        end = at + 1 + braced
        end += self._text(end) == "-"
        if self._kind(end) != "number" or (braced and self._text(end + 1) != "}"):
            return at
        return end + 1 + braced

    # ── words behind a value ─────────────────────────────────────────────────────────────────────────────────────────

    def with_unit(self, node: Node) -> Node:
        """`node` with the words behind it as its unit; `Unreadable` where they are no unit."""
        words: list[str] = []
        opened = 0
        while not self._unit_ends(opened):
            token = self._peek()
            end = self._unit_end(self._at)
            glued = not token.spaced and not words and len(token.text) > _LONGEST_GLUED
            if glued or len(words) > _MAX_UNIT_TOKENS:
                raise Unreadable("words that are no unit")
            if end > self._at:
                words += [found.text for found in self._tokens[self._at : end] if found.text not in ("{", "}")]
                self._at = end
                continue
            if token.kind != "mark" or token.text not in "/^*{}-°":
                raise Unreadable("words that are no unit")
            opened += (token.text == "{") - (token.text == "}")
            self._at += 1
            if token.text not in ("{", "}"):
                words.append(token.text)
        return self._with_smaller(_measured(node, words))

    def _unit_ends(self, opened: int) -> bool:
        token: Token = self._peek()
        if (
            token is END
            or token.kind in ("conjunction", "number")
            or token.text in (",", ";", ")", "]", "\\}", "rangle")
        ):
            return True
        return token.text == "}" and not opened

    def _with_smaller(self, larger: Node) -> Node:
        """`2 hours 30 minutes`, `5 feet and 6 inches`: what follows counts in a smaller unit of the same kind."""
        while isinstance(larger, Measure) and (size := _only_size(larger.unit)) is not None:
            begin = self._at + (self._peek().text in ("and", ","))
            stop = self._unit_end(begin + 1)
            smaller = _only_size(self._joined_text(begin + 1, stop)) if self._kind(begin) == "number" else None
            if smaller is None or smaller.dimensions != size.dimensions or smaller.factor >= size.factor:
                break
            ratio = Number(size.factor / smaller.factor)
            total = Sum((Product((larger.value, ratio)), number(self._text(begin))))
            larger = Measure(total, self._joined_text(begin + 1, stop))
            self._at = stop
        return larger

    def _joined_text(self, begin: int, end: int) -> str:
        return " ".join(token.text for token in self._tokens[begin:end] if token.text not in ("{", "}"))


def _only_size(unit: str) -> Size | None:
    """The first size of a unit that is known; `None` for any other."""
    return read_unit(unit).sizes[0] if unit and known_unit(unit) else None


def _measured(node: Node, words: list[str]) -> Node:
    """`node` with the unit, which belongs to the last operand of a relation."""
    if isinstance(node, Relation):
        return Relation((*node.operands[:-1], _measured(node.operands[-1], words)), node.operators)
    if words and (factor := _FACTORS.get(words[0]) or _FACTORS.get(words[0].lower().rstrip("s"))):
        node = Product((node, Number(Fraction(factor))))
        words = words[1:]
    unit = " ".join(word for word in words if word not in _IDLE)
    if unit.lower() in _PERCENT_WORDS:
        return Percent(node)
    if unit == "permille":
        return Percent(Quotient(node, Number(Fraction(10))))
    if unit.lower() in _DEGREE_WORDS:
        return Degrees(node)
    if isinstance(node, Symbol) and unit and not known_unit(unit):
        raise Unreadable("a letter with words behind it")  # a line, x increases
    return Measure(node, unit) if unit else node
