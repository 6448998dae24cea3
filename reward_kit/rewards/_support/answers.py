r"""Find the answer that a text gives.

What a text marks as its answer is its answer; without a mark, its last statement is. In this order:

    <answer>…</answer>   \boxed{…}   #### …   "the answer is …"   the last line that has a number

What a model thought aloud (`<think>…</think>`) is not its answer. Each scan passes over the text once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from reward_kit.rewards._support.quantities import find_quantities, read_quantity

__all__ = ["Answer", "Source", "after_thinking", "marked_answers", "stated_answer"]

Source = Literal["tag", "boxed", "hashes", "phrase", "last line"]

_TAGS = re.compile(r"<(/?)answer>", re.IGNORECASE)
_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_BRACES = re.compile(r"\\[{}]|\\(?:boxed|fbox)\s{0,4}\{|[{}]")
_HASHES = re.compile(r"####[ \t]*([^\s][^\n]*)")
_PHRASE = re.compile(
    r"\b(?:answer|result)\b[\s*_]{0,4}(?:is|was|equals|would be|will be|=|:)[\s*_]{0,4}(?:equal to|equals|:|=)?",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")


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
    """Where `whole` begins in what follows the model's thoughts."""

    @property
    def end(self) -> int:
        """Where `whole` ends."""
        return self.start + len(self.whole)


def marked_answers(text: str) -> list[Answer]:
    r"""The answers in the strongest kind of explicit mark that `text` uses: tags, `\boxed`, `####`; in order."""
    spoken = after_thinking(text)
    return _tagged(spoken) or _boxed(spoken) or _hashed(spoken)


def stated_answer(text: str) -> Answer | None:
    """The one answer that `text` gives in the end; `None` if it gives none."""
    marked = marked_answers(text)
    if marked:
        return marked[-1]
    spoken = after_thinking(text)
    return _after_phrase(spoken) or _in_last_line(spoken)


def after_thinking(text: str) -> str:
    """What follows the model's thoughts; nothing, if it never finished thinking."""
    last = _last_match(_THINK, text)
    if last is None:
        return text
    return text[last.end() :] if last.group(1) else ""


def _last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    last = None
    for match in pattern.finditer(text):
        last = match
    return last


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


def _after_phrase(text: str) -> Answer | None:
    phrase = _last_match(_PHRASE, text)
    if phrase is None:
        return None
    end = _SENTENCE_END.search(text, phrase.end())
    span = text[phrase.end() : end.start() if end else len(text)]
    said = span.rpartition("=")[2].strip(" \t*_")
    return Answer(_pointed(said), "phrase", phrase.group() + span, phrase.start()) if said else None


def _pointed(said: str) -> str:
    """The number a remark begins with, where it goes on talking: "72 apples, since 48 + 24 is that" says 72."""
    if read_quantity(said) is not None or " or " in said:
        return said
    head = re.split(r",\s|\bbecause\b|\bsince\b|\bso\b", said, maxsplit=1)[0].strip()
    return head or said


def _in_last_line(text: str) -> Answer | None:
    end = len(text)
    for line in reversed(text.splitlines(keepends=True)):
        end -= len(line)
        after_equals = line.rpartition("=")[2].strip()
        if read_quantity(after_equals) is not None:
            return Answer(after_equals, "last line", line, end)
        numbers = list(find_quantities(after_equals)) or list(find_quantities(line))
        if numbers:
            pick = numbers[0] if "=" in line and after_equals else numbers[-1]
            return Answer(pick.text, "last line", line, end)
    return None
