# SPDX-License-Identifier: Apache-2.0
r"""Find the answer that a text gives.

What a text marks as its answer is its answer; without a mark, its last statement is. In this order:

    <answer>…</answer>   \boxed{…}   #### …   "the answer is …"   the last sentence that states a value

A mark that is cut off counts as far as it goes. What the text takes back afterwards ("Wait, that is wrong. It is 6.")
is not its answer, and neither is what it denies, asks, supposes or only mentions: `statements` tells these apart. A
text that states nothing gives no answer. What a model thought aloud is not its answer. Each scan passes over the text
once.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Final, Literal

from reward_kit.answers.quantities import find_quantities
from reward_kit.answers.reasoning import without_reasoning
from reward_kit.answers.statements import (
    FORMULA,
    Statement,
    inside,
    is_aside,
    is_denied,
    is_setting,
    sentences,
    statement_in,
    statement_in_masked,
    values_in,
    without_references,
)

__all__ = [
    "Answer",
    "FoundBy",
    "last_match",
    "marked_answers",
    "reconsidered_at",
    "spoken_end",
    "stated_answer",
    "unboxed",
]

FoundBy = Literal["tag", "boxed", "hashes", "phrase", "last line"]

_TAGS: Final = re.compile(r"<(/?)answer>", re.IGNORECASE)
_BRACES: Final = re.compile(r"\\[{}]|\\(?:boxed|fbox)\s{0,4}\{|[{}]")
_HASHES: Final = re.compile(r"####[ \t]*([^\s][^\n]*)")
_PHRASE: Final = re.compile(
    r"\b(?P<noun>answers?|result|solutions?)\b(?:\s(?:to|for|of)\s[^.\n:=?!]{1,60}?(?=\s(?:is|are|was)\b))?[\s*_]{0,4}"
    r"(?:is|are|was|equals|would be|will be|must be|should be|=|:)(?!\w|n['’])[\s*_]{0,4}(?:equal to|equals|:|=)?"
    r"|(?P<final>\bfinal\sanswer)\s{0,2}[-–—]\s",
    re.IGNORECASE,
)
_NOUNS: Final = ("answer", "result", "solution")
"""Without one of these nothing leads to an answer."""
_OVERRIDES: Final = re.compile(
    r"\b(?:final|correct|corrected|right|actual|true|revised|updated|real)\s(?:final\s)?(?:answer|result|value"
    r"|solution)\b",
    re.IGNORECASE,
)
"""A phrase that has the last word, even after a box."""
_FILLER: Final = re.compile(
    r"[\s*_:]{0,4}(?:as\sfollows|shown|given|found|obtained|below|above|to\s\w|in\s(?:the|step|part|equation)"
    r"|on\spage|by\s|"
    r"explained|derived|computed\sby|calculated\sby|based|straightforward|simple|easy|complete|correct\b"
    r"|right\b|wrong\b|"
    r"incorrect\b|clear|unique\b|therefore\s?$|thus\s?$|not\b|n['’]t)",
    re.IGNORECASE,
)
"""What goes on like this after "the answer is" says something about the answer, and not the answer."""
_SUPPOSES: Final = re.compile(
    r"\b(?:if|whether|might|may|could|tempting|wrong|incorrect|mistaken(?:ly)?|erroneous(?:ly)?|suppose|unless"
    r"|students|people|"
    r"common|naive(?:ly)?|at first|initially|first thought|originally|thought|guess(?:ed)?|claim(?:s|ed)?"
    r"|intermediate|partial|previous|"
    r"earlier|tom|friend|classmate|sample|example)\b[^.;\n]{0,60}\Z",
    re.IGNORECASE,
)
_RETRACTS: Final = re.compile(
    r"\b(?:(?:that|this|it|which|my answer|the answer above|above)(?:['’]s|\sis|\swas)\s(?:\w+\s)?(?:wrong"
    r"|incorrect|not\s(?:right|correct)|a mistake|an error)"
    r"|(?:that|this|it)\s(?:isn|wasn|can)['’]t\s(?:be\s)?(?:right|correct)|(?:that|this|it)\scan(?:not"
    r"|\snot)\sbe\s(?:right|correct)"
    r"|I\s(?:have\s)?(?:made|see|found|spotted|notice[d]?)\s(?:a|an|my|the)\s(?:\w+\s)?(?:mistake|error)"
    r"|scratch that|strike that|I was wrong|my mistake|"
    r"correction|oops|disregard|ignore (?:that|the)|take that back|I miscalculated|I misread|I miscounted)\b",
    re.IGNORECASE,
)
"""Who says so has no answer, until another one comes."""
_RECONSIDERS: Final = re.compile(
    r"\b(?:wait|actually|hold on|hmm+|sorry|on second thought|or rather|I meant?|let me (?:re\w+|correct|fix)|"
    r"upon (?:re\w+|closer)|after re\w+|revised|instead|should (?:actually )?(?:be|have been))\b|\b(?:edit|update):"
    r"|(?:^|[.!?,;:—-]\s?|\n)no\b(?=[,.:;!—-])",
    re.IGNORECASE,
)
_CONFIRMS: Final = re.compile(
    r"\b(?:yes|confirmed|confirms|checks out|(?:is|was) (?:indeed )?(?:right|correct|consistent|fine)"
    r"|correct\.|stands|verified|matches|same)\b",
    re.IGNORECASE,
)
_NOT_A_VALUE: Final = re.compile(r"\s*(?:not|n['’]t|never)\b[^.]{0,30}[\d$\\]", re.IGNORECASE)
_BUT: Final = re.compile(
    r"(?:not|n['’]t)\s(?:[^.,;\n]{1,30}),?\s(?:but|rather|it['’]s|it is)\s(?:rather\s|actually\s)?", re.IGNORECASE
)
_SENTENCE_END: Final = re.compile(r"(?:[.?]|!(?!\s?[=*+/<>]\s?[\d\\(]))(?=[\s*]|$)|\n")
_MATH: Final = re.compile(FORMULA, re.DOTALL)
_DISPLAYED: Final = re.compile(r"\$\$[^$]{1,2000}\$\$|\\\[(?:(?!\\\]).){1,2000}\\\]", re.DOTALL)
_OPEN_BOX: Final = re.compile(r"\\(?:boxed|fbox)\s{0,4}\{")
_END_OF_FORMULA: Final = re.compile(r"\$|\n|\\[\])]")
_CLAUSES: Final = re.compile(r"(?<=[.!?;])\s+|\b(?:but|however|therefore|hence|thus)\b", re.IGNORECASE)
"""What a supposition does not reach beyond."""
_NEAR: Final = 120
"""Characters before and after an answer that may deny or suppose it."""
_BESIDE: Final = 40
"""Characters before a box that may deny it."""
_FEW_WORDS: Final = 4
_ADVERB: Final = re.compile(
    r"\A(?:(?:thus|therefore|then|hence|indeed|simply|just|exactly|clearly|now),?\s)+", re.IGNORECASE
)
_ROUNDED: Final = re.compile(
    r",\s(?:which|and|or)\s(?:\w+\s)?(?:rounds?|rounded|gives|makes|simplifies|reduces)\b", re.IGNORECASE
)
_CHOOSES: Final = re.compile(
    r"\b(?:choose|pick|select|option|choice|go with)\b(?:\sis|:)?\s(?:option\s"
    r"|choice\s)?[*(]{0,3}([A-J])\b[*).]{0,4}\Z",
    re.IGNORECASE,
)
_CITES: Final = re.compile(
    r"[\s,(]{1,3}(?:(?:by|from|see|using|in|per|via|with|cf\.?|as|shown|given|according|to|of|the)\s?){1,4}\Z",
    re.IGNORECASE,
)
"""What leads from an answer to where it was shown."""
_EMPTY: Final = re.compile(r"[(\[]\s*(?:[)\]]|\Z)")
_VERDICT: Final = re.compile(r"[\s*_]{0,4}(yes|no|true|false)\b[*_]{0,3}[,.:;!—-]", re.IGNORECASE)
_CONTINUES: Final = re.compile(r"\A[.,;:!)*_]{1,4}\s+")
_SHORT_WORD: Final = re.compile(r"(?<![\w\\])(?:[Ss]o|[Ii]s|[Ii]t|[Ww]e|[Nn]o|[Aa]s|[Bb]y|[Ii]f|[Hh]e|[Oo]r)(?![\w])")
_BETWEEN: Final = re.compile(
    r"(?:[\s$,;&]|\\[()\[\],; ]|\\q?quad|\\(?:text|mbox)\s?\{\s*(?:and|or|,)\s*\}|\band\b|\bor\b)*", re.IGNORECASE
)
_JOINING: Final = re.compile(r"\s{0,3}(?:[,;]\s{0,3}(?:and\b|or\b)?|and\b|or\b)\s{0,3}", re.IGNORECASE)
_ASIDE: Final = re.compile(
    r",\s(?=[A-Za-z]{2})(?!(?:and|or)\b)|\bbecause\b|\bsince\b|\bso\b|,?\s(?:(?:and|but)\snot|rather\sthan|instead\sof)\b"
)
_REMARK: Final = re.compile(r"\s\((?!or\b|and\b)[^()]{0,80}[A-Za-z]{3}[^()]{0,80}\)\s?\Z")
"""Words in brackets behind an answer: "64 (that is, 4 cubed)"."""
_FREE: Final = 80
"""Characters of a line without a number that may be an answer in words."""
_LONGEST_BETWEEN: Final = 60
_NAME_OF_BOX: Final = re.compile(
    r"((?:\\?[A-Za-z]{1,7}(?:_\w|_\{\w+\})?|[A-Za-z]{3,12}))[\s$]*(?:=|\b(?:is|are|equals)\b)[\s$]*\Z"
)
"""The name whose value a box is."""
_LONGEST_LINE: Final = 2_000
"""Of a longer line, the end is read."""
LONGEST_TEXT: Final = 200_000
"""Of a longer text, the end is searched: that is where answers are."""
_REFUSES: Final = re.compile(
    r"\bI(?:'m| am) (?:sorry|afraid|unable|not (?:able|sure))|\bas an AI\b"
    r"|\bI (?:can(?:'t|not| not)|could(?:n't| not)|do(?:n't| not) know)",
    re.IGNORECASE,
)
"""A line that says so gives no answer, whatever numbers it mentions."""
_REFUSING: Final = ("not", "n't", "sorry", "afraid", "unable", "as an ai")
"""Without one of these no line refuses."""
_ITEM: Final = r"(?:[A-Za-z]\w{0,3}\s?=\s?)?[$\\]{0,2}-?\d[\d,.]{0,20}(?<![.,])%?"
_OFFERED: Final = re.compile(
    rf"{_ITEM}(?:(?:\s?,\s?(?:and|or)\s|\s(?:and|or|maybe|perhaps|possibly)\s(?:maybe\s)?|\s?[,;]\s){_ITEM})++(?=\W*\Z)",
    re.IGNORECASE,
)
"""Numbers side by side at the end of a line: "x = 3 or x = -3", "5, 6 and 7"."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer found in a text."""

    text: str
    """The answer itself, without its mark."""
    source: FoundBy
    """How the text marked it."""
    whole: str
    """The answer with its mark, as it stands in the text."""
    start: int
    """Where `whole` begins in `spoken_end(text)`."""

    @property
    def end(self) -> int:
        """The position in the text at which `whole` ends."""
        return self.start + len(self.whole)


