r"""Read atoms: numbers, names, functions with their arguments, commands, bars; what has no operator in it.

The levels above are in `expressions`, brackets and matrices in `parser`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Final

from reward_kit.mathematics.nodes import (
    Call,
    Constant,
    InBase,
    Interval,
    Negative,
    Node,
    Number,
    Opaque,
    Power,
    Product,
    Quotient,
    Sequence,
    Symbol,
)
from reward_kit.mathematics.numerals import number
from reward_kit.mathematics.stream import TokenStream
from reward_kit.mathematics.tokens import END, Token, Unreadable

__all__ = ["STARTING_COMMANDS", "STARTING_MARKS", "AtomParser", "times"]

_BARS: Final = {"lvert": "rvert", "vert": "vert", "lVert": "rVert"}
_ROUNDING: Final = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_OPAQUE: Final = frozenset("sum int prod lim iint iiint oint limsup liminf bigcup bigcap partial nabla".split())
STARTING_MARKS: Final = frozenset({"(", "[", "{", "\\{"})
STARTING_COMMANDS: Final = frozenset(
    {
        "frac",
        "dfrac",
        "tfrac",
        "cfrac",
        "langle",
        "begin",
        "mathbb",
        "emptyset",
        "varnothing",
        *_BARS,
        *_ROUNDING,
        *_OPAQUE,
    }
)
_MAX_SPELLED_BASE: Final = 36
_ZERO: Final = Number(Fraction(0))
_INFINITY: Final = Constant("inf")
_SIGNED_SETS: Final[dict[str, Interval]] = {
    "+": Interval(_ZERO, _INFINITY, "(", ")"),
    ">0": Interval(_ZERO, _INFINITY, "(", ")"),
    "≥0": Interval(_ZERO, _INFINITY, "[", ")"),
    "-": Interval(Negative(_INFINITY), _ZERO, "(", ")"),
    "<0": Interval(Negative(_INFINITY), _ZERO, "(", ")"),
    "≤0": Interval(Negative(_INFINITY), _ZERO, "(", "]"),
}
"""What a sign at the set of real numbers leaves of it."""
_SPELLED_BASES: Final = {word: str(base) for base, word in enumerate("two three four five six seven eight".split(), 2)}


class AtomParser(TokenStream, ABC):
    """Atoms."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self._seen: dict[int, tuple[Node, int]] = {}
        """Brackets that were read once, by where they begin, and where they end."""
        self._bars = 0
        """How many `|` are open: the next one closes."""

    @abstractmethod
    def sum(self) -> Node:
        """Terms and their signs."""

    @abstractmethod
    def postfix(self) -> Node:
        """An atom with its exponents and the marks behind it."""

    @abstractmethod
    def exponent(self) -> Node:
        """What stands behind a `^`."""

    @abstractmethod
    def bracketed(self) -> Node:
        """What stands in the brackets that begin here: an expression, a tuple, a set, an interval."""

    @abstractmethod
    def environment(self) -> Node:
        r"""The matrix after a `\\begin`."""

    def atom(self) -> Node:
        """What has no operator in it."""
        token = self._peek()
        if token.kind == "number":
            self._at += 1
            return self._in_base(token.text) if self._is("_") else number(token.text)
        if token.kind in ("symbol", "constant"):
            return self._name()
        if token.kind == "function":
            return self._function()
        if token.kind == "command":
            return self._command()
        if token.kind == "mark":
            if token.text == "|":
                self._at += 1
                return self._absolute("|")
            if token.text in STARTING_MARKS:
                return self.bracketed()
        raise Unreadable(f"{token.text!r} is no beginning of an expression")

    def _in_base(self, digits: str) -> Node:
        base = self._subscript()
        base = _SPELLED_BASES.get(base, base)
        if not digits.isdigit() or not base.isdigit() or not 2 <= int(base[:3]) <= _MAX_SPELLED_BASE:
            raise Unreadable("a subscript of a number")
        return InBase(digits, int(base))

    def _name(self) -> Node:
        token = self._next()
        name = token.text
        if self._is("_"):
            name += "_" + self._subscript()
        while self._is("'"):
            self._at += 1
            name += "'"
        if token.kind == "constant" and name == token.text:
            return Constant(name)
        if name[0] in "fgh" and self._is_inverse():
            self._at += 5
            name += "⁻¹"
        if self._is("(") and (arguments := self._arguments(name)) is not None:
            return Call("binom" if name == "C" and len(arguments) > 1 else name, arguments)
        return Symbol(name)

    def _is_inverse(self) -> bool:
        """Whether `^{-1}(` comes next."""
        return [self._peek(ahead).text for ahead in range(6)] == ["^", "{", "-", "1", "}", "("]

    def _arguments(self, name: str) -> tuple[Node, ...] | None:
        """The arguments in brackets after a letter that is a function; `None` where it is a factor."""
        start = self._at
        inside = self.bracketed()
        arguments = inside.items if isinstance(inside, Sequence) else (inside,)
        plain = all(isinstance(argument, Symbol | Number) for argument in arguments)
        labels = plain and (self._peek().kind == "relation" or (name.isupper() and (self._is(",") or self._is(")"))))
        several = name in ("C", "P") and len(arguments) == 2
        if name[0] in "fg" or (plain and name[0] in "hFGH") or labels or several:
            return arguments
        self._at = start
        return None

    def _subscript(self) -> str:
        self._expect("_")
        return self._subscript_text()

    def _subscript_text(self) -> str:
        if not self._accept("{"):
            return self._next().text
        parts: list[str] = []
        while not self._accept("}"):
            if self._peek() is END:
                raise Unreadable("a subscript without an end")
            parts.append(self._next().text)
        return "".join(part for part in parts if part not in "{}")

    def _function(self) -> Node:
        name = self._next().text
        if name in ("sqrt", "cbrt"):
            return self._root(name)
        if name == "binom":
            return Call(name, self._two())
        base = None
        if name == "log" and self._is("_"):
            self._at += 1
            base = self.bracketed() if self._is("{") else self.atom()
        exponent = self.exponent() if self._accept("^") else None
        call = self._called(name, base)
        if exponent == Negative(Number(Fraction(1))) and isinstance(call, Call):
            return Call(f"arc{name}", call.arguments)
        return call if exponent is None else Power(call, exponent)

    def _called(self, name: str, base: Node | None) -> Node:
        inside = self._argument()
        arguments = inside.items if isinstance(inside, Sequence) else (inside,)
        if base is not None:
            return Quotient(Call("ln", arguments), Call("ln", (base,)))
        return Call(name, arguments)

    def _argument(self) -> Node:
        """`(…)`, or the factors up to the next sign, function or end: `\\sin 2 \\pi x`."""
        if self._is("(") or self._is("[") or self._is("{"):
            return self.bracketed()
        node = self.postfix()
        while self._peek().kind in ("number", "symbol", "constant") or self._is("frac"):
            node = times(node, self.postfix())
        if self._is("/") and self._peek(1).kind in ("number", "constant") and isinstance(node, Constant | Product):
            self._at += 1  # sin pi/6
            node = Quotient(node, self.postfix())
        return node

    def _root(self, name: str) -> Node:
        degree: Node = Number(Fraction(3 if name == "cbrt" else 2))
        if self._is("[") and self._peek(1).kind in ("number", "symbol") and self._is("]", 2):
            self._at += 1
            degree = self.atom()
            self._expect("]")
        return Call("root", (self._group(whole_number=True), degree))

    def _two(self) -> tuple[Node, Node]:
        if self._is("("):
            inside = self.bracketed()
            if isinstance(inside, Sequence) and len(inside.items) == 2:
                return inside.items[0], inside.items[1]
            raise Unreadable("not two arguments")
        return self._group(), self._group()

    def _group(self, *, whole_number: bool = False) -> Node:
        r"""`{…}` or, without braces, the next digit or symbol: `\frac12`."""
        if self._is("{") or self._is("("):
            return self.bracketed()
        token = self._peek()
        if token.kind == "number" and len(token.text) > 1 and not whole_number:
            self._tokens[self._at] = Token("number", token.text[1:], False)
            return number(token.text[0])
        return self.atom()

    def _command(self) -> Node:
        name = self._peek().text
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            self._at += 1
            over = self._group()
            return Quotient(over, self._group())
        if name == "begin":
            return self.environment()
        if name == "langle":
            return self.bracketed()
        if name in _BARS:
            self._at += 1
            return self._absolute(_BARS[name])
        if name in _ROUNDING:
            self._at += 1
            closing, function = _ROUNDING[name]
            inside = self.sum()
            self._expect(closing)
            return Call(function, (inside,))
        if name == "mathbb":
            self._at += 1
            return self._number_set()
        if name in ("emptyset", "varnothing"):
            self._at += 1
            return Sequence((), "{", "}")
        if name in _OPAQUE:
            return self._opaque()
        raise Unreadable(f"the command {name!r}")

    def _number_set(self) -> Node:
        r"""`\\mathbb{R}`, `\\mathbb{R}^+`, `\\mathbb{Z}_{>0}`."""
        letter = "ℝℤℕℚℂ"["RZNQC".find(self._blackboard())]
        sign = ""
        if (self._is("^") or self._is("_")) and self._peek(1).text in ("+", "-", "*", "{"):
            self._at += 1
            sign = self._subscript_text()
        bounds = _SIGNED_SETS.get(sign)
        if letter == "ℝ" and bounds is not None:
            return bounds
        if sign and sign not in ("+", ">0", "*"):
            raise Unreadable("a set that is not known")
        return Symbol(letter + ("+" if sign in ("+", ">0") else sign))

    def _blackboard(self) -> str:
        braced = self._accept("{")
        letter = self._next().text
        if braced:
            self._expect("}")
        if letter not in ("R", "Z", "N", "Q", "C"):
            raise Unreadable("a set that is not known")
        return letter

    def _absolute(self, closing: str) -> Node:
        self._bars += 1
        inside = self.sum()
        self._expect(closing)
        self._bars -= 1
        return Call("abs", (inside,))

    def _opaque(self) -> Node:
        """All that belongs to a sum, an integral or a limit, as written."""
        parts: list[str] = []
        depth = 0
        while self._peek() is not END:
            token = self._peek()
            depth += (token.text in ("(", "[", "{", "\\{")) - (token.text in (")", "]", "}", "\\}"))
            if depth < 0 or (not depth and (token.kind in ("relation", "conjunction") or token.text in (",", ";"))):
                break
            parts.append(token.text)
            self._at += 1
        return Opaque(" ".join(part for part in parts if part not in "{}"))


def times(left: Node, right: Node) -> Node:
    """The product of two, flat."""
    return Product((*left.factors, right) if isinstance(left, Product) else (left, right))
