r"""Read expressions: a recursive descent over tokens, one method a level.

sum      a + b - c ± d, and {a \over b}
product  a b * c / d
signed   -a, and mixed numbers
postfix  a^b   a!   a%   a°
atom     numbers, symbols, functions, \frac, \sqrt, |a|, brackets: in `atoms`
"""

from __future__ import annotations

from abc import ABC
from typing import Final

from reward_kit.mathematics.atoms import STARTING_COMMANDS, STARTING_MARKS, AtomParser, times
from reward_kit.mathematics.nodes import (
    Call,
    Degrees,
    Negative,
    Node,
    Number,
    Percent,
    PlusMinus,
    Power,
    Quotient,
    Sum,
)
from reward_kit.mathematics.numerals import number
from reward_kit.mathematics.tokens import Token, Unreadable

__all__ = ["ExpressionParser"]

_TIMES: Final = frozenset({"cdot", "times", "ast", "bullet"})
_STARTS: Final = frozenset({"number", "symbol", "constant", "function"})
_MAX_CHAINED: Final = 150
"""Signs that nest to the left: a / b / c, a^b^c, a ± b ± c."""


class ExpressionParser(AtomParser, ABC):
    """The levels of an expression."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self._chained = 0

    def sum(self) -> Node:
        """Terms and their signs."""
        self._deeper()
        node = self._plus_minus(None) if self._peek().text in ("pm", "mp") else self.product()
        terms = [node]
        while True:
            token = self._peek()
            if token.kind == "mark" and token.text in "+-":
                self._at += 1
                term = self.product()
                terms.append(term if token.text == "+" else Negative(term))
            elif token.kind == "command" and token.text in ("pm", "mp"):
                terms = [self._plus_minus(_sum(terms))]
            else:
                break
        node = self._parted(_sum(terms))
        self._depth -= 1
        return node

    def _parted(self, left: Node) -> Node:
        r"""`{a + b \over c}` and `{n \choose k}`, where what came before belongs to the left."""
        if self._accept("over"):
            return Quotient(left, self.sum())
        return Call("binom", (left, self.sum())) if self._accept("choose") else left

    def _plus_minus(self, left: Node | None) -> Node:
        upper = 1 if self._peek().text == "pm" else -1
        self._chain()
        return PlusMinus(left, self.product(), upper)

    def _chain(self) -> None:
        """Pass over a sign that puts what came before it one level deeper."""
        self._at += 1
        self._chained += 1
        if self._chained > _MAX_CHAINED:
            raise Unreadable("too many signs in a row")

    def product(self) -> Node:
        """Factors, with and without signs between them; division binds like multiplication."""
        node = self.signed()
        while True:
            token = self._peek()
            if (token.kind == "mark" and token.text == "*") or (token.kind == "command" and token.text in _TIMES):
                self._at += 1
                node = times(node, self.signed())
            elif (token.kind == "mark" and token.text == "/") or (token.kind == "command" and token.text == "div"):
                if self._peek(1).kind == "word":
                    return node  # a unit: 65 /h
                self._chain()
                node = Quotient(node, self.signed(mixed=False))
            elif self._starts_factor(token):
                node = times(node, self.postfix())
            else:
                return node

    def _starts_factor(self, token: Token) -> bool:
        if token.kind in _STARTS:
            return True
        if token.kind == "mark":
            return token.text in STARTING_MARKS or (token.text == "|" and not self._bars)
        return token.kind == "command" and token.text in STARTING_COMMANDS

    def signed(self, *, mixed: bool = True) -> Node:
        """A factor that may have a sign of its own: the sign of -x^2 and of -3 1/2 belongs to all of it."""
        negative = False
        while self._peek().kind == "mark" and self._peek().text in "+-":
            negative ^= self._next().text == "-"
        node = self.postfix()
        if isinstance(node, Number):
            if self._peek().kind == "number":
                node = self._mixed(node)
            elif mixed and node.decimals is None and self._is_fraction():
                node = self._mixed_with_fraction(node)
        if negative and isinstance(node, Percent | Degrees):
            return type(node)(Negative(node.value))  # the percent sign or the degree counts for all of it
        return Negative(node) if negative else node

    def _is_fraction(self) -> bool:
        return self._peek().kind == "command" and self._peek().text.endswith("frac")

    def _mixed(self, whole: Number) -> Node:
        """`1 4/5`; two numbers side by side are nothing else."""
        spaced = self._peek().spaced
        over = number(self._next().text)
        if not spaced or not self._accept("/") or self._peek().kind != "number":
            raise Unreadable("two numbers side by side")
        under = number(self._next().text)
        if any(part.decimals is not None for part in (whole, over, under)) or not under.value:
            raise Unreadable("two numbers side by side")
        return Sum((whole, Quotient(over, under)))

    def _mixed_with_fraction(self, whole: Number) -> Node:
        r"""`1\frac45` is a sum, `2\frac{x}{3}` a product."""
        part = self.postfix()
        if isinstance(part, Percent):
            return Percent(self._mixed_sum(whole, part.value))
        return self._mixed_sum(whole, part)

    @staticmethod
    def _mixed_sum(whole: Number, part: Node) -> Node:
        if isinstance(part, Quotient) and isinstance(part.over, Number) and isinstance(part.under, Number):
            return Sum((whole, part))
        return times(whole, part)

    def postfix(self) -> Node:
        """An atom with its exponents and the marks behind it."""
        self._deeper()
        node = self.atom()
        while self._peek().kind == "mark" and self._peek().text in ("^", "!", "%", "°"):
            mark = self._peek().text
            self._chain()
            if mark == "^":
                node = Power(node, self.exponent())
            elif mark == "!":
                node = self._factorial(node)
            else:
                node = Percent(node) if mark == "%" else Degrees(node)
        self._depth -= 1
        return node

    def _factorial(self, node: Node) -> Node:
        if self._is("!"):
            raise Unreadable("a double factorial")
        return Call("factorial", (node,))

    def exponent(self) -> Node:
        """What stands behind a `^`."""
        if self._is("{") or self._is("("):
            return self.bracketed()
        negative = self._accept("-")
        node = self.postfix()
        return Negative(node) if negative else node


def _sum(terms: list[Node]) -> Node:
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))