def marked_answers(text: str) -> list[Answer]:
    r"""The answers in the strongest kind of explicit mark that `text` uses: tags, `\boxed`, `####`; in order."""
    spoken = spoken_end(text)
    return _tagged(spoken) or _boxed(spoken) or _hashed(spoken)


def stated_answer(text: str) -> Answer | None:
    """The one answer that `text` gives in the end; `None` if it gives none. Boxes side by side are one answer."""
    spoken = _one_line_each(spoken_end(text))
    found = _marked(spoken)
    if found is None:
        bare = _without_boxes(spoken)
        found = _after_phrase(bare) or _in_last_lines(bare)
    return _as_corrected(found, spoken) if found is not None else None


def _without_boxes(text: str) -> str:
    """`text` with its boxes blanked out, where it denies them all; as long as before."""
    for box in _boxed(text):
        text = text[: box.start] + " " * (box.end - box.start) + text[box.end :]
    return text


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
    if (named := _named(boxes, text)) is not None:
        return named
    while first and _adjacent(boxes[first - 1], boxes[first], text):
        first -= 1
    if first == len(boxes) - 1:
        return boxes[-1]
    if len({box.text for box in boxes[first:]}) == 1:
        return boxes[-1]
    parts = [boxes[first].text]
    for before, box in zip(boxes[first:], boxes[first + 1 :], strict=False):
        either = re.search(r"\bor\b", text[before.end : box.start], re.IGNORECASE)
        parts.append(f"{' or' if either else ','} {box.text}")
    start = boxes[first].start
    return Answer("".join(parts), "boxed", text[start : boxes[-1].end], start)


