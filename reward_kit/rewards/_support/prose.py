# SPDX-License-Identifier: Apache-2.0
"""What of an answer is prose: text outside code, and its words with typography taken away."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["ALONE_AFTER", "ALONE_BEFORE", "outside_code", "plain_words"]

_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_TICKS = re.compile(r"`+")

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts written without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han."""
ALONE_BEFORE = rf"(?<![^\W{_UNSPACED}])(?<!['’-])"
"""Nothing of a word comes before: the `B` in `答案是B` stands alone."""
ALONE_AFTER = rf"(?![^\W{_UNSPACED}])(?!['’-])"
"""Nothing of a word comes after."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_LETTER = re.compile(r"[^\W_]")
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_ACCENT = re.compile("[\u0300-\u036f]")
_LONGEST_WORD = 40


def outside_code(text: str) -> str:
    """`text` without fenced blocks and inline code. A fence that is never closed runs to the end."""
    if "`" not in text and "~~~" not in text:
        return text
    kept: list[str] = []
    position, opening = 0, ""
    for line in _FENCE.finditer(text):
        fence, info = line["fence"], line["info"]
        if opening:
            if fence.startswith(opening) and not info.strip():
                position, opening = line.end(), ""
        elif "`" not in info or fence[0] == "~":
            kept.append(text[position : line.start()])
            opening = fence
    prose = "\n".join(kept if opening else [*kept, text[position:]])
    return "\n".join(_without_inline_code(line) if "`" in line else line for line in prose.split("\n"))


def _without_inline_code(line: str) -> str:
    """The line without what stands between two runs of equally many backticks."""
    ticks = list(_TICKS.finditer(line))
    closing: dict[int, int] = {}
    next_of_length: dict[int, int] = {}
    for index in reversed(range(len(ticks))):
        length = len(ticks[index][0])
        if length in next_of_length:
            closing[index] = next_of_length[length]
        next_of_length[length] = index
    kept: list[str] = []
    position = index = 0
    while index < len(ticks):
        if index in closing:
            kept.append(line[position : ticks[index].start()])
            index = closing[index]
            position = ticks[index].end()
        index += 1
    return " ".join([*kept, line[position:]])


def plain_words(text: str, *, by_letter: bool = False) -> list[str]:
    """The words of `text`, alike however they are dressed: case, accents, full-width forms, invisible characters.

    What has no words is told apart by its characters: scripts without spaces, a run of letters longer than any word,
    a text that is mostly symbols, and everything with `by_letter`.
    """
    text = _undressed(text)
    if by_letter:
        return _LETTER.findall(text)
    words = _WORD.findall(text)
    if 2 * sum(map(len, words)) < sum(map(len, text.split())):
        return list("".join(text.split()))
    if max(map(len, words), default=0) <= _LONGEST_WORD:
        return words
    return [part for word in words for part in ([word] if len(word) <= _LONGEST_WORD else word)]


def _undressed(text: str) -> str:
    if text.isascii():
        return text.casefold()
    bare = _ACCENT.sub("", unicodedata.normalize("NFKD", _INVISIBLE.sub("", text)))
    return unicodedata.normalize("NFC", bare).casefold()
