# SPDX-License-Identifier: Apache-2.0
"""The words that are known beside a value, as files: what is not among them decides.

decoration.txt  adds nothing          names.txt, people.txt  what is counted or measured, and who
synonyms.txt    names that mean the same                      operations.txt, joining.txt  mathematics in words
of.txt          what "of" makes another value             denials.txt  what denies or doubts
saying.txt      who says so gives an answer                linking.txt  verbs between "the answer" and what it is
indexed.txt     kinds of numbers: the 16th prime is not 16 suppositions.txt  what may hold or not
foreign.txt, nothing.txt  some words of other languages

Units are a table of their own, in `mathematics.units`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = [
    "DECORATION",
    "DENIALS",
    "DENIALS_ABROAD",
    "DISOWNING",
    "FOREIGN",
    "INDEXED",
    "JOINING",
    "LINKING",
    "NAMES",
    "NOTHING",
    "OF",
    "OPERATIONS",
    "REFUTING",
    "SAYING",
    "SUPPOSITIONS",
    "SYNONYMS",
]

_FOLDER: Final = Path(__file__).parent


def _lines(name: str) -> list[str]:
    text = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _words(*names: str) -> frozenset[str]:
    return frozenset(word for name in names for line in _lines(name) for word in line.split())


def _pairs(name: str) -> dict[str, str]:
    """The two sides of each line, the longest left side first; of a line that ends in a colon, the right one is ""."""
    sides = (line.removesuffix(":").partition("|") for line in _lines(name))
    return dict(sorted(((left.strip(), right.strip()) for left, _, right in sides), key=lambda pair: -len(pair[0])))


DECORATION: Final = _words("decoration")
"""Words beside a value that do not change what it is."""
NAMES: Final = _words("names", "people")
"""What is counted or measured, and people, in the singular."""
SYNONYMS: Final = {word: line.split()[0] for line in _lines("synonyms") for word in line.split()}
"""Names that mean the same, and the one that stands for them."""
DENIALS: Final = _words("denials")
"""Words that deny, doubt or turn round what a phrase says."""
DISOWNING: Final = tuple(word.replace("_", " ") for line in _lines("disowning") for word in line.split())
"""Parts of words without which no clause disowns its value."""
DENIALS_ABROAD: Final = tuple(_lines("denials_abroad"))
"""What denies or doubts a value in other languages."""
REFUTING: Final = tuple(sorted(_lines("refuting"), key=len, reverse=True))
"""What is said of a value or a claim that does not hold, the longest first."""
SAYING: Final = _words("saying")
"""What someone does who gives an answer, in the plain form."""
LINKING: Final = _words("linking")
"""Words in -s that may stand between "the answer" and what it is."""
INDEXED: Final = _words("indexed")
"""Kinds of numbers, each of which is a number of its own behind an ordinal."""
SUPPOSITIONS: Final = _words("suppositions")
"""What may hold or not: a pattern, a claim."""
OF: Final = _words("of")
"""Words that make another value of what follows "of"."""
OPERATIONS: Final = _pairs("operations")
"""What is done to a value `_`, and how mathematics writes it."""
JOINING: Final = _pairs("joining")
"""Words between two values, and their sign."""
FOREIGN: Final = _pairs("foreign")
"""Words of other languages, and what they are in English."""
NOTHING: Final = frozenset(_lines("nothing"))
"""What says in another language that there is no solution."""
