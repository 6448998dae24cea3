r"""Find the answer that a text gives.

What a text marks as its answer is its answer; without a mark, its last statement is. In this order:

    <answer>…</answer>   \boxed{…}   #### …   "the answer is …"   a last line that says something

What a model thought aloud is not its answer. Each scan passes over the text once.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Final, Literal

from reward_kit.rewards._support.quantities import find_quantities
from reward_kit.utils.reasoning import without_reasoning

__all__ = ["Answer", "Source", "last_match", "marked_answers", "spoken_end", "stated_answer", "unboxed"]

Source = Literal["tag", "boxed", "hashes", "phrase", "last line"]

_TAGS: Final = re.compile(r"<(/?)answer>", re.IGNORECASE)
_BRACES: Final = re.compile(r"\\[{}]|\\(?:boxed|fbox)\s{0,4}\{|[{}]")
_HASHES: Final = re.compile(r"####[ \t]*([^\s][^\n]*)")
_PHRASE: Final = re.compile(
    r"\b(?:answer|result|solution)\b[\s*_]{0,4}(?:is|are|was|equals|would be|will be|=|:)[\s*_]{0,4}"
    r"(?:equal to|equals|:|=)?",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[.!?](?=[\s*]|$)|\n")
_MATH: Final = re.compile(
    r"\$\$([^$]{1,2000})\$\$|\$([^$\n]{1,2000})\$|\\\((.{1,1000}?)\\\)|\\\[(.{1,1000}?)\\\]", re.DOTALL
)
_BETWEEN: Final = re.compile(
    r"(?:[\s$,;&]|\\[()\[\],; ]|\\q?quad|\\(?:text|mbox)\s?\{\s*(?:and|or|,)\s*\}|\band\b|\bor\b)*", re.IGNORECASE
)
_JOINING: Final = re.compile(r"\s{0,3}(?:[,;]\s{0,3}(?:and\b|or\b)?|and\b|or\b)\s{0,3}", re.IGNORECASE)
_ASIDE: Final = re.compile(r",\s(?=[A-Za-z]{2})(?!(?:and|or)\b)|\bbecause\b|\bsince\b|\bso\b")
_FREE: Final = 80
"""Characters of a line without a number that may be an answer in words."""
_LONGEST_BETWEEN: Final = 60
_LONGEST_LINE: Final = 2_000
"""Of a longer line, the end is read."""
LONGEST_TEXT: Final = 200_000
"""Of a longer text, the end is searched: that is where answers are."""
_COMPUTED: Final = re.compile(r"[\d)%]\s?=\s?(?=[$\d.-])")
"""What comes after it is the outcome of a computation: "a total of 9 + 6 = 15 liters of the 24"."""
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+")
_REFUSES: Final = re.compile(
    r"\bI(?:'m| am) (?:sorry|afraid|unable|not (?:able|sure))|\bas an AI\b"
    r"|\bI (?:can(?:'t|not| not)|could(?:n't| not)|do(?:n't| not) know)",
    re.IGNORECASE,
)
"""A line that says so gives no answer, whatever numbers it mentions."""
_ITEM: Final = r"(?:[A-Za-z]\w{0,3}\s?=\s?)?[$\\]{0,2}-?\d[\d,.]{0,20}(?<![.,])%?"
_OFFERED: Final = re.compile(
    rf"{_ITEM}(?:(?:\s?,\s?(?:and|or)\s|\s(?:and|or|maybe|perhaps|possibly)\s(?:maybe\s)?|\s?[,;]\s){_ITEM})++(?=\W*\Z)",
    re.IGNORECASE,
)
"""Numbers side by side at the end of a line: "x = 3 or x = -3", "5, 6 and 7"."""
_DENIED: Final = re.compile(r"(?:\bnot|n't|\bnever)(?:\s+(?:be|equal|to|the|answer))*\s*[$\\(]{0,3}\Z", re.IGNORECASE)
_GOES_ON: Final = re.compile(r"[,;:]\s|\b(?:and|so|then|thus|hence|which|giving|making|or|but)\b", re.IGNORECASE)
"""A sentence that goes on after a computation may come to another outcome."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer found in a text."""

    text: str
    """The answer itself, without its mark."""
    source: Source
    """How the text marked it."""
    whole: str
    """The answer with its mark, as it stands in the text."""
    start: int
    """Where `whole` begins in `spoken_end(text)`."""

    @property
    def end(self) -> int:
        """Where `whole` ends."""
        return self.start + len(self.whole)


