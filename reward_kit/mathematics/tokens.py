# SPDX-License-Identifier: Apache-2.0
r"""Cut plain text into tokens.

Runs of letters are functions, constants, words, or else products of one-letter variables; what stood inside `\text`
is words. White space is not a token, but each token knows whether some came before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from reward_kit.answers.vocabulary import NAMES
from reward_kit.mathematics.text import TEXT_CLOSE, TEXT_OPEN

__all__ = ["END", "MAX_TOKENS", "Kind", "Letters", "Token", "Unreadable", "tokenise"]

Kind = Literal["number", "symbol", "constant", "function", "word", "conjunction", "relation", "command", "mark", "end"]
Letters = Literal["either", "products", "words"]
"""What runs of letters are taken for."""
MAX_TOKENS: Final = 12_000
_MAX_DIGITS: Final = 1_500
_LONGEST_PRODUCT: Final = 3

# ── vocabulary ───────────────────────────────────────────────────────────────────────────────────────────────────────

_SAME: Final = (
    "sqrt cbrt exp ln log lg sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh coth arsinh arcosh "
    "artanh abs floor ceil Re Im sgn gcd lcm max min mod det"
)
FUNCTION_NAMES: Final[dict[str, str]] = {
    **{name: name for name in _SAME.split()},
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "acot": "arccot", "arctg": "arctan", "tg": "tan",
    "ctg": "cot", "cosec": "csc", "sh": "sinh", "ch": "cosh", "th": "tanh", "asinh": "arsinh", "acosh": "arcosh",
    "atanh": "artanh", "arcsinh": "arsinh", "arccosh": "arcosh", "arctanh": "artanh", "sign": "sgn",
    "root": "sqrt", "comb": "binom", "binom": "binom", "binomial": "binom", "dbinom": "binom", "tbinom": "binom",
    "choose": "binom", "nCr": "binom", "factorial": "factorial", "ceiling": "ceil", "conjugate": "conjugate",
    "cis": "cis",
    "Sqrt": "sqrt", "Log": "log", "Ln": "ln", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Exp": "exp",
}  # fmt: skip
"""Functions as written, in LaTeX and in plain text, and what they are called inside."""

GREEK: Final = frozenset(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega ell hbar aleph "
    "triangle".split()
)
CONSTANTS: Final[dict[str, str]] = {
    "pi": "pi", "Pi": "pi", "e": "e", "i": "i", "infty": "inf", "infinity": "inf", "Infinity": "inf", "inf": "inf",
    "oo": "inf",
}  # fmt: skip
RELATIONS: Final[dict[str, str]] = {
    "=": "=", "==": "=", "<": "<", ">": ">", "<=": "≤", ">=": "≥", "=<": "≤", "=>": "≥", "!=": "≠", "<>": "≠",
    "lt": "<", "gt": ">", "le": "≤", "ge": "≥", "leq": "≤", "geq": "≥", "leqslant": "≤", "geqslant": "≥", "ne": "≠",
    "neq": "≠", "approx": "≈", "simeq": "≈", "doteq": "≈", "approxeq": "≈", "in": "∈", "equiv": "≡", "cong": "≡",
    "leqq": "≤", "geqq": "≥", "nleq": ">", "ngeq": "<", "notin": "∉", "mapsto": "=", "subseteq": "⊆",
    "subset": "⊆", "sim": "~", "propto": "∝", "parallel": "∥", "perp": "⊥", "divides": "∣",
}  # fmt: skip
CONJUNCTIONS: Final = frozenset({"and", "or", "und", "et", "ou", "oder", "land", "lor", "wedge", "vee", "AND", "OR"})

SHORT_WORDS: Final = frozenset(
    "is if no not the of in for all any are to at by as be it an on so we he she has was were its iff per via yes but "
    "cm mm km nm ft mi yd lb lbs kg mg ml mL cc oz hr hrs min mins sec secs ms day yr yrs mph kmh kph sq cu pm am USD "
    "usd EUR eur odd dne DNE cup gal pt qt mol kJ kW kWh Hz kHz MHz GB MB TB KB kB Pa kPa atm dB eV rad deg pct men "
    "sum ans age leg arc tax fee pay row "
    "man boy car cat dog egg pen box bag way set two six ten one red let can nor out bit tip rpm pts mA kN Nm fps lbf "
    "rs Rs INR GBP CNY RMB AUD CAD erg cal bar lux rev MeV keV GeV AU ly kpc Mpc mV kV MPa GPa nF MW GW mW mH".split()
)
"""Runs of up to three letters that are words, not products of variables; longer runs are words anyway."""


UNIT_SYMBOLS: Final = frozenset(
    "um ug us uF uA uV uC uL cL dL cl dl kL dm dg cg ng ns nC nm nA pF mJ MJ GJ TJ mT mN MN MV mC mF mWh MWh GWh "
    "mpg bpm ppm ppb wpm dpi gpm cfs "
    "hPa mbar keV TeV mmol kcal kbit Mbit Gbit GHz THz ha wk wks kn hp psi sec nmi tsp tbsp floz fl MeV rps mol "
    "ton yen won pie hat toy cow pig hen key bus ant bee fox owl row job kid die pea nut jar tin "
    "lot gem win tie run hit inn oak cub".split()
)
"""Symbols of units that are a unit behind a number and a space, and variables side by side elsewhere."""

# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_TOKEN: Final = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:\d{1,3}(?:,\d{3})+(?![\d])|\d+)(?:\.\d+|\.(?![\d.]))?|\.\d+)(?P<power>[eE][+-]?\d{1,6}(?![\d.]))?"
    r"|\\(?P<command>[A-Za-z]+)\*?"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<mark>\*\*|<=|>=|=<|=>|!=|<>|==|\.\.\.+|\\\\|\\[{}|&%#_]|[-+*/^_=<>!|:;,()\[\]{}&%'\"°]|\\(?=\d))"
    rf"|(?P<text>[{TEXT_OPEN}{TEXT_CLOSE}])"
    r"|(?P<other>.)",
    re.DOTALL,
)
_FUNCTION_PREFIX: Final = re.compile(r"(arcsin|arccos|arctan|sqrt|sin|cos|tan|cot|sec|csc|ln|log|exp|pi)([xyzrABC])")
_SKIPPED: Final = frozenset("#@\\.`")
_DEPTH: Final = {"(": 1, "[": 1, "\\{": 1, ")": -1, "]": -1, "\\}": -1}
_PLAIN_MARK: Final = {
    "\\": "\\\\",
    "\\%": "%",
    "\\{": "\\{",
    "\\}": "\\}",
    "\\|": "|",
    "**": "^",
    "\\_": "_",
    "\\#": "",
    "\\&": "",
}


class Unreadable(Exception):
    """The text is not mathematics that can be read."""


class Token(NamedTuple):
    """A piece of text that the parser takes as a whole."""

    kind: Kind
    text: str
    spaced: bool = False
    """Whether white space came before it."""


END: Final = Token("end", "")


def tokenise(text: str, runs: Letters = "either") -> list[Token]:
    """The tokens of `text`, in order, without an end mark; `Unreadable` where it is none of mathematics.

    Runs of a few letters are variables side by side or words, by what they spell. As "products", two letters are always
    variables: `an + b` has no article in it. As "words", two or more are always a word: `49 years old` has none.
    """
    tokens: list[Token] = []
    spaced = in_text = False
    brackets = 0
    letters = _LETTERS[runs]
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        piece = match[0]
        if group == "space":
            spaced = True
            continue
        if group == "text":
            in_text, spaced = piece == TEXT_OPEN, True
            continue
        if group == "letters":
            letters(piece, spaced, in_text, tokens)
        elif group == "mark":
            brackets = max(0, brackets + _DEPTH.get(piece, 0))
            _mark(piece, spaced, tokens)
        elif group == "command":
            _command(match["command"], spaced, tokens)
        elif group != "other":
            _number(piece, spaced, tokens, brackets)
        elif piece not in _SKIPPED:
            tokens.append(Token("word", piece, spaced))
        spaced = False
        if len(tokens) > MAX_TOKENS:
            raise Unreadable("too many tokens")
    return tokens


def _number(piece: str, spaced: bool, tokens: list[Token], brackets: int) -> None:
    """A number; inside brackets a comma separates: (312,123,231) has three of them."""
    if len(piece) > _MAX_DIGITS:
        raise Unreadable("too many digits")
    if not brackets or "," not in piece:
        tokens.append(Token("number", piece, spaced))
        return
    for part in piece.split(","):
        tokens += [Token("number", part, spaced), Token("mark", ",")]
        spaced = False
    tokens.pop()


def _mark(piece: str, spaced: bool, tokens: list[Token]) -> None:
    piece = _PLAIN_MARK.get(piece, piece)
    if piece in RELATIONS:
        tokens.append(Token("relation", RELATIONS[piece], spaced))
    elif piece.startswith("..."):
        tokens.append(Token("symbol", "…", spaced))
    elif piece:
        tokens.append(Token("mark", piece, spaced))


def _command(name: str, spaced: bool, tokens: list[Token]) -> None:
    if name == "colon":
        tokens.append(Token("mark", ":", spaced))
    elif name in FUNCTION_NAMES and name != "choose":
        tokens.append(Token("function", FUNCTION_NAMES[name], spaced))
    elif name in CONSTANTS:
        tokens.append(Token("constant", CONSTANTS[name], spaced))
    elif name in RELATIONS:
        tokens.append(Token("relation", RELATIONS[name], spaced))
    elif name in GREEK:
        tokens.append(Token("symbol", name.removeprefix("var"), spaced))
    elif name in ("ldots", "cdots", "dots", "vdots", "dotsc", "dotsb"):
        tokens.append(Token("symbol", "…", spaced))
    elif name in CONJUNCTIONS:
        tokens.append(Token("conjunction", "and" if name in ("land", "wedge") else "or", spaced))
    else:
        tokens.append(Token("command", name, spaced))


def _letters(run: str, spaced: bool, in_text: bool, tokens: list[Token]) -> None:
    if run in CONJUNCTIONS:
        tokens.append(Token("conjunction", run.lower(), spaced))
    elif run == "choose" and not in_text:
        tokens.append(Token("command", run, spaced))
    elif len(run) == 1 and not in_text:
        tokens.append(Token("constant" if run in CONSTANTS else "symbol", run, spaced))
    elif run in FUNCTION_NAMES and run not in ("min", "sh", "ch", "th", "sign", "root", "choose"):
        tokens.append(Token("function", FUNCTION_NAMES[run], spaced))
    elif run in CONSTANTS and len(run) > 1:
        tokens.append(Token("constant", CONSTANTS[run], spaced))
    elif run in GREEK and not in_text:
        tokens.append(Token("symbol", run, spaced))
    elif not in_text and (glued := _FUNCTION_PREFIX.fullmatch(run)):
        _letters(glued[1], spaced, in_text, tokens)
        _letters(glued[2], False, in_text, tokens)
    elif (
        (tokens and spaced and tokens[-1].kind == "number" and run in UNIT_SYMBOLS)
        or (tokens and spaced and tokens[-1].kind in ("number", "word") and len(run) > 2 and run in NAMES)
        or in_text
        or len(run) > _LONGEST_PRODUCT
        or run in SHORT_WORDS
        or run.lower() in SHORT_WORDS
    ):
        tokens.append(Token("word", run, spaced))
    else:
        _side_by_side(run, spaced, tokens)


def _letters_apart(run: str, spaced: bool, in_text: bool, tokens: list[Token]) -> None:
    if len(run) == 2 and not in_text:
        _side_by_side(run, spaced, tokens)
    else:
        _letters(run, spaced, in_text, tokens)


def _letters_together(run: str, spaced: bool, in_text: bool, tokens: list[Token]) -> None:
    known = run in CONJUNCTIONS or run in FUNCTION_NAMES or run in CONSTANTS
    if len(run) > 1 and not known:
        tokens.append(Token("word", run, spaced))
    else:
        _letters(run, spaced, in_text, tokens)


_LETTERS: Final[dict[Letters, Callable[[str, bool, bool, list[Token]], None]]] = {
    "either": _letters,
    "products": _letters_apart,
    "words": _letters_together,
}


def _side_by_side(run: str, spaced: bool, tokens: list[Token]) -> None:
    for letter in run:
        tokens.append(Token("constant" if letter in CONSTANTS else "symbol", letter, spaced))
        spaced = False