def _named(boxes: list[Answer], text: str) -> Answer | None:
    """Boxes around the values of several names, `x = \\boxed{3}, y = \\boxed{5}`; `None` where there are none."""
    parts: list[str] = []
    start = end = boxes[-1].end
    for box in reversed(boxes):
        name = _NAME_OF_BOX.search(text, max(0, box.start - _LONGEST_BETWEEN), box.start)
        if name is None or (parts and not _BETWEEN.fullmatch(text, box.end, start)):
            break
        parts.insert(0, f"{name[1].strip()} = {box.text}")
        start = name.start(1)
    names = {part.partition(" =")[0] for part in parts}
    if len(parts) == 1 or len(names) < len(parts) or not parts:
        return None
    return Answer(", ".join(parts), "boxed", text[start:end], start)


def _adjacent(before: Answer, box: Answer, text: str) -> bool:
    between = text[before.end : box.start]
    return len(between) <= _LONGEST_BETWEEN and _BETWEEN.fullmatch(between) is not None


def _answer(text: str, source: FoundBy, outer: tuple[int, int], inner: tuple[int, int]) -> Answer:
    return Answer(text[slice(*inner)].strip(), source, text[slice(*outer)], outer[0])


def _may_be_tagged(text: str) -> bool:
    return "<" in text and "answer>" in text.lower()


