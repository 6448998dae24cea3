r"""Take typography away: what LaTeX dialects, Unicode, HTML and JSON write differently is written one way.

The result still is LaTeX-like text, for the tokeniser. `⟦…⟧` marks what stood inside `\text{…}`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from reward_kit.mathematics.dialects import in_one_dialect

__all__ = ["MAX_LENGTH", "TEXT_CLOSE", "TEXT_OPEN", "plain"]

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
        "ħ": "\\hbar ", "ℏ": "\\hbar ", "ℓ": "\\ell ", "𝑒": "e", "ℯ": "e", "ⅈ": "i", "∠": "",
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
_FONT: Final = re.compile(
    r"\\(?:mathrm|mathbf|mathit|boldsymbol|bm|operatorname|mathcal|vec|overrightarrow|hat|bar|overline|underline"
    r"|widehat|mathring|tilde|operatorname\*|mathop)(?![a-zA-Z])\s{0,4}"
)
_ROMAN: Final = re.compile(r"\\(?:mathrm|operatorname\*?|mathop)\s{0,4}\{([^{}]*)\}")
_TYPOGRAPHY: Final = re.compile(
    r"\\\\|\\(?:angle|measuredangle|left|right|bigl|bigr|Bigl|Bigr|biggl|biggr|big|Big|bigg|Bigg|middle)(?![a-zA-Z])\.?"
    r"|\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|rm|bf|it|thinspace|negthinspace|medspace|thickspace)"
    r"(?![a-zA-Z])"
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
)
_BOX: Final = re.compile(r"\\(?:boxed|fbox)\s{0,4}(?=\{)")
_ESCAPED: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_MODULE_E: Final = re.compile(r"\b(?:math|Math|np|numpy)\.[eE]\b")
_MODULE: Final = re.compile(r"\b(?:math|Math|np|numpy|sympy|sp|cmath)\.(?=[A-Za-z])")
_REPEATING: Final = re.compile(r"(?<![\d.])(\d{0,30})\.(\d{0,30})\\(?:overline|bar|dot)\s?\{?(\d{1,30})\}?")
_TEMPERATURE: Final = re.compile(
    rf"°\s?(?:[{TEXT_OPEN}{{]\s?)?([CF]|celsius|fahrenheit)(?:\s?[{TEXT_CLOSE}}}])?(?![A-Za-z])", re.IGNORECASE
)
_SCALES: Final = {"c": "celsius", "f": "fahrenheit"}
_MONEY: Final = re.compile(
    r"(?P<minus>-\s?)?(?:(?P<country>US|AU?|CA?|HK)?\\?\$|(?P<sign>[€£¥₹])|\\(?P<command>pounds|euro)\b)\s?"
    r"(?P<number>-?(?:\d{1,3}(?:,(?:\\!)?\d{3})+|\d+)?(?:[.,]\d+)?(?<=\d))(?P<scale>\s?(?:thousand|million|billion|trillion|k\b))?"
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
            r"\s*(?:there\s+(?:is|are)\s+|has\s+)?no\s+(?:real\s+|integer\s+|such\s+)?(?:solutions?|roots?)"
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
_GOES_ON: Final = re.compile(r"\.\d{1,20}\.\.\.$")
"""A decimal that goes on is not the number it begins with."""
_TAIL: Final = " \n.,;:"
_LONGEST_PHRASE: Final = 80
_WORTH_KEEPING: Final = 300
"""Longer texts are not kept: they seldom come again."""


def plain(text: str) -> str:
    """`text` in one dialect, without delimiters, decoration and a closing full stop."""
    return _kept(text) if len(text) <= _WORTH_KEEPING else _plain(text)


def _plain(text: str) -> str:
    ascii_only = text.isascii()
    if "$" in text or not ascii_only:
        text = _with_currency(text)
    if not ascii_only:
        text = _MICRO.sub("u", text)
    text = _without_damage(text)
    if (meant := _meant_phrase(text)) is not None:
        return meant
    if "R" in text and "\\" in text:
        text = _REALS_WITHOUT.sub(r"\\mathbb{R} \\setminus \\{\1\\}", text)
    if "<" in text:
        text = _HTML.sub(lambda tag: "}" if tag[1] else "^{" if tag[2] == "sup" else "_{", text)
    if "." in text:
        text = _MODULE.sub("", _MODULE_E.sub("e", _HALF_OF_DAY.sub(r"\1m", text)))
    if "{" in text:
        text = _BRACED_WORD.sub(rf" {TEXT_OPEN}\1{TEXT_CLOSE} ", _THOUSANDS.sub(",", text))
    text = _without_typography(text) if "\\" in text else text.replace("$", " ").replace("~", " ")
    if "°" in text:
        text = _TEMPERATURE.sub(_temperature, text)
    text = _ORDINAL.sub(" ", text).strip().strip("*`").lstrip(" :")
    text = in_one_dialect(text)
    return text if _GOES_ON.search(text) else text.rstrip(_TAIL)


_kept = lru_cache(2048)(_plain)


def _meant_phrase(text: str) -> str | None:
    """What a phrase of a few words stands for: all real numbers, no solution, no value."""
    bare = text.strip(" ${}\n").removeprefix(r"\text{").strip()
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


def _priced(match: re.Match[str]) -> str:
    """`$2.5 million` as `2.5 million USD`."""
    code = _CODES.get(match["sign"] or match["command"] or "") or _COUNTRIES.get(match["country"] or "", "USD")
    minus = "-" if match["minus"] else ""
    return f"{minus}{match['number']}{match['scale'] or ''} \\text{{{code}}} "


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
    text = _TEXT.sub(rf" {TEXT_OPEN}\1{TEXT_CLOSE} ", text)
    text = _ROMAN.sub(_roman, text)
    text = _FONT.sub(" ", text)
    return _TYPOGRAPHY.sub(lambda match: _SPACING.get(match[0], " "), text)


def _fraction(match: re.Match[str]) -> str:
    r"""A repeating decimal, `0.1\overline{6}`, as the fraction that it is."""
    whole, start, repeated = match.groups()
    over = int(whole + start + repeated) - int(whole + start or "0")
    return rf"\frac{{{over}}}{{{10 ** len(start) * (10 ** len(repeated) - 1)}}}"


def _roman(match: re.Match[str]) -> str:
    r"""`\mathrm{e}` is the number e, but `\mathrm{km}` is text."""
    inside = match[1].strip()
    return f" {inside} " if inside in ("e", "i", "d") else f" {TEXT_OPEN}{inside}{TEXT_CLOSE} "
