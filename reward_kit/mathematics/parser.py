# SPDX-License-Identifier: Apache-2.0
r"""Read an answer: tokens become a tree of `nodes`, by recursive descent, one method for each level.

    answer    item , item; item and item             then conditions: "for x > 0", "where k is an integer"
    item      label: relation unit
    relation  operand < operand = operand            also ≤ > ≥ ≠ ≈ ∈ ≡
    operand   number unit | joined                   `5 m`, where the letters of the unit might be variables
    joined    ratio ∪ ratio ∩ ratio \ ratio
    ratio     sum : sum : sum
    sum       product + product - product ± product  and {sum \over sum}, {sum \choose sum}
    product   signed signed * signed / signed        factors side by side, too
    signed    - postfix                              and mixed numbers: 1 4/5, 1\frac45
    postfix   atom ^exponent ! % °
    atom      number | name | function argument | \frac{sum}{sum} | \sqrt{sum} | |sum| | brackets | environment
    brackets  (answer) [answer) {answer} \{answer\} \{item | conditions\}
    unit      word, letter, unit/unit, unit^2, \frac{unit}{unit}

`read_answer` is the way in: from text to `ParsedAnswer`. What cannot be read raises `Unreadable`; so does what nests
or grows beyond bounds, so that reading takes time in proportion to the text.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple

from reward_kit.answers.vocabulary import DECORATION
from reward_kit.mathematics.matrices import determinant
from reward_kit.mathematics.nodes import (
    CASES,
    OTHERWISE,
    Builder,
    Call,
    Constant,
    Degrees,
    InBase,
    Interval,
    Matrix,
    Measure,
    Negative,
    Node,
    Number,
    Opaque,
    Percent,
    PlusMinus,
    Power,
    Product,
    Quotient,
    Ratio,
    Relation,
    Sequence,
    SetOperation,
    Sum,
    Symbol,
    symbols,
)
from reward_kit.mathematics.numbers import number, spelled_number, with_digits
from reward_kit.mathematics.spoken import in_symbols
from reward_kit.mathematics.text import MAX_LENGTH, TEXT_CLOSE, TEXT_OPEN, in_one_spelling, plain
from reward_kit.mathematics.tokens import END, Letters, Token, Unreadable, tokenise
from reward_kit.mathematics.units import (
    SPOKEN,
    UNIT_LETTERS,
    Size,
    is_known,
    known_unit,
    read_unit,
    singular,
    word_label,
)

__all__ = ["ParsedAnswer", "read_answer"]

# reading
_CONDITIONS: Final = frozenset(
    "for where if when with whenever provided given such as since because assuming using unless while except".split()
)
_LEAD: Final = re.compile(rf"{TEXT_OPEN}([^{TEXT_OPEN}{TEXT_CLOSE}]{{1,80}}){TEXT_CLOSE}\s*(?=[^\s{TEXT_OPEN}])")
"""Words in a `\\text` before something else."""
_REMARK: Final = re.compile(
    rf"(?<=\S)\s*+{TEXT_OPEN}?+\s*+\(([A-Za-z]{{3,12}}(?:\s[A-Za-z]{{2,12}}){{0,3}})\)\s?{TEXT_CLOSE}?$"
)
_OTHER_BEHIND: Final = re.compile(
    rf"(?<=[\d)}}])\s*+,?+\s*+{TEXT_OPEN}?+\s*+(?:\((?:and\s)?not\s-?[\d.,/]{{1,20}}\)|,?\s?(?:and\s)?not\s-?[\d.,/]{{1,20}})\s?{TEXT_CLOSE}?$"
)
"""The value that an answer says it is not, behind the one that it is: "65 (not 56)"."""
_OTHER_BEFORE: Final = re.compile(
    rf"{TEXT_OPEN}?+\s*+not\s*+{TEXT_CLOSE}?+\s*+-?[\d.,/]{{1,20}}\s*+{TEXT_OPEN}?+\s*+,?+\s*+but\s+(?:rather\s+)?{TEXT_CLOSE}?+\s*+(?=\S)",
    re.IGNORECASE,
)
"""The same before it: "not 56 but 65"."""
_COPULAS: Final = frozenset({"is", "are", "was", "were", "equals"})
_PAIR: Final = re.compile(r"(?<![A-Za-z\\])[a-z]{2}(?![A-Za-z])")
_WORD: Final = re.compile(r"(?<![A-Za-z\\])(?:[A-Za-z]{3}|(?i:it|is|so|he|we|of|no|up)(?![A-Za-z]))")
"""A word: three letters, or one of those that nobody would write for a product of variables."""
_LONG_WORD: Final = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{4}")
_LONGEST_AMBIGUOUS: Final = 200
# answers and brackets
_CLOSING: Final = {"(": ")", "[": "]", "{": "}", "\\{": "\\}", "langle": "rangle"}
"""Brackets, and what closes them."""
_SHAPE: Final = {"\\{": "{", "langle": "(", "\\}": "}", "rangle": ")"}
_SET_OPERATORS: Final = {"cup": "∪", "cap": "∩", "setminus": "∖", "backslash": "∖"}
_EITHER: Final = frozenset({"or", "oder", "ou"})
_CASES: Final = frozenset({"if", "for", "when", "where", "as"})
_SYSTEMS: Final = frozenset({"cases", "aligned", "align", "array*", "gathered", "dcases"})
_MATRICES: Final = frozenset("matrix pmatrix bmatrix vmatrix Bmatrix Vmatrix smallmatrix array".split())
# units
_FACTORS: Final = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "lakh": 10**5, "crore": 10**7,
}  # fmt: skip
_IN_LABELS: Final = frozenset({"word", "number", "symbol"})
_LONGEST_LABEL: Final = 14
_LONGEST_EVENT: Final = 12
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
# expressions
_MAX_DEPTH: Final = 60
"""Deeper nesting is not read."""
_BARS: Final = {"lvert": "rvert", "vert": "vert", "lVert": "rVert"}
_ROUNDING: Final = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_OPAQUE: Final = frozenset("sum int prod lim iint iiint oint limsup liminf bigcup bigcap partial nabla".split())
_STARTING_MARKS: Final = frozenset({"(", "[", "{", "\\{"})
_STARTING_COMMANDS: Final = frozenset(
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
_TIMES: Final = frozenset({"cdot", "times", "ast", "bullet"})
_STARTS: Final = frozenset({"number", "symbol", "constant", "function"})
_MAX_CHAINED: Final = 150
"""Signs that nest to the left: a / b / c, a^b^c, a ± b ± c."""


class ParsedAnswer(NamedTuple):
    """An answer after parsing: its tree, and the condition that was written behind it, if any."""

    node: Node
    condition: str = ""
    """What follows "for", "where", "if" …, as written, without spaces."""


def read_answer(text: str) -> ParsedAnswer:
    """What `text` says; `Unreadable` where it is not mathematics, or too much of it."""
    if len(text) > MAX_LENGTH:
        raise Unreadable("too long")
    bare = _without_remark(_without_lead(plain(text)))
    if bare[:1].isalpha() or bare[:2].strip(f" {TEXT_OPEN}").isalpha():
        spelled = spelled_number(bare.strip(f"{TEXT_OPEN}{TEXT_CLOSE} "))
        if spelled is not None:
            return ParsedAnswer(Number(spelled))
        digits = with_digits(bare.replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " "))
        if digits is not None:
            bare = in_one_spelling(in_symbols(digits))
    try:
        return _parse(tokenise(bare))
    except Unreadable:
        other = _other_letters(bare)
        if other is None:
            raise
        return _parse(tokenise(bare, other))


def _without_lead(text: str) -> str:
    r"""`text` without known words before it: `\text{exactly } 2\pi`, `\text{The answer is } 3`; a name stays as one."""
    lead = _LEAD.match(text) if text.startswith(TEXT_OPEN) else None
    if lead is None:
        return text
    words = lead[1].strip(" :,").split()
    if not words or not all(word.isalpha() and is_known(word) for word in words):
        return text
    rest = text[lead.end() :]
    if all(singular(word) in DECORATION or word.lower() in DECORATION for word in words):
        return rest
    return f"{' '.join(words[:-1])} = {rest}" if words[-1] in _COPULAS else text


def _denies_another(text: str) -> bool:
    """Whether an answer says first or last which value it is not, and is read without that."""
    return (_OTHER_BEFORE.match(text) is None) != (_OTHER_BEHIND.search(text) is None)


def _without_remark(text: str) -> str:
    """`text` without known words in brackets behind it: `70 (exactly)`."""
    if "not" in text:
        text = _OTHER_BEFORE.sub("", _OTHER_BEHIND.sub("", text), count=1) if _denies_another(text) else text
    remark = _REMARK.search(text) if text.endswith((")", TEXT_CLOSE)) else None
    if remark is None or not all(word.lower() in DECORATION for word in remark[1].split()):
        return text
    return text[: remark.start()].rstrip()


def _other_letters(text: str) -> Letters | None:
    """How else the runs of letters in a text may be meant; `None` where there is no other way."""
    if len(text) > _LONGEST_AMBIGUOUS:
        return None
    if _PAIR.search(text) and not _WORD.search(text):
        return "products"
    return "words" if _LONG_WORD.search(text) else None


def _parse(tokens: list[Token]) -> ParsedAnswer:
    """The tree of the tokens, with the condition behind it where there is one."""
    tokens = [token for token in tokens if token.text != '"']
    start = _condition_at(tokens, 0)
    if start == len(tokens):
        return ParsedAnswer(Parser(tokens).answer())
    try:
        return _without_conditions(tokens)
    except Unreadable:
        return ParsedAnswer(Parser(tokens[:start]).answer(), _joined_text(tokens[start:]))


def _without_conditions(tokens: list[Token]) -> ParsedAnswer:
    """The answer where each condition ends at the next "and" or "or"."""
    kept: list[Token] = []
    conditions = ""
    at = 0
    while at < len(tokens):
        start = _condition_at(tokens, at)
        kept += tokens[at:start]
        at = start
        while at < len(tokens) and tokens[at].kind != "conjunction":
            at += 1
        conditions += _joined_text(tokens[start:at])
    return ParsedAnswer(Parser(kept).answer(), conditions)


def _joined_text(tokens: list[Token]) -> str:
    return "".join(token.text for token in tokens if token.text not in ("{", "}", ","))


def _condition_at(tokens: list[Token], begin: int) -> int:
    """Where the next condition of an answer begins: after some mathematics, and not inside brackets."""
    depth = 0
    for index in range(begin, len(tokens)):
        token = tokens[index]
        if token.kind == "mark":
            declares = token.text == "(" and index + 2 < len(tokens) and tokens[index + 2].text == "∈"
            if index and not depth and declares:
                return index  # (k ∈ Z)
            depth += (token.text in _CLOSING) - (token.text in _CLOSING.values())
        elif token.kind == "command" and token.text in ("begin", "end"):
            depth += 1 if token.text == "begin" else -1
        elif index and not depth and token.kind == "word" and token.text.lower() in _CONDITIONS:
            return index if tokens[index - 1].text != "," else index - 1
        elif index and not depth and token.text in ("forall", "iff", "implies"):
            return index
    return len(tokens)


class Parser:
    """One method for each level of the grammar, over a list of tokens that is read from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._chained = 0
        """How many signs so far put what came before them one level deeper."""
        self._seen: dict[int, tuple[Node, int]] = {}
        """Brackets that were read once, by where they begin, and where they end."""
        self._bars = 0
        """How many `|` are open: the next one closes."""
        self._inside = ""
        """The innermost bracket that is open."""
        self._alternatives: list[int] = []
        """Which items come after an "or" outside of all brackets."""

    # ── answers: items in lists ──────────────────────────────────────────────────────────────────────────────────────

    def answer(self) -> Node:
        """The whole of the tokens."""
        items, rows = self._items()
        if self._peek() is not END:
            raise Unreadable(f"{self._peek().text!r} is left over")
        if (solutions := _solutions(items, self._alternatives)) is not None:
            return Sequence(solutions, "", "or")
        if len(rows) > 1 and any(count > 1 for count in rows):
            return Sequence(tuple(Sequence(part) for part in _split(items, rows)))
        joined = {token.text for token in self._tokens if token.kind == "conjunction"}
        closing = "or" if joined & _EITHER else "and" if joined else ""
        return items[0] if len(items) == 1 else Sequence(tuple(items), "", closing)

    def _items(self) -> tuple[list[Node], list[int]]:
        """Items up to the end of this bracket, and how many there are between semicolons."""
        items = [self._item()]
        rows = [1]
        while self._separator():
            semicolon = self._tokens[self._at - 1].text == ";"
            if self._ended():
                break
            if not self._inside and self._tokens[self._at - 1].text in _EITHER:
                self._alternatives.append(len(items))
            items.append(self._item())
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

    # ── one item: a label, a relation, a unit ────────────────────────────────────────────────────────────────────────

    def _item(self) -> Node:
        """One item of a list: a label, a relation, a unit."""
        name = self._label()
        node = self._relation()
        if self._peek().kind == "word" or self._is("/") or self._is("{") or self._is("°"):
            node = self._with_unit(node)
        node = _named_point(node)
        return node if not name else Relation((Symbol(name), node), ("=",))

    def _label(self) -> str:
        """Read `Minimum:`, `length =`, `the area of ABC =`, `Sequence 1:`; empty where nothing has such a name."""
        first = self._peek().kind
        if first != "word" and (first != "function" or not self._names_extreme(0)):
            return ""
        ahead = 0
        while ahead <= _LONGEST_LABEL and (
            self._peek(ahead).kind in _IN_LABELS or self._names_extreme(ahead) or (ahead and self._is("_", ahead))
        ):
            ahead += 1
        found = [self._peek(index) for index in range(ahead)]
        ends = self._is(":", ahead) or self._peek(ahead) == Token("relation", "=", self._peek(ahead).spaced)
        if not ends and (name := self._name_before_value()):
            return name
        spoken = [index for index, token in enumerate(found) if token.kind == "word" or self._names_extreme(index)]
        if not ends or not spoken:
            return ""
        if (
            found[-1].kind == "symbol"
            and found[-1].text.islower()
            and not all(_is_idle(found[at]) or found[at].kind == "function" for at in spoken)
        ):
            return ""  # the slope of the line y = 2x
        name = word_label([token.text for token in found])
        only_variable = not name or (len(found) > spoken[-1] + 1 and all(_is_idle(found[index]) for index in spoken))
        if only_variable and len(found) > spoken[-1] + 1:  # the value of x = 5
            self._at += spoken[-1] + 1
            return ""
        self._at += ahead + 1
        return name

    def _name_before_value(self) -> str:
        """Read `slope` in `slope 2, intercept 5`: known names right before a number, in a list."""
        ahead = 0
        while self._names_extreme(ahead) or (
            self._peek(ahead).kind == "word" and self._peek(ahead).text.lower() not in _NOT_UNITS
        ):
            ahead += 1
        said = [self._peek(index).text for index in range(ahead)]
        begins = self._peek(ahead + self._is("-", ahead))
        value = begins.kind == "number" or (begins.kind == "mark" and begins.text in ("(", "["))
        if not said or not value or not any(token.text == "," for token in self._tokens):
            return ""
        name = word_label(said)
        if not name.startswith(SPOKEN):
            return ""
        self._at += ahead
        return name

    def _names_extreme(self, ahead: int) -> bool:
        """Whether `max` or `min` stands here as a name, and not before what it is taken of."""
        token = self._peek(ahead)
        return token.kind == "function" and token.text in ("max", "min") and not self._is("(", ahead + 1)

    def _relation(self) -> Node:
        operands = [self._operand()]
        operators: list[str] = []
        while self._peek().kind == "relation":
            operators.append(self._next().text)
            operand = self._operand()
            operands.append(_as_number_set(operand) if operators[-1] == "∈" else operand)
        return Relation(tuple(operands), tuple(operators)) if operators else operands[0]

    def _operand(self) -> Node:
        measure = self._measure()
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
        parts = [self._sum()]
        while self._inside != "\\{" and self._is(":"):
            self._at += 1
            if self._peek().kind == "relation":  # x := 5
                self._at -= 1
                break
            parts.append(self._sum())
        if len(parts) == 1:
            return parts[0]
        if self._inside == "{" and isinstance(parts[0], Symbol):  # {"alpha": 1}
            return Relation((parts[0], parts[1]), ("=",))
        return Ratio(tuple(parts), clock=_is_clock(self._tokens[start : self._at]))

    # ── values with a unit that follows at once ──────────────────────────────────────────────────────────────────────

    def _measure(self) -> Node | None:
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
            return self._in_two_units(Parser(self._tokens[start:end])._sum(), unit, stop)
        if following is not END and following.kind != "conjunction" and following.text not in (",", ";"):
            return None
        try:
            product: Node | None = self._sum()
        except Unreadable:
            product = None
        if self._at != stop:
            product = None
        self._depth = depth
        parser = Parser(self._tokens[start:end])
        try:
            value = parser._sum()
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

    # ── words behind a value ─────────────────────────────────────────────────────────────────────────────────────────

    def _with_unit(self, node: Node) -> Node:
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
            ratio, count = Number(size.factor / smaller.factor), number(self._text(begin))
            if len(size.dimensions) == 1 and size.dimensions[0][0].isupper():  # money is told in its larger unit
                larger = Measure(Sum((larger.value, Quotient(count, ratio))), larger.unit)
            else:
                total = Sum((Product((larger.value, ratio)), count))
                larger = Measure(total, self._joined_text(begin + 1, stop))
            self._at = stop
        return larger

    # ── where a unit ends ────────────────────────────────────────────────────────────────────────────────────────────

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

    # ── expressions ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _sum(self) -> Node:
        """Parse terms with `+`, `-` or `±` between them."""
        self._deeper()
        node = self._plus_minus(None) if self._peek().text in ("pm", "mp") else self._product()
        terms = [node]
        while True:
            token = self._peek()
            if token.kind == "mark" and token.text in "+-":
                self._at += 1
                term = self._product()
                terms.append(term if token.text == "+" else Negative(term))
            elif token.kind == "command" and token.text in ("pm", "mp"):
                terms = [self._plus_minus(_added(terms))]
            else:
                break
        node = self._parted(_added(terms))
        self._depth -= 1
        return node

    def _parted(self, left: Node) -> Node:
        r"""`{a + b \over c}` and `{n \choose k}`, where what came before belongs to the left."""
        if self._accept("over"):
            return Quotient(left, self._sum())
        return Call("binom", (left, self._sum())) if self._accept("choose") else left

    def _plus_minus(self, left: Node | None) -> Node:
        upper = 1 if self._peek().text == "pm" else -1
        self._chain()
        return PlusMinus(left, self._product(), upper)

    def _chain(self) -> None:
        """Pass over a sign that puts what came before it one level deeper."""
        self._at += 1
        self._chained += 1
        if self._chained > _MAX_CHAINED:
            raise Unreadable("too many signs in a row")

    def _product(self) -> Node:
        """Factors, with and without signs between them; division binds like multiplication."""
        node = self._signed()
        while True:
            token = self._peek()
            if (token.kind == "mark" and token.text == "*") or (token.kind == "command" and token.text in _TIMES):
                self._at += 1
                node = _times(node, self._signed())
            elif (token.kind == "mark" and token.text == "/") or (token.kind == "command" and token.text == "div"):
                if self._peek(1).kind == "word":
                    return node  # a unit: 65 /h
                self._chain()
                node = Quotient(node, self._signed(mixed=False))
            elif self._starts_factor(token):
                node = _times(node, self._postfix())
            else:
                return node

    def _starts_factor(self, token: Token) -> bool:
        if token.kind in _STARTS:
            return True
        if token.kind == "mark":
            return token.text in _STARTING_MARKS or (token.text == "|" and not self._bars)
        return token.kind == "command" and token.text in _STARTING_COMMANDS

    def _signed(self, *, mixed: bool = True) -> Node:
        """A factor that may have a sign of its own: the sign of -x^2 and of -3 1/2 belongs to all of it."""
        negative = False
        while self._peek().kind == "mark" and self._peek().text in "+-":
            negative ^= self._next().text == "-"
        node = self._postfix()
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
        part = self._postfix()
        if isinstance(part, Percent):
            return Percent(self._mixed_sum(whole, part.value))
        return self._mixed_sum(whole, part)

    @staticmethod
    def _mixed_sum(whole: Number, part: Node) -> Node:
        if isinstance(part, Quotient) and isinstance(part.over, Number) and isinstance(part.under, Number):
            return Sum((whole, part))
        return _times(whole, part)

    def _postfix(self) -> Node:
        """An atom with its exponents and the marks behind it."""
        self._deeper()
        node = self._atom()
        while self._peek().kind == "mark" and self._peek().text in ("^", "!", "%", "°"):
            mark = self._peek().text
            self._chain()
            if mark == "^":
                node = Power(node, self._exponent())
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

    def _exponent(self) -> Node:
        """What stands behind a `^`."""
        if self._is("{") or self._is("("):
            return self._bracketed()
        negative = self._accept("-")
        node = self._postfix()
        return Negative(node) if negative else node

    # ── atoms: what has no operator in it ────────────────────────────────────────────────────────────────────────────

    def _atom(self) -> Node:
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
            if token.text in _STARTING_MARKS:
                return self._bracketed()
        raise Unreadable(f"{token.text!r} cannot begin an expression")

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
        r"""Whether the next tokens are `^{-1}(`, as in `\sin^{-1}(x)`."""
        return [self._peek(ahead).text for ahead in range(6)] == ["^", "{", "-", "1", "}", "("]

    def _arguments(self, name: str) -> tuple[Node, ...] | None:
        """The arguments in brackets after a letter that is a function; `None` where it is a factor."""
        start = self._at
        if name in ("P", "Pr", "E") and (event := self._event()):
            return (Symbol(event),)
        inside = self._bracketed()
        arguments = inside.items if isinstance(inside, Sequence) else (inside,)
        plain = all(isinstance(argument, Symbol | Number) for argument in arguments)
        labels = plain and (self._peek().kind == "relation" or (name.isupper() and (self._is(",") or self._is(")"))))
        several = name in ("C", "P") and len(arguments) == 2
        if name[0] in "fg" or (plain and name[0] in "hFGH") or labels or several:
            return arguments
        self._at = start
        return None

    def _event(self) -> str:
        """What stands in `P(A | B) =` and `P(A^c) =`, as written; empty where that is something else."""
        end = self._at + 1
        while end < len(self._tokens) and self._text(end) != ")" and end - self._at <= _LONGEST_EVENT:
            end += 1
        inside = self._tokens[self._at + 1 : end]
        if self._text(end + 1) != "=" or len(inside) < 2 or inside[0].kind != "symbol" or self._text(end) != ")":
            return ""
        self._at = end + 1
        return "".join(token.text for token in inside if token.text not in ("{", "}"))

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
            base = self._bracketed() if self._is("{") else self._atom()
        exponent = self._exponent() if self._accept("^") else None
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
            return self._bracketed()
        node = self._postfix()
        while self._peek().kind in ("number", "symbol", "constant") or self._is("frac"):
            node = _times(node, self._postfix())
        if self._is("/") and self._peek(1).kind in ("number", "constant") and isinstance(node, Constant | Product):
            self._at += 1  # sin pi/6
            node = Quotient(node, self._postfix())
        return node

    def _root(self, name: str) -> Node:
        degree: Node = Number(Fraction(3 if name == "cbrt" else 2))
        if self._is("[") and self._peek(1).kind in ("number", "symbol") and self._is("]", 2):
            self._at += 1
            degree = self._atom()
            self._expect("]")
        return Call("root", (self._group(whole_number=True), degree))

    def _two(self) -> tuple[Node, Node]:
        if self._is("("):
            inside = self._bracketed()
            if isinstance(inside, Sequence) and len(inside.items) == 2:
                return inside.items[0], inside.items[1]
            raise Unreadable("not two arguments")
        return self._group(), self._group()

    def _group(self, *, whole_number: bool = False) -> Node:
        r"""`{…}` or, without braces, the next digit or symbol: `\frac12`."""
        if self._is("{") or self._is("("):
            return self._bracketed()
        token = self._peek()
        digits = token.text.removesuffix(".")
        if token.kind == "number" and len(digits) > 1 and not whole_number:
            if not digits.isdecimal():
                raise Unreadable("a number with a sign in it, of which one digit is meant")
            self._tokens[self._at] = Token("number", digits[1:], False)
            return number(digits[0])
        return self._atom()

    def _command(self) -> Node:
        name = self._peek().text
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            self._at += 1
            over = self._group()
            return Quotient(over, self._group())
        if name == "begin":
            return self._environment()
        if name == "langle":
            return self._bracketed()
        if name in _BARS:
            self._at += 1
            return self._absolute(_BARS[name])
        if name in _ROUNDING:
            self._at += 1
            closing, function = _ROUNDING[name]
            inside = self._sum()
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
        inside = self._sum()
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

    # ── brackets and environments ────────────────────────────────────────────────────────────────────────────────────

    def _bracketed(self) -> Node:
        """A group, a tuple, a set, an interval, a vector or a matrix."""
        start = self._at
        if start in self._seen:  # a letter before them was tried as a function; twice at each level would be forever
            node, self._at = self._seen[start]
            return node
        self._deeper()
        opening = self._next().text
        before, self._inside = self._inside, opening
        bars, self._bars = self._bars, int(opening == "\\{")
        closing = _CLOSING[opening]
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

    def _environment(self) -> Node:
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
        r"""Equations one below the other, `\begin{cases} x = 1 \\ y = 2 \end{cases}`, or a function by pieces."""
        before, self._inside = self._inside, "begin"
        equations: list[Node] = []
        while not self._accept("end"):
            row = self._item()
            comma = self._accept(",")
            conditional = self._peek().kind == "word" and self._peek().text.lower() in _CASES
            goes_on = comma and self._peek().text != "\\\\" and not self._is("end")
            if self._accept("&") or goes_on or conditional:
                row = Builder(row, self._case())
            equations.append(row)
            while self._accept(",") or self._accept("."):
                pass
            if not self._accept("\\\\") and not self._is("end"):
                raise Unreadable("a system without an end")
        self._environment_name()
        self._inside = before
        if equations and all(isinstance(equation, Builder) for equation in equations):
            return Sequence(tuple(equations), CASES, CASES)
        if not all(isinstance(equation, Relation) for equation in equations):
            raise Unreadable("a function by pieces")
        return Sequence(tuple(equations))

    def _case(self) -> Node:
        """When a piece of a function holds: a relation, some of them, or otherwise."""
        while self._peek().kind == "word" and self._peek().text.lower() in _CASES:
            self._at += 1
        if self._peek().kind == "word" and self._peek().text.lower() in ("otherwise", "else", "elsewhere"):
            self._at += 1
            return OTHERWISE
        conditions = [self._condition()]
        joined = ""
        while self._peek().kind == "conjunction" or (self._is(",") and self._peek(1).text not in ("\\\\", "end")):
            joined = "or" if self._next().text == "or" else joined or "and"
            conditions.append(self._condition())
        return conditions[0] if len(conditions) == 1 else Sequence(tuple(conditions), "", joined)

    def _condition(self) -> Node:
        """A relation, or words about what they follow: `n \\text{ is even}`."""
        node = self._relation()
        words: list[str] = []
        while self._peek().kind == "word":
            words.append(self._next().text.lower())
        said = " ".join(word for word in words if word not in DECORATION)
        return Relation((node, Symbol(f"{SPOKEN}{said}")), ("∈",)) if said else node

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

    # ── the tokens ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else END

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _is(self, text: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token.text == text and token.kind in ("mark", "command")

    def _accept(self, text: str) -> bool:
        if self._is(text):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise Unreadable(f"expected {text!r} and found {self._peek().text!r}")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Unreadable("nested too deeply")

    def _kind(self, at: int) -> str:
        return self._tokens[at].kind if at < len(self._tokens) else "end"

    def _text(self, at: int) -> str:
        return self._tokens[at].text if at < len(self._tokens) else ""

    def _joined_text(self, begin: int, end: int) -> str:
        return " ".join(token.text for token in self._tokens[begin:end] if token.text not in ("{", "}"))


def _times(left: Node, right: Node) -> Node:
    """The product of two, flat."""
    return Product((*left.factors, right) if isinstance(left, Product) else (left, right))


def _added(terms: list[Node]) -> Node:
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def _solutions(items: list[Node], alternatives: list[int]) -> tuple[Node, ...] | None:
    """`x = 1, y = 2 or x = 3, y = 4` as two solutions; `None` where "or" divides no groups of named values."""
    starts = [0, *alternatives, len(items)]
    groups = [items[begin:end] for begin, end in pairwise(starts)]
    if len(groups) < 2 or len(groups[0]) < 2 or len({len(group) for group in groups}) > 1:
        return None
    named = all(isinstance(item, Relation) and isinstance(item.operands[0], Symbol) for item in items)
    return tuple(Sequence(tuple(group)) for group in groups) if named else None


def _is_idle(token: Token) -> bool:
    return singular(token.text) in DECORATION


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


def _as_number_set(node: Node) -> Node:
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