def _tagged(text: str) -> list[Answer]:
    if not _may_be_tagged(text):
        return []
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


def _marked(text: str) -> Answer | None:
    """The last mark of the strongest kind, unless the text denies it; boxes side by side are one."""
    if _may_be_tagged(text) and (tags := _tagged(text) or _cut_off_tag(text)):
        return tags[-1]
    boxes = _boxed(text)
    cut_off = _cut_off_box(text, boxes[-1].end if boxes else 0)
    if cut_off is not None:
        return cut_off
    while boxes:
        found = _together(boxes, text)
        if not _taken_away(text, found):
            return found
        boxes = [box for box in boxes if box.start < found.start]
    hashed = _hashed(text)
    return hashed[-1] if hashed else None


def _taken_away(text: str, found: Answer) -> bool:
    """Whether the sentence around a box denies it: "The answer is not \\boxed{5}"."""
    before = text[max(0, found.start - _BESIDE) : found.start]
    after = text[found.end : found.end + _NEAR].lstrip("$")
    return is_denied(f"{before}0{after}", len(before), len(before) + 1)


def _cut_off_tag(text: str) -> list[Answer]:
    opened = last_match(_TAGS, text)
    if opened is None or opened.group(1) or not text[opened.end() :].strip():
        return []
    return [_answer(text, "tag", (opened.start(), len(text)), (opened.end(), len(text)))]


def _cut_off_box(text: str, after: int) -> Answer | None:
    """A box that the text opens after `after` and never closes: all of it, never its tail alone."""
    opened = _OPEN_BOX.search(text, after)
    if opened is None:
        return None
    end = _END_OF_FORMULA.search(text, opened.end())
    return _answer(text, "boxed", (opened.start(), len(text)), (opened.end(), end.start() if end else len(text)))


def _one_line_each(text: str) -> str:
    """`text` with every displayed formula on a line of its own; as long as before."""
    return _DISPLAYED.sub(lambda found: found[0].replace("\n", " "), text) if "\n" in text else text


def _as_corrected(found: Answer, text: str) -> Answer | None:
    """What a text says instead of `found` after it, if it takes it back; `None` if it takes it back for nothing."""
    rest = text[found.end :]
    if not rest.strip(" \n.$*_`)]\\"):
        return found
    retracted = _RETRACTS.search(rest)
    cue = reconsidered_at(rest)
    denied = _denial_of(found, rest)
    final = last_match(_OVERRIDES, rest)
    if cue is None and denied is None and final is None:
        return found
    at = found.end + min(one for one in (cue, denied, final and final.start()) if one is not None)
    instead = _after_phrase(text, at) or _in_last_lines(text, at, direct=True)
    if instead is not None and (final or denied is not None or not _CONFIRMS.search(rest)):
        return instead
    return None if (retracted is not None or denied is not None) and not _CONFIRMS.search(rest) else found


