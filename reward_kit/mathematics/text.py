# SPDX-License-Identifier: Apache-2.0
r"""Take typography away: what LaTeX, Unicode, HTML, JSON, countries and programs write differently is written one way.

    text ─▶ prices, damaged escapes, phrases ─▶ LaTeX without its typography ─▶ one spelling for each thing

The result still is LaTeX-like text, for the tokeniser. `⟦…⟧` marks what stood inside `\text{…}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from reward_kit.answers.vocabulary import INDEXED, NOTHING
from reward_kit.mathematics.spoken import in_english, in_symbols, may_be_foreign, may_be_spoken, words_in

__all__ = ["MAX_LENGTH", "TEXT_CLOSE", "TEXT_OPEN", "in_one_spelling", "plain"]


MAX_LENGTH: Final = 40_000
"""Longer answers are not read as mathematics."""
TEXT_OPEN: Final = "⟦"
TEXT_CLOSE: Final = "⟧"

_GREEK: Final = dict(
    zip(
        "αβγδεζηθικλμνξρστυφχψωΓΔΘΛΞΣΦΨΩϕϵ",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi "
        "omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega phi epsilon".split(),
        strict=True,
    )
)
_RAISED: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_LOWERED: Final = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_RAISED_RUN: Final = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_LOWERED_RUN: Final = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_VULGAR: Final = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅛": "1/8", "⅙": "1/6"}
_UNICODE: Final = str.maketrans(
    {
        **{letter: f"\\{name} " for letter, name in _GREEK.items()},
        **{mark: f"\\frac{{{value[0]}}}{{{value[2]}}}" for mark, value in _VULGAR.items()},
        **dict.fromkeys("−–—﹣－‐‑‒", "-"),
        **dict.fromkeys("×✕⋅·∙•∗", "*"),
        **dict.fromkeys("\u00a0\u2009\u202f\u2002\u2003\u3000\u200a\ufeff", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\u2061\u2062", ""),
        **dict.fromkeys("“”„″", '"'),
        **dict.fromkeys("‘’′", "'"),
        **dict.fromkeys("º˚", "°"),
        "£": " \\text{GBP} ", "€": " \\text{EUR} ", "¥": " \\text{JPY} ", "₹": " \\text{INR} ", "¢": " \\text{cent} ",
        "‰": " \\text{permille} ",
        **dict.fromkeys("⟨〈", "\\langle "),
        **dict.fromkeys("⟩〉", "\\rangle "),
        "π": "\\pi ", "𝜋": "\\pi ", "√": "\\sqrt ", "∛": "\\cbrt ", "∞": "\\infty ", "∪": "\\cup ", "∩": "\\cap ",
        "∈": "\\in ", "∖": "\\setminus ", "≤": "\\le ", "⩽": "\\le ", "≥": "\\ge ", "⩾": "\\ge ", "≠": "\\ne ",
        "≈": "\\approx ", "±": "\\pm ", "∓": "\\mp ", "÷": "\\div ", "⁄": "/", "∕": "/", "／": "/", "∅": "\\emptyset ",
        "ℝ": "\\mathbb{R}", "ℤ": "\\mathbb{Z}", "ℕ": "\\mathbb{N}", "ℚ": "\\mathbb{Q}", "ℂ": "\\mathbb{C}",
        "∀": "\\forall ", "∃": "\\exists ", "∑": "\\sum ", "∫": "\\int ", "∏": "\\prod ", "…": "\\ldots ",
        "⋯": "\\ldots ", "∧": "\\land ", "∨": "\\lor ", "→": "\\to ", "⇒": "\\implies ", "∣": "|", "｜": "|",
        "（": "(", "）": ")", "［": "[", "］": "]", "，": ",", "、": ",", "；": ";", "：": ":", "＝": "=", "＜": "<",
        "＞": ">", "＋": "+", "％": "%", "。": ".",
        "⌊": "\\lfloor ", "⌋": "\\rfloor ", "⌈": "\\lceil ", "⌉": "\\rceil ",
        "ħ": "\\hbar ", "ℏ": "\\hbar ", "ℓ": "\\ell ", "𝑒": "e", "ℯ": "e", "ⅈ": "i", "∠": "\\angle ",
        "△": "\\triangle ", "\t": " ", "\r": " ",
    }
)  # fmt: skip

_ESCAPE_DAMAGE: Final = (
    ("\x0crac", "\\frac"),
    ("\x08oxed", "\\boxed"),
    ("\x08inom", "\\binom"),
    ("\x08egin", "\\begin"),
    ("\text", "\\text"),
    ("\times", "\\times"),
    ("\tfrac", "\\tfrac"),
    ("\theta", "\\theta"),
    ("\right", "\\right"),
)
_DOUBLED: Final = re.compile(
    r"(?<!\\)\\\\(?=(?:[dtc]?frac|sqrt|left|right|text|pi|cdot|times|cup|cap|in|infty|le|ge|leq|geq|neq|pm|sin|cos|tan|ln|log"
    r"|boxed|begin|end|mathrm|mathbf|theta|alpha|beta|circ|quad|overline|binom)(?![a-zA-Z]))"
)
_TEXT: Final = re.compile(
    r"\\(?:text|mbox|textbf|textit|textrm|textnormal|textsf|texttt|emph|hbox|mathsf|mathtt|rm|bf|it)\s{0,4}\{([^{}]*)\}"
)
_VECTOR: Final = r"\\(?:vec|overrightarrow|mathbf|boldsymbol|bm|hat)(?![a-zA-Z])\s?\{?\s?\\?[a-zA-Z]{1,5}\s?\}?"
_CROSSED: Final = re.compile(rf"({_VECTOR})\s*(?:\\times|\*)\s*(?={_VECTOR})")
"""A product of two vectors with a cross, which is another one than with a dot."""
_FONT: Final = re.compile(
    r"\\(?:mathrm|mathbf|mathit|boldsymbol|bm|operatorname|mathcal|vec|overrightarrow|hat|bar|overline|underline"
    r"|widehat|mathring|tilde|operatorname\*|mathop)(?![a-zA-Z])\s{0,4}"
)
_ROMAN: Final = re.compile(r"\\(?:mathrm|operatorname\*?|mathop)\s{0,4}\{([^{}]*)\}")
_ANGLE: Final = re.compile(
    r"(?:(?<![A-Za-z\\])m\s?)?\\(?:measured)?angle\s{0,2}\{?\s?([A-Z])\s?([A-Z])\s?([A-Z])\s?\}?(?![A-Za-z_])"
)
_TYPOGRAPHY: Final = re.compile(
    r"\\\\|(?<![A-Za-z\\])m\s?\\(?:measured)?angle(?![a-zA-Z])|\\(?:angle|measuredangle|left|right|bigl|bigr|Bigl|Bigr|biggl|biggr|big|Big|bigg|Bigg|middle)(?![a-zA-Z])\.?"
    r"|\\(?:displaystyle|textstyle|scriptstyle|tiny|scriptsize|footnotesize|small|normalsize|[lL]arge|LARGE|[hH]uge|limits|nolimits|rm|bf|it|thinspace|negthinspace|medspace|thickspace)"
    r"(?![a-zA-Z])"
    r"|(?<![\w)}=]\s)(?<![\w)}=])\\therefore(?![a-zA-Z])"
    r"|\\q?quad|\\(?:hspace\s{0,2}\{[^{}]*\}|phantom\s{0,2}\{[^{}]*\}|allowbreak|enspace)(?![a-zA-Z])"
    r"|\\[,;:!> ]|~|\\(?:\(|\)|\[|\])|\$"
)
_SYSTEM: Final = re.compile(r"\\left\s?\\\{\s{0,4}(?=\\begin\s?\{)(.*)\\right\s?\.", re.DOTALL)
_SPACING: Final = {"\\\\": "\\\\", "\\!": "", "$": ""}
"""What some typography becomes; all other becomes a space."""
_DEGREE: Final = re.compile(
    r"\^\s{0,2}(?:\{\s{0,2}\\(?:circ|degree)\s{0,2}\}|\\(?:circ|degree)(?![a-zA-Z]))|\\degree\b"
)
_THOUSANDS: Final = re.compile(r"(?<=\d)(?:\s?\{,\s?\}\s?|,\\!\s?|\\,|\\!,|\\thinspace\s?)(?=\d{3}(?!\d))")
_HTML: Final = re.compile(r"<(/?)(su[pb])>")
_BRACED_WORD: Final = re.compile(
    r"(?<=[\d)])(?<!frac\d)\s?\{\s{0,2}(/[A-Za-z]+|[A-Za-z]{2}[A-Za-z ./]*|[mshglLNJWVAKCF])\}"
)
_ORDINAL: Final = re.compile(
    rf"(?<=\d)(?:\s?\^?\s?\{{?\s?[{TEXT_OPEN}]?(?:st|nd|rd|th)[{TEXT_CLOSE}]?\s?\}}?)(?![a-zA-Z])"
    rf"(?!\s(?:[a-z]+\s){{0,2}}(?i:{'|'.join(sorted(INDEXED))})s?\b)"
)
_BOX: Final = re.compile(r"\\(?:boxed|fbox)\s{0,4}(?=\{)")
_ESCAPED: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_MODULE_E: Final = re.compile(r"\b(?:math|Math|np|numpy)\.[eE]\b")
_MODULE: Final = re.compile(r"\b(?:math|Math|np|numpy|sympy|sp|cmath)\.(?=[A-Za-z])")
_REPEATING: Final = re.compile(r"(?<![\d.])(\d{0,30})\.(\d{0,30})\\(?:overline|bar|dot)\s?\{?(\d{1,30})\}?")
_PERIODIC: Final = re.compile(r"(?<![\d.])(\d{0,30})\.(\d{0,30})\((\d{1,30})\)")
"""`0.1(6)`: the digits in brackets go on for ever."""
_INDIAN: Final = re.compile(r"\s*(-?)(\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d{1,9})?)\s*")
_TEMPERATURE: Final = re.compile(
    rf"°\s?(?:[{TEXT_OPEN}{{]\s?)?([CF]|celsius|fahrenheit)(?:\s?[{TEXT_CLOSE}}}])?(?![A-Za-z])", re.IGNORECASE
)
_BARRED: Final = re.compile(r"\\(?:overline|bar)(?:\s?\{([^{}]{1,60})\}|\s+([A-Za-z])(?![A-Za-z]))")
_COMPLEX: Final = re.compile(r"(?<![A-Za-z\\])i(?![A-Za-z])")
_SCALES: Final = {"c": "celsius", "f": "fahrenheit"}
_MONEY: Final = re.compile(
    r"(?P<minus>-\s?)?(?:(?P<country>US|AU?|CA?|HK)?\\?\$|(?P<sign>[€£¥₹])|\\(?P<command>pounds|euro)\b)\s?"
    r"(?P<number>-?(?:\d{1,3}(?:,(?:\\!)?\d{3})+|\d+)?(?:[.,]\d+)?(?<=\d))(?P<scale>\s?(?:thousand|million|billion|trillion|[kKMB]\b))?"
    r"(?=\s*(?:$|[,;)$]|\.\s*$|\\text|/\s?[A-Za-z]|[A-Za-z]))"
)
_CODES: Final = {"€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "pounds": "GBP", "euro": "EUR"}
_COUNTRIES: Final = {"A": "AUD", "AU": "AUD", "C": "CAD", "CA": "CAD", "HK": "HKD"}
_DOLLAR_BEHIND: Final = re.compile(r"^(\s*-?\d[\d.,]*)\s?\\?\$\s*$")
_PRICE: Final = re.compile(r"(?<!\\)\$(?=\s?-?[\d.])")
_MICRO: Final = re.compile(r"(?<=[\d\s])[µμ](?=[mgsLlFACVWJNT](?![a-z]))")
_HALF_OF_DAY: Final = re.compile(r"\b([aApP])\.\s?[mM]\b\.?")
_PHRASES: Final = (
    (
        re.compile(r"\s*(?:the\s+set\s+of\s+)?all\s+real(?:s|\s+(?:numbers?|values?))\.?\s*", re.IGNORECASE),
        "\\mathbb{R}",
    ),
    (
        re.compile(
            r"\s*(?:there\s+(?:is|are)\s+|(?:(?:(?:the|this)\s+)?(?:system|equation|problem|inequality|it)\s+)?has\s+)?no\s+(?:real\s+|integer\s+|such\s+)?(?:solutions?|roots?)"
            r"(?:\s+exists?)?[.}]*\s*|\s*(?:the\s+)?empty\s+set\.?\s*",
            re.IGNORECASE,
        ),
        "\\emptyset",
    ),
)
_UNDEFINED: Final = re.compile(
    r"\s*(?:the\s+|this\s+)?(?:limit|value|answer|sum|series|integral|it)?\s*(?:is\s+)?"
    r"(?:DNE|d\.n\.e\.|(?:does\s+not|doesn't|doesn’t|do\s+not)\s+exist|undefined|not\s+defined|no\s+(?:such\s+)?limit"
    r"|no\s+limit\s+exists|non-?existent)[.}]*\s*",
    re.IGNORECASE,
)
_REALS_WITHOUT: Final = re.compile(
    r"(?:(?<=^)|(?<=[\s$]))(?:R|ℝ|\\mathbb\s?\{?R\}?)\s?\\\s?(?:\\?\{)([^{}\\]{1,60})\\?\}"
)
_GOES_ON: Final = re.compile(r"\d\.\.\.$")
"""A decimal that goes on is not the number it begins with."""
_TAIL: Final = " \n.,;:"
_LONGEST_PHRASE: Final = 80
_WORTH_KEEPING: Final = 300
"""Longer texts are not kept: they seldom come again."""


def plain(text: str) -> str:
    """`text` in one spelling, without delimiters, decoration and a closing full stop."""
    return _kept(text) if len(text) <= _WORTH_KEEPING else _plain(text)


def _plain(text: str) -> str:
    ascii_only = text.isascii()
    said = words_in(text) if " " in text or text.isalpha() else []
    text = _without_damage(_of_one_country(text, said, ascii_only))
    if (meant := _meant_phrase(text)) is not None:
        return meant
    text = _without_typing(text)
    text = _without_typography(text) if "\\" in text else text.replace("$", " ").replace("~", " ")
    if "°" in text:
        text = _TEMPERATURE.sub(_temperature, text)
    text = _ORDINAL.sub(" ", text).strip().strip("*`").lstrip(" :")
    text = in_one_spelling(in_symbols(text) if may_be_spoken(said) or not ascii_only else text)
    return text if _GOES_ON.search(text) else text.rstrip(_TAIL)


def _of_one_country(text: str, said: list[str], ascii_only: bool) -> str:
    """`text` with its prices as amounts, and the known words of other languages in English."""
    if "$" in text or not ascii_only:
        text = _with_currency(text)
    if not ascii_only:
        text = _MICRO.sub("u", text)
    return in_english(text) if not ascii_only or may_be_foreign(said) else text


def _without_typing(text: str) -> str:
    """`text` without what HTML, programs and countries write in a way of their own."""
    if "R" in text and "\\" in text:
        text = _REALS_WITHOUT.sub(r"\\mathbb{R} \\setminus \\{\1\\}", text)
    if "<" in text:
        text = _HTML.sub(lambda tag: "}" if tag[1] else "^{" if tag[2] == "sup" else "_{", text)
    if "," in text and (indian := _INDIAN.fullmatch(text)) is not None:
        text = _grouped_by_commas(indian)
    if "." in text:
        if "(" in text:
            text = _PERIODIC.sub(_fraction, text)
        text = _MODULE.sub("", _MODULE_E.sub("e", _HALF_OF_DAY.sub(r"\1m", text)))
    if "{" in text:
        text = _BRACED_WORD.sub(rf" {TEXT_OPEN}\1{TEXT_CLOSE} ", _THOUSANDS.sub(",", text))
    return text


_kept = lru_cache(2048)(_plain)


def _meant_phrase(text: str) -> str | None:
    """What a phrase of a few words stands for: all real numbers, no solution, no value."""
    bare = text.strip(" ${}\n").removeprefix(r"\text{").strip(" .。!")
    if bare.lower() in NOTHING:
        return "\\emptyset"
    if not bare[:1].isalpha() or len(bare) > _LONGEST_PHRASE:
        return None
    for phrase, meant in _PHRASES:
        if phrase.fullmatch(bare):
            return meant
    return "does not exist" if _UNDEFINED.fullmatch(bare) else None


def _with_currency(text: str) -> str:
    """`text` with each price as an amount and the code of its currency; a `$` around a formula is none."""
    if text.count("$") == 1:
        text = _DOLLAR_BEHIND.sub(r"\1 \\text{USD}", text)
    if any(sign in text for sign in "€£¥₹") or "\\$" in text:
        return _MONEY.sub(_priced, text)
    prices = len(_PRICE.findall(text))
    return _MONEY.sub(_priced, text) if prices and prices == text.count("$") else text


_SHORT_SCALES: Final = {"k": "thousand", "K": "thousand", "M": "million", "B": "billion"}


def _priced(match: re.Match[str]) -> str:
    """`$2.5 million` as `2.5 million USD`."""
    code = _CODES.get(match["sign"] or match["command"] or "") or _COUNTRIES.get(match["country"] or "", "USD")
    minus = "-" if match["minus"] else ""
    scale = (match["scale"] or "").strip()
    scale = f" {_SHORT_SCALES.get(scale, scale)}" if scale else ""
    return f"{minus}{match['number']}{scale} \\text{{{code}}} "


def _temperature(match: re.Match[str]) -> str:
    scale = match[1].lower()
    return f" {TEXT_OPEN}{_SCALES.get(scale, scale)}{TEXT_CLOSE} "


def _without_damage(text: str) -> str:
    """`text` with broken escapes mended and in ASCII, as far as this package knows the signs."""
    for damaged, meant in _ESCAPE_DAMAGE:
        if damaged in text:
            text = text.replace(damaged, meant)
    if "\\u" in text:
        text = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text)
    if not text.isascii():
        text = _RAISED_RUN.sub(lambda run: f"^{{{run[0].translate(_RAISED)}}}", text)
        text = _LOWERED_RUN.sub(lambda run: f"_{{{run[0].translate(_LOWERED)}}}", text).translate(_UNICODE)
    return text


def _without_typography(text: str) -> str:
    if "\\\\" in text:
        text = _DOUBLED.sub(lambda _: "\\", text)
    if "\\right." in text or "\\right ." in text:
        text = _SYSTEM.sub(r"\1", text)
    text = _BOX.sub("", _THOUSANDS.sub(",", text.replace("\\$", "$")))
    text = _REPEATING.sub(_fraction, _DEGREE.sub("°", text))
    if "bar" in text or "overline" in text:
        text = _BARRED.sub(_conjugated, text)
    text = _TEXT.sub(rf" {TEXT_OPEN}\1{TEXT_CLOSE} ", text)
    if "\\times" in text:
        text = _CROSSED.sub(r"\1_{cross} ", text)
    if "angle" in text:
        text = _ANGLE.sub(_at_its_vertex, text)
    text = _ROMAN.sub(_roman, text)
    text = _FONT.sub(" ", text)
    return _TYPOGRAPHY.sub(lambda match: _SPACING.get(match[0], " "), text)


def _fraction(match: re.Match[str]) -> str:
    r"""A repeating decimal, `0.1\overline{6}`, as the fraction that it is."""
    whole, start, repeated = match.groups()
    over = int(whole + start + repeated) - int(whole + start or "0")
    return rf"\frac{{{over}}}{{{10 ** len(start) * (10 ** len(repeated) - 1)}}}"


def _conjugated(match: re.Match[str]) -> str:
    """A bar over a letter belongs to its name, and one over a complex number makes it another; others say nothing."""
    inside = (match[1] or match[2]).strip()
    if len(inside) == 1:
        return f" {inside}_{{bar}} "
    return f" conjugate({inside}) " if _COMPLEX.search(inside) else match[0]


def _at_its_vertex(match: re.Match[str]) -> str:
    """An angle by its vertex and its sides: ABC and CBA are one, and ACB is another."""
    return f" {match[2]}_{{{min(match[1], match[3])}{max(match[1], match[3])}}} "


def _roman(match: re.Match[str]) -> str:
    r"""`\mathrm{e}` is the number e, but `\mathrm{km}` is text."""
    inside = match[1].strip()
    return f" {inside} " if inside in ("e", "i", "d") else f" {TEXT_OPEN}{inside}{TEXT_CLOSE} "


# ── one spelling ─────────────────────────────────────────────────────────────────────────────────────────────────────


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


def _grouped_by_commas(match: re.Match[str]) -> str:
    """`12,34,567`, as India groups its numbers."""
    return match[1] + match[2].replace(",", "")


def _parts(match: re.Match[str]) -> str:
    """`(a) 3 (b) 5` as `part 1: 3, part 2: 5`."""
    found = _PART.split(match[0])
    letters = [name.strip("() ") for name in found[1::2]]
    if len(letters) == 1 or not all(map(str.strip, found[2::2])):
        return match[0]
    if found[0].strip() or letters not in ([*"abcdefgh"][: len(letters)], ["i", "ii", "iii", "iv"][: len(letters)]):
        return match[0]
    return ", ".join(f"part {place}: {text.strip(' ,;:')}" for place, text in enumerate(found[2::2], 1))


def _sexagesimal(match: re.Match[str]) -> str:
    """Degrees, minutes and seconds as degrees."""
    return f"({match[1]}+{match[2]}/60+{match[3] or 0}/3600)°"


_PART: Final = re.compile(r"(?:^|[\s,;]+)(\((?:[a-h]|i{1,3}|iv)\))\s*")


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
    # 0x2A, 0b101
    _Rule(("0x", "0X"), re.compile(r"^0[xX]([0-9A-Fa-f]{1,40})$"), lambda found: f"{found[1].upper()}_{{16}}"),
    _Rule(("0b", "0B"), re.compile(r"^0[bB]([01]{1,80})$"), r"\1_{2}"),
    _Rule(("0o", "0O"), re.compile(r"^0[oO]([0-7]{1,40})$"), r"\1_{8}"),
    # 1_234_567
    _Rule(("_",), re.compile(r"^-?\d{1,3}(?:_\d{3}){1,9}$"), lambda found: found[0].replace("_", "")),
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
    # f^-1(x) = 2x names a function
    _Rule(("^-1", "^ -1"), re.compile(r"^\s*([a-zA-Z])\s?\^\s?-1\s?(?=\(\s?[a-z]\s?\)\s?=)"), r"\1^{-1}"),
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
    _Rule((" to ",), re.compile(r"^(\d{1,9})[\s\u27e6]+to[\s\u27e7]+(\d{1,9})$"), r"\1:\2"),
    # a ratio of 3 to 2, the ratio is 3:2
    _Rule(
        ("atio ",),
        re.compile(r"^(?:the\s|a\s)?ratio\s(?:is|of)\s(\d{1,9})(?:\s+to\s+|\s?:\s?)(\d{1,9})$", re.I),
        r"\1:\2",
    ),
    # the length is 5 and the width is 3
    _Rule(
        (" is ", " are ", " was ", " equals "),
        re.compile(
            r"(?:(?<=^)|(?<=\band\s)|(?<=,\s)|(?<=;\s))((?:[A-Za-z][a-z'-]*\s){0,6}[A-Za-z][A-Za-z'-]+|[b-hj-zB-HJ-Z])\s+"
            r"(?:is\sequal\sto|is|are|was|equals)\s+(?=[-+]?(?:\d|\\(?:[dt]?frac|sqrt|pi)|\())",
        ),
        r"\1 = ",
    ),
    # 3\hat{\imath}
    _Rule(("imath", "jmath"), re.compile(r"\\([ij])math(?![A-Za-z])"), r"\1"),
    # aligned equations
    _Rule(("&=", "& ="), re.compile(r"&\s?="), "="),
    # (a) 3 (b) 5
    _Rule(("(b)", "(ii)"), re.compile(r"^\(?(?:a|i)\).+", re.DOTALL), _parts),
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


def in_one_spelling(text: str) -> str:
    """`text` with each of these spellings in the form that the parser knows."""
    if _MARK.search(text) is None:
        return text
    for marks, pattern, meant in _RULES:
        for mark in marks:
            if mark in text:
                text = pattern.sub(meant, text)
                break
    return text
