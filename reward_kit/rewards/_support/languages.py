# SPDX-License-Identifier: Apache-2.0
"""Which language a text is in, piece by piece: scripts tell some languages, a detector (py3langid) the others.

    prose ─▶ sentences ─▶ the words of each script ─▶ a piece long enough to tell ─▶ language

A piece is the words of one script in a sentence; one too short to tell is joined with the next of its script. So a
foreign word in another script is seen inside a sentence, and a foreign sentence inside a paragraph.
"""

from __future__ import annotations

import copy
import functools
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from reward_kit.errors import needs_extra
from reward_kit.rewards._support.prose import outside_code
from reward_kit.typed_interface import RewardContractError

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

__all__ = ["language_code", "words_by_language"]

_CODES = (
    "af am ar az bg bn ca cs da de el en es et eu fa fi fr ga gu he hi hr hu hy id is it ja ka kk km kn ko lo lt lv "
    "mk ml mn mr my ne nl no or pa pl ps pt ro ru si sk sl sq sr sv sw ta te th tl tr uk ur uz vi xh yo zh zu"
)
COMMON = frozenset(_CODES.split())
"""Languages told apart without being asked for. A language much like one of them only when it is the target."""
_TWINS = ({"id", "ms"}, {"hr", "sr", "bs"}, {"no", "da", "nn"}, {"cs", "sk"}, {"zh", "yue", "wuu"}, {"uz", "uzs"})
"""Languages that short sentences do not tell apart: the target stands for its twins."""
_OTHER_NAMES = {"nb": "no", "cmn": "zh", "iw": "he", "in": "id", "fil": "tl"}

_NOT_PROSE = re.compile(
    r"https?://\S+|<[^<>]{1,200}>"
    r"|\$\$[^$]*+\$\$|\$(?=[^\s$])[^$\n]{0,300}(?<=[^\s$])\$(?!\d)"
    r"|\\\[(?:[^\\]|\\(?![\[\]]))*+\\\]|\\\((?:[^\\]|\\(?![()]))*+\\\)"
    r"|\\[A-Za-z]+"
)
"""Links, tags, mathematics and the commands of LaTeX."""
_SENTENCE_END = re.compile("[.!?…]+(?=\\s|$)|[\u3002\uff01\uff1f\uff61\u0964\u061f]|\n")
_SCRIPTS = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff'’",
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "han": "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f",
    "hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "hebrew": "\u0590-\u05ff",
    "devanagari": "\u0900-\u097f",
    "thai": "\u0e00-\u0e7f",
}
_WORD = re.compile(
    "|".join(f"(?P<{name}>[{letters}]+)" for name, letters in _SCRIPTS.items()) + r"|(?P<other>[^\W\d_]+)"
)
_ONLY_LANGUAGE = {"hangul": "ko", "greek": "el", "hebrew": "he", "thai": "th"}
_KANA = re.compile("[\u3040-\u30ff\uff66-\uff9f]")
_UNSPACED = frozenset({"han", "thai"})
_ENOUGH = 16
"""Letters that are enough to tell a language by."""
_ENOUGH_UNSPACED = 4
_NEARLY = 0.5
"""How likely the target must be, beside the likeliest language, to be given the benefit of the doubt."""


class _Piece(NamedTuple):
    script: str
    text: str
    words: int


def words_by_language(text: str, target: str | None = None) -> Counter[str]:
    """How many words of `text` are in which language. Code, mathematics, links and tags are not read.

    A single letter is no word, except where letters are written without spaces: there two of them are one.
    """
    counts: Counter[str] = Counter()
    language_of: dict[str, str] = {}
    short: dict[str, _Piece] = {}
    detector = _detector(_candidates(target))
    for piece in _pieces(text):
        before = short.pop(piece.script, None)
        whole = (
            piece if before is None else _Piece(piece.script, f"{before.text} {piece.text}", before.words + piece.words)
        )
        if len(whole.text) < (_ENOUGH_UNSPACED if piece.script in _UNSPACED else _ENOUGH):
            short[piece.script] = whole
            continue
        language_of[piece.script] = _language(whole, target, detector)
        counts[language_of[piece.script]] += whole.words
    for script, left in short.items():
        counts[language_of.get(script) or _language(left, target, detector)] += left.words
    return counts


def language_code(name: str) -> str:
    """A language's code as the detector spells it: "en" for "en-GB" or "EN"."""
    code = str(name).lower().replace("_", "-").partition("-")[0]
    code = _OTHER_NAMES.get(code, code)
    if code not in _known():
        raise RewardContractError(
            f"Parameter 'target_language' is {name!r}, which the detector does not know. Give an ISO 639 code, such as "
            "'en', 'es' or 'zh'."
        )
    return code


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pieces(text: str) -> list[_Piece]:
    prose = _NOT_PROSE.sub(" ", outside_code(text))
    return [piece for sentence in _SENTENCE_END.split(prose) for piece in _by_script(sentence)]


def _by_script(sentence: str) -> list[_Piece]:
    words: dict[str, list[str]] = {}
    for word in _WORD.finditer(sentence):
        words.setdefault(str(word.lastgroup), []).append(word[0])
    pieces = (_Piece(script, " ".join(found), _count(script, found)) for script, found in words.items())
    return [piece for piece in pieces if piece.words]


def _count(script: str, words: list[str]) -> int:
    if script in _UNSPACED:
        return sum((len(word) + 1) // 2 for word in words)
    return sum(len(word) > 1 for word in words)


# ── languages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _language(piece: _Piece, target: str | None, detector: LanguageIdentifier) -> str:
    """The likeliest language, or the target where that is nearly as likely."""
    if piece.script == "han" and _KANA.search(piece.text):
        return "ja"
    if only := _ONLY_LANGUAGE.get(piece.script):
        return only
    language, likelihood = detector.classify(piece.text)
    if target is not None and language != target:
        as_well = dict(detector.rank(piece.text))[target] >= _NEARLY * likelihood
        return target if as_well else str(language)
    return str(language)


def _candidates(target: str | None) -> frozenset[str]:
    """The languages to choose from: the common ones and the target, less the target's twins."""
    if target is None:
        return COMMON
    twins = set().union(*(group for group in _TWINS if target in group))
    return (COMMON - twins) | {target}


@functools.lru_cache(maxsize=16)
def _detector(languages: frozenset[str]) -> LanguageIdentifier:
    detector = copy.copy(_all_languages())  # the tables are shared, the choice of languages is not
    detector.set_languages(sorted(languages))
    return detector


@functools.cache
def _all_languages() -> LanguageIdentifier:
    with needs_extra("Telling languages apart", "language"):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@functools.cache
def _known() -> frozenset[str]:
    return frozenset(_all_languages().labels)