def reconsidered_at(text: str) -> int | None:
    """Where a text begins to take back what was said before it: "Wait, no", "I made a mistake"."""
    cues = [cue.start() for cue in (_RETRACTS.search(text), _RECONSIDERS.search(text)) if cue is not None]
    return min(cues, default=None)


def _denial_of(found: Answer, rest: str) -> int | None:
    """Where the text says afterwards that just this answer is none."""
    if not any(map(str.isdigit, found.text)):
        return None
    for value in values_in(rest):
        same = value.text.rpartition("=")[2].strip() == found.text.rpartition("=")[2].strip()
        if same and is_denied(rest, value.start, value.end):
            return value.start
    return None


def _after_phrase(text: str, begin: int = 0) -> Answer | None:
    """What the last "the answer is" leads to, that is neither supposed nor asked nor only talked about."""
    lower = text[begin:].lower()
    cues = [at for at in map(lower.find, _NOUNS) if at >= 0]
    if not cues:
        return None
    begin += max(0, min(cues) - len("final ")) if len(lower) == len(text) - begin else 0
    for phrase in reversed(list(_PHRASE.finditer(text, begin))):
        line = text.rfind("\n", 0, phrase.start()) + 1
        before = text[max(line, phrase.start() - _NEAR) : phrase.start()]
        if _SUPPOSES.search(before) and _SUPPOSES.search(_CLAUSES.split(before)[-1]):
            continue
        found = _stated_after(text, phrase)
        if found is None or _is_taken_from(text, phrase, found):
            continue
        if phrase["final"] or phrase["noun"].lower().startswith("answer") or phrase.group().rstrip(" *_").endswith(":"):
            return found
        return _in_last_lines(text, found.end, direct=True) or found
    return None


def _is_taken_from(text: str, phrase: re.Match[str], found: Answer) -> bool:
    """Whether the sentence denies what it says the answer is: "I doubt that the answer is 5"."""
    start = text.find(found.text, phrase.end())
    return start >= 0 and is_denied(text, start, start + len(found.text))


def _stated_after(text: str, phrase: re.Match[str]) -> Answer | None:  # noqa: PLR0911 - one line per way of saying it
    formulas = _formulas_from(text, phrase.end())
    if formulas:
        whole = text[phrase.start() : formulas[-1].end()]
        return Answer(_listed(formulas, text), "phrase", whole, phrase.start())
    end = _SENTENCE_END.search(text, phrase.end())
    span = text[phrase.end() : end.start() if end else len(text)][:_LONGEST_LINE]
    if end is not None and end.group() == "?":
        return None
    if (but := _BUT.match(span.lstrip())) is not None:
        span = span.lstrip()[but.end() :]
    elif _NOT_A_VALUE.match(span):
        return None
    elif _FILLER.match(span):
        stated = statement_in(phrase.group() + span)
        return Answer(stated.text, "phrase", phrase.group() + span, phrase.start()) if stated is not None else None
    if _ROUNDED.search(span) and (stated := statement_in(span)) is not None:
        return Answer(stated.text, "phrase", phrase.group() + span, phrase.start())
    if (cue := reconsidered_at(span)) is not None and (instead := statement_in(span[cue:])) is not None:
        return Answer(instead.text, "phrase", phrase.group() + span, phrase.start())
    if _RETRACTS.search(span) is not None:
        return None
    statement = _uncited(_ADVERB.sub("", _last_side(span).strip(" \t*_`")))
    if statement is None:
        return None
    return Answer(_pointed(statement), "phrase", phrase.group() + span, phrase.start()) if statement else None


def _uncited(statement: str) -> str | None:
    """What is said without where it stands: "24 by Theorem 2", "7 [3]"; `None` where that is all there is."""
    if statement.isdecimal() or not any(map(str.isdigit, statement)):
        return statement
    masked = without_references(statement)
    if masked == statement:
        return statement
    if not any(map(str.isdigit, masked)):
        return None
    end = len(_EMPTY.sub(lambda brackets: " " * len(brackets[0]), masked).rstrip(" .,;"))
    if end == len(statement.rstrip(" .,;")):
        return statement
    cited = _CITES.search(masked, 0, end)
    return statement[: cited.start() if cited is not None else end].strip()