def marked_answers(text: str) -> list[Answer]:
    r"""The answers in the strongest kind of explicit mark that `text` uses: tags, `\boxed`, `####`; in order."""
    spoken = spoken_end(text)
    return _tagged(spoken) or _boxed(spoken) or _hashed(spoken)


def stated_answer(text: str) -> Answer | None:
    """The one answer that `text` gives in the end; `None` if it gives none. Boxes side by side are one answer."""
    spoken = spoken_end(text)
    marked = _tagged(spoken) or _boxed(spoken) or _hashed(spoken)
    if marked:
        return _together(marked, spoken) if marked[-1].source == "boxed" else marked[-1]
    return _after_phrase(spoken) or _in_last_line(spoken)


def spoken_end(text: str) -> str:
    """What follows the model's thoughts; of very much, the end."""
    return without_reasoning(text)[-LONGEST_TEXT:]


def unboxed(text: str) -> str:
    r"""The content of the last `\boxed` in `text`, with those beside it; `text` itself where there is none."""
    if "\\boxed" not in text and "\\fbox" not in text:
        return text
    boxes = _boxed(text)
    return _together(boxes, text).text if boxes else text


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last match of a pattern in a text."""
    last: re.Match[str] | None = None
    for match in pattern.finditer(text):
        last = match
    return last


def _together(boxes: list[Answer], text: str) -> Answer:
    """The last box, joined with those before it that only commas, "and" or "or" divide from it."""
    first = len(boxes) - 1
    while first and _adjacent(boxes[first - 1], boxes[first], text):
        first -= 1
    if first == len(boxes) - 1:
        return boxes[-1]
    parts = [boxes[first].text]
    for before, box in zip(boxes[first:], boxes[first + 1 :], strict=False):
        either = re.search(r"\bor\b", text[before.end : box.start], re.IGNORECASE)
        parts.append(f"{' or' if either else ','} {box.text}")
    start = boxes[first].start
    return Answer("".join(parts), "boxed", text[start : boxes[-1].end], start)


def _adjacent(before: Answer, box: Answer, text: str) -> bool:
    between = text[before.end : box.start]
    return len(between) <= _LONGEST_BETWEEN and _BETWEEN.fullmatch(between) is not None


def _answer(text: str, source: Source, outer: tuple[int, int], inner: tuple[int, int]) -> Answer:
    return Answer(text[slice(*inner)].strip(), source, text[slice(*outer)], outer[0])


def _tagged(text: str) -> list[Answer]:
    found: list[Answer] = []
    opened: re.Match[str] | None = None
    for tag in _TAGS.finditer(text):
        if not tag.group(1):
            opened = tag
        elif opened is not None:
            found.append(_answer(text, "tag", (opened.start(), tag.end()), (opened.end(), tag.start())))
            opened = None
    return found


def _boxed(text: str) -> list[Answer]:
    """The contents of every closed `\\boxed{…}`, braces inside them paired; an inner box belongs to the outer one."""
    if "\\boxed" not in text and "\\fbox" not in text:
        return []
    closed: list[tuple[re.Match[str], re.Match[str]]] = []
    open_braces: list[re.Match[str]] = []
    for brace in _BRACES.finditer(text):
        token = brace.group()
        if token == "}" and open_braces:
            opened = open_braces.pop()
            if len(opened.group()) > 1:
                closed.append((opened, brace))
        elif token not in ("}", r"\{", r"\}"):
            open_braces.append(brace)
    found: list[Answer] = []
    for opened, brace in sorted(closed, key=lambda pair: pair[0].start()):
        if not found or opened.start() >= found[-1].end:
            found.append(_answer(text, "boxed", (opened.start(), brace.end()), (opened.end(), brace.start())))
    return found


def _hashed(text: str) -> list[Answer]:
    return [_answer(text, "hashes", match.span(), match.span(1)) for match in _HASHES.finditer(text)]


# ── statements ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _after_phrase(text: str) -> Answer | None:
    phrase = last_match(_PHRASE, text)
    if phrase is None:
        return None
    formulas = _formulas_from(text, phrase.end())
    if formulas:
        whole = text[phrase.start() : formulas[-1].end()]
        return Answer(_listed(formulas, text), "phrase", whole, phrase.start())
    end = _SENTENCE_END.search(text, phrase.end())
    span = text[phrase.end() : end.start() if end else len(text)]
    said = _last_side(span).strip(" \t*_")
    return Answer(_pointed(said), "phrase", phrase.group() + span, phrase.start()) if said else None


def _last_side(said: str) -> str:
    """What a computation ends in: `20 - 8 = 12 dollars` says 12 dollars. An equation in variables is kept whole."""
    before, equals, after = said.rpartition("=")
    if not equals or re.search(r"[<>\\]$", before.rstrip()) or not after.strip():
        return said
    return said if re.search(r"[A-Za-z]", before) else after


def _pointed(said: str) -> str:
    """What a remark begins with, where it goes on talking: "72 apples, since 48 + 24 is that" says 72 apples."""
    if " or " in said or not re.search(r"[A-Za-z]{3}", said):
        return said
    head = _ASIDE.split(said, maxsplit=1)[0].strip()
    return head if head and next(find_quantities(head), None) is not None else said


def _in_last_line(text: str) -> Answer | None:
    end = len(text)
    for line in reversed(text.splitlines(keepends=True)):
        end -= len(line)
        said = line[-_LONGEST_LINE:].strip()
        if not said.strip("`~"):
            continue
        if _REFUSES.search(said):
            return None
        found = _in_line(said, alone=not text[:end].strip())
        if found is not None:
            return Answer(found, "last line", line, end)
    return None


def _in_line(line: str, *, alone: bool) -> str | None:
    """What a line says: a formula, what an equals sign leads to, all of a short line, or its last number."""
    formulas = list(_MATH.finditer(line))
    if formulas:
        after = list(find_quantities(line[formulas[-1].end() :]))
        return after[-1].text if after else _listed(_last_together(formulas, line), line)
    if not re.search(r"[A-Za-z]{3}", line) or (alone and len(line) <= _FREE and not any(map(str.isdigit, line))):
        return _last_side(line).strip()
    return None if line.endswith("?") else _in_prose(line)


def _in_prose(line: str) -> str | None:
    """The numbers that a line of prose ends with, what its computation comes to, or its last number."""
    if (offered := _OFFERED.search(line)) is not None:
        return offered[0]
    after_equals = _last_side(line).strip()
    numbers = list(find_quantities(after_equals)) or list(find_quantities(line))
    if not numbers:
        return None
    if after_equals == line and (outcome := _outcome(line)) is not None:
        return outcome
    pick = numbers[0] if after_equals != line and after_equals else numbers[-1]
    return None if _DENIED.search(line[: line.rfind(pick.text)]) else pick.text


def _outcome(line: str) -> str | None:
    """What the computation in the last sentence with a number comes to, unless the sentence goes on from there."""
    sentence = next((one for one in reversed(_SENTENCES.split(line)) if any(map(str.isdigit, one))), "")
    computed = last_match(_COMPUTED, sentence)
    if computed is None or _GOES_ON.search(sentence, computed.end()):
        return None
    return next((quantity.text for quantity in find_quantities(sentence[computed.end() :])), None)


def _formulas_from(text: str, start: int) -> list[re.Match[str]]:
    """The formula that begins at `start`, and those after it that only commas, "and" or "or" divide from it."""
    found: list[re.Match[str]] = []
    formula = _MATH.match(text, start)
    while formula is not None:
        found.append(formula)
        between = _JOINING.match(text, formula.end())
        formula = _MATH.match(text, between.end()) if between is not None else None
    return found


def _last_together(formulas: list[re.Match[str]], text: str) -> list[re.Match[str]]:
    """The last formula, with those before it that only commas, "and" or "or" divide from it."""
    first = len(formulas) - 1
    while first and _JOINING.fullmatch(text, formulas[first - 1].end(), formulas[first].start()):
        first -= 1
    return formulas[first:]


def _listed(formulas: list[re.Match[str]], text: str) -> str:
    """Formulas side by side as one list."""
    parts = [_inside(formulas[0])]
    for before, formula in itertools.pairwise(formulas):
        either = re.search(r"\bor\b", text[before.end() : formula.start()], re.IGNORECASE)
        parts.append(f"{' or' if either else ','} {_inside(formula)}")
    return "".join(parts)


def _inside(formula: re.Match[str]) -> str:
    return next(group for group in formula.groups() if group is not None).strip()
