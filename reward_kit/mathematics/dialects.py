r"""Spellings that are one thing in one country, subject or program, and another elsewhere, written one way.

Each rule has a mark that it needs, so that a text without the mark is not searched. They come after `reading`, on text
without typography.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["in_one_dialect"]

_PERIOD: Final = 6
"""Digits of a repeating decimal that is written out."""


class _Rule(NamedTuple):
    marks: tuple[str, ...]
    """The rule is tried where one of these occurs."""
    pattern: re.Pattern[str]
    meant: str | Callable[[re.Match[str]], str]


def _repeating(match: re.Match[str]) -> str:
    """`0.1666...` as the fraction it is the beginning of."""
    whole, start, repeated = match["whole"] or "0", match["start"], match["period"]
    times = len(match["rest"]) // len(repeated) + 1
    if times * len(repeated) < 3:  # 0.3... and 0.33... may go on in any way
        return match[0]
    over = int(whole + start + repeated) - int(whole + start)
    return rf"\frac{{{over}}}{{{10 ** len(start) * (10 ** len(repeated) - 1)}}}"


def _interval(match: re.Match[str]) -> str:
    """`]0, 1[` as `(0, 1)`."""
    opening, inside, closing = match.groups()
    return f"{'(' if opening == ']' else '['}{inside}{')' if closing == '[' else ']'}"


def _combinations(match: re.Match[str]) -> str:
    """`C_{10}^{3}`: ten choose three; but a `C_1^2` is the square of a constant."""
    lower, upper = int(match[1] or match[2]), int(match[3] or match[4])
    return rf"\binom{{{lower}}}{{{upper}}}" if lower > 2 and lower >= upper else match[0]


def _grouped_by_spaces(match: re.Match[str]) -> str:
    """`1 234 567`, where that is all there is."""
    return match[0].replace(" ", "")


def _sexagesimal(match: re.Match[str]) -> str:
    """Degrees, minutes and seconds as degrees."""
    return f"({match[1]}+{match[2]}/60+{match[3] or 0}/3600)°"


def _derivative(match: re.Match[str]) -> str:
    return f"{match[1] or match[2]}' ="


def _decimal_comma(match: re.Match[str]) -> str:
    thousands = len(match[2]) == 3 and match[1] != "0"
    return f"{match[1]},{match[2]}" if thousands else f"{match[1]}.{match[2]}"


_BOUND: Final = r"^(?:([A-Za-z])\s+(?:is\s+)?)?"


def _bound(relation: str) -> Callable[[re.Match[str]], str]:
    """A bound in words as an inequality, about x where it names nothing."""
    return lambda match: f"{match[1] or 'x'} {relation} "


_RULES: Final = (
    # 6.02 x 10^23
    _Rule(("x10", "x 10", "X10", "X 10"), re.compile(r"(?<=\d)\s?[xX]\s?(?=10\s?(?:\^|\*\*))"), "*"),
    # 60^o
    _Rule(("^o", "^{o}"), re.compile(r"(?<=\d)\s?\^\s?(?:o(?![A-Za-z])|\{\s?o\s?\})"), "°"),
    # log10(5), log2(5)
    _Rule(("log10(", "log2(", "log10 (", "log2 ("), re.compile(r"(?<![A-Za-z\\])log(10|2)\s?(?=\()"), r"\\log_{\1}"),
    # 3 +/- 2; but 6+-5i is 6 - 5i
    _Rule(("+/-", "+ /"), re.compile(r"\+\s?/\s?-"), r"\\pm "),
    # 0.1666...
    _Rule(
        ("...", "ldots", "dots"),
        re.compile(
            rf"(?<![\d.])(?P<whole>\d{{0,15}})\.(?P<start>\d{{0,15}}?)(?P<period>\d{{1,{_PERIOD}}}?)(?P<rest>(?P=period){{1,20}})"
            r"\s?(?:\.{3}|\\(?:ldots|dots|cdots)\b)"
        ),
        _repeating,
    ),
    # ]0, 1[ and [2, 5[
    _Rule(
        ("[", "]"),
        re.compile(r"([\[\]])([^\[\](),;]{1,80}[,;][^\[\](),;]{1,80})([\[\]])"),
        _interval,
    ),
    # (0, 1) U (2, 3)
    _Rule(
        (") U", ")U", "] U", "]U", "} U", "}U", "union", "Union"),
        re.compile(r"(?<=[)\]}])\s{0,3}(?:U|[Uu]nion)\s{0,3}(?=[(\[{\\])"),
        r" \\cup ",
    ),
    _Rule(("\\bigcup", "\\bigcap"), re.compile(r"\\big(cup|cap)(?![A-Za-z])(?!\s?_)"), r"\\\1 "),
    # C_{10}^3, _{10}C_3, {}^{10}C_3
    _Rule(
        ("C_", "C ⟧_", "C⟧ _"),
        re.compile(r"(?<![A-Za-z\\])C\s?_\s?(?:\{\s?(\d{1,4})\s?\}|(\d))\s?\^\s?(?:\{\s?(\d{1,4})\s?\}|(\d))"),
        _combinations,
    ),
    _Rule(
        ("C_",),
        re.compile(r"(?:\{\s?\})?\s?[_^]\s?\{?\s?(\d{1,4})\s?\}?\s?C\s?_\s?\{?\s?(\d{1,4})\s?\}?"),
        r"\\binom{\1}{\2}",
    ),
    # (1011)_2, 1011_{\text{two}}, 1011 base 2
    _Rule((")_",), re.compile(r"\((\d{1,80})\)\s?_"), r"\1_"),
    _Rule(("_{",), re.compile(r"(?<=\d)_\{\s?[(\u27e6]\s?(\w{1,8})\s?[)\u27e7]\s?\}"), r"_{\1}"),
    _Rule(("base",), re.compile(r"(?<=\d)\s{0,2}(?:\(?(?:in\s)?base[- ]?)(\d{1,2}|[a-z]{3,7})\)?$"), r"_{\1}"),
    # 14{,}7 and 1'234'567
    _Rule(("{,}",), re.compile(r"(?<!\d)(\d{1,12})\s?\{,\s?\}\s?(\d{1,12})(?!\d|\{,)"), _decimal_comma),
    _Rule(
        (" ",),
        re.compile(r"\A([+-]?\s?\d{1,3}(?: \d{3}){1,9}(?:\.\d{1,12})?)[^\w(]{0,3}\Z"),
        _grouped_by_spaces,
    ),
    # 3 and a half
    _Rule((" half",), re.compile(r"^(\d{1,9})\s+and\s+(?:a|one)\s+half(?![a-z])"), r"\1\\frac{1}{2}"),
    _Rule(("'",), re.compile(r"(?<=\d)'(?=\d{3}(?!\d))"), ""),
    # 30°15'36" and 5'6"
    _Rule(
        ("°",),
        re.compile(r"(\d{1,9})\s*°\s*(\d{1,2}(?:\.\d{1,9})?)\s?'(?:\s?(\d{1,2}(?:\.\d{1,9})?)\s?(?:''|\"))?"),
        _sexagesimal,
    ),
    _Rule(("'",), re.compile(r"^(\d{1,4})\s?'\s?(\d{1,2}(?:\.\d{1,9})?)\s?(?:''|\")$"), "\\1 feet \\2 inches"),
    # 3 \mu m, 2 k\Omega
    _Rule(("\\mu",), re.compile(r"(?<=\d)\s+\\mu\s{0,2}\u27e6?([mgsLlFACVWJNT])(?=[\s\u27e7]*$)"), " u\\1"),
    _Rule(("\\Omega",), re.compile(r"(?<=\d)\s*\u27e6?([kM])[\s\u27e7]*\\Omega"), " \u27e6\\1Omega\u27e7"),
    # f^{-1}(x) = 2x names a function
    _Rule(("-1",), re.compile(r"^\s*([a-zA-Z])\s?\^\s?(?:\{\s?-1\s?\}|-1)\s?(?=\(\s?[a-z]\s?\)\s?=)"), r"\1"),
    # dy/dx = 2x
    _Rule(("dx", "dt"), re.compile(r"^\s*(?:\\[dt]?frac\s?\{d([a-z])\}\s?\{d[tx]\}|d([a-z])/d[tx])\s?="), _derivative),
    # Matrix([[1, 2], [3, 4]])
    _Rule(("Matrix(", "array("), re.compile(r"(?:Matrix|array)(?=\(\s?\[)"), ""),
    # US$18, \\surd 2
    _Rule(("US",), re.compile(r"^\s*(?:US|A|C|HK)(?=\s?\d)"), ""),
    _Rule(("\\surd",), re.compile(r"\\surd(?![A-Za-z])"), r"\\sqrt "),
    # all real numbers except 2
    _Rule(
        (" except ",),
        re.compile(
            r"^all\s+real(?:s|\s+numbers)(?:\s+[a-z])?\s+except\s+(?:for\s+)?(?:[a-z]\s?=\s?)?(.{1,60})$", re.IGNORECASE
        ),
        r"\\mathbb{R} \\setminus \\{\1\\}",
    ),
    _Rule(("infinity",), re.compile(r"(?<![A-Za-z])(?:negative|minus)\s+infinity", re.IGNORECASE), r"-\\infty "),
    _Rule(("color",), re.compile(r"\\(?:text)?color\s?\{[a-z]{1,20}\}"), ""),
    # x = 3 (mod 5)
    _Rule(("mod",), re.compile(r"\(?\s?\\?[pb]?mod\s?\{?\s?(\d{1,30})\s?\}?\s?\)?$"), r"\\pmod \1"),
    # 3 to 2
    _Rule((" to ",), re.compile(r"^(\d{1,9})\s+to\s+(\d{1,9})$"), r"\1:\2"),
    # 30 sec is a time, not a secant
    _Rule(("sec",), re.compile(r"(?<=\d)[\s\u27e6]+sec\.?(?=[\s\u27e7]*(?:$|[,;)]))"), " \u27e6seconds"),
    # x is greater than 3
    _Rule((" is ",), re.compile(r"^([A-Za-z])\s+is\s+(?:greater|larger|more)\s+than\s+or\s+equal\s+to\s"), r"\1 \\ge "),
    _Rule((" is ",), re.compile(r"^([A-Za-z])\s+is\s+(?:less|smaller)\s+than\s+or\s+equal\s+to\s"), r"\1 \\le "),
    _Rule((" is ",), re.compile(r"^([A-Za-z])\s+is\s+(?:greater|larger|more)\s+than\s"), r"\1 > "),
    _Rule((" is ",), re.compile(r"^([A-Za-z])\s+is\s+(?:less|smaller)\s+than\s"), r"\1 < "),
    # x at least 3, at most 5, more than 2
    _Rule(
        ("least", "less"), re.compile(_BOUND + r"(?:at\s+least|no\s+less\s+than|not\s+less\s+than)\s"), _bound("\\ge")
    ),
    _Rule(
        ("most", "more", "greater"),
        re.compile(_BOUND + r"(?:at\s+most|(?:no|not)\s+(?:more|greater)\s+than)\s"),
        _bound("\\le"),
    ),
    _Rule((" than ",), re.compile(_BOUND + r"(?:greater|larger|more)\s+than\s+(?!or\b)"), _bound(">")),
    _Rule((" than ",), re.compile(_BOUND + r"(?:less|smaller|fewer)\s+than\s+(?!or\b)"), _bound("<")),
    # 1 in 4, 3 out of every 10
    _Rule(
        (" in ", " out of "),
        re.compile(r"^(?:a\s+)?(\d{1,9})[\s-]+(?:in|out\s+of)[\s-]+(?:every\s+)?(\d{1,9})(?:\s+(?:chances?|odds))?$"),
        r"\\frac{\1}{\2}",
    ),
    # 33 1/3 %
    _Rule(("%",), re.compile(r"^(\d{1,9}) (\d{1,9})/(\d{1,9})\s?\\?%$"), r"(\1 \2/\3)%"),
    # about 5 m
    _Rule(
        ("about", "pprox", "oughly", "xactly"),
        re.compile(r"^(?:about|approximately|approx\.?|roughly|exactly)\s+(?=[-\d\\(])", re.IGNORECASE),
        "",
    ),
    # ≈ 5
    _Rule(("\\approx", "\\simeq"), re.compile(r"^\s*\\(?:approx|simeq)(?![A-Za-z])"), ""),
    _Rule(("\\newline",), re.compile(r"\\newline(?![A-Za-z])"), " "),
)


_MARK: Final = re.compile("|".join(sorted({re.escape(mark) for rule in _RULES for mark in rule.marks})))


def in_one_dialect(text: str) -> str:
    """`text` with each of these spellings in the form that the parser knows."""
    if _MARK.search(text) is None:
        return text
    for marks, pattern, meant in _RULES:
        for mark in marks:
            if mark in text:
                text = pattern.sub(meant, text)
                break
    return text