def _last_side(statement: str) -> str:
    """What a computation ends in: `20 - 8 = 12 dollars` says 12 dollars. An equation in variables is kept whole."""
    before, equals, after = statement.rpartition("=")
    if not equals or re.search(r"[<>\\]$", before.rstrip()) or not after.strip():
        return statement
    return statement if re.search(r"[A-Za-z]", before) else after


def _pointed(statement: str) -> str:
    """What a remark begins with, where it goes on talking: "72 apples, since 48 + 24 is that" says 72 apples."""
    if " or " in statement or not re.search(r"[A-Za-z]{3}", statement):
        return statement
    head = _ASIDE.split(_REMARK.sub("", statement), maxsplit=1)[0].strip()
    return head if head and next(find_quantities(head), None) is not None else statement


def _in_last_lines(text: str, begin: int = 0, *, direct: bool = False) -> Answer | None:
    """What the last line says that says something; with `direct`, only what a verb or an equals sign leads to."""
    end = len(text)
    asides: list[tuple[int, str]] = []
    for line in reversed(text[begin:].splitlines(keepends=True)):
        end -= len(line)
        statement = _CONTINUES.sub("", line[-_LONGEST_LINE:].strip())
        if not statement.strip("`~|-*_ "):
            continue
        lower = statement.lower()
        if any(cue in lower for cue in _REFUSING) and _REFUSES.search(statement):
            return None
        found = _in_line(statement, alone=not text[:end].strip(), direct=direct, asides=asides, at=end)
        if found is not None:
            return Answer(found, "last line", line, end)
    if direct:
        return None
    for at, sentence in asides:  # nothing else is said: a remark may say it
        stated = statement_in(sentence)
        if stated is not None:
            return Answer(stated.text, "last line", sentence, at)
    return None


def _in_line(line: str, *, alone: bool, direct: bool, asides: list[tuple[int, str]], at: int) -> str | None:
    """What a line says: all of it where it is a formula or a few words, else what its last sentence states."""
    wordless = not re.search(r"[A-Za-z]{3}|[^\W\d_a-zA-Z\u0370-\u03ff\u3000-\uffff√π∞]{2}", _MATH.sub(" ", line))
    formulas = list(_MATH.finditer(line))
    if wordless and formulas and not any(is_denied(line, *formula.span()) for formula in formulas):
        return _listed(_last_together(formulas, line), line)
    wordless = wordless and not _SHORT_WORD.search(line)
    if wordless or (alone and len(line) <= _FREE and not any(map(str.isdigit, line))):
        statement = _last_side(line).strip()
        return statement if not line.endswith("?") and any(map(str.isalnum, statement)) else None
    for start, end in reversed(list(sentences(line))):
        sentence = line[start:end]
        if (chosen_letter := _CHOOSES.search(sentence)) is not None:
            return chosen_letter[1]
        if is_setting(sentence):
            continue
        if is_aside(sentence):
            asides.append((at, sentence))
            continue
        formulas_in = [one for one in formulas if start <= one.start() < end]
        if (found := _in_sentence(line, start, sentence, formulas_in, direct=direct)) is not None:
            return found
    return None


def _in_sentence(line: str, start: int, sentence: str, formulas: list[re.Match[str]], *, direct: bool) -> str | None:
    """What a sentence of a line says, with the formulas beside it."""
    masked = without_references(sentence)
    stated = statement_in_masked(masked)
    if stated is None:
        verdict = _VERDICT.match(sentence) if not direct else None  # No, 91 is not prime.
        return verdict[1] if verdict is not None else None
    if direct and not (stated.direct or _bare(sentence, stated)):
        return None
    ends_in_digit = next((sign for sign in reversed(masked) if sign.isalnum()), "").isdigit()
    offered = _OFFERED.search(masked) if ends_in_digit else None
    if offered is not None and offered.start() <= stated.start < offered.end():
        return offered[0]
    at = start + stated.start
    chosen = next((index for index, one in enumerate(formulas) if one.start() <= at < one.end()), None)
    if chosen is None or line[at] not in "$\\":
        return stated.text
    return _listed(_last_together(formulas[: chosen + 1], line), line)


def _bare(sentence: str, stated: Statement) -> bool:
    """Whether a sentence is nothing but its value and a few words: "No, 6 apples."."""
    return len((sentence[: stated.start] + " " + sentence[stated.end :]).split()) <= _FEW_WORDS


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
    return inside(formula[0])
