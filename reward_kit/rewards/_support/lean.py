# SPDX-License-Identifier: Apache-2.0
"""The structure of Lean 4 text, as far as it can be seen without Lean: declarations, statements, forbidden words.

None of this says that a proof is right. Every scan passes over the text once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Declaration", "declarations", "forbidden_word", "lean_code", "plain", "same_statement"]

_FENCE = re.compile(r"^[ \t]*```(?P<info>[^\n`]*)$", re.MULTILINE)
_COMMENT_OR_TEXT = re.compile(r'--[^\n]*|/-|-/|"(?:[^"\\]|\\.)*+"', re.DOTALL)
_DECLARATION = re.compile(
    r"^[ \t]*(?:@\[[^\]\n]{0,200}\][ \t]*)?(?:(?:private|protected|noncomputable)[ \t]+)*"
    r"(?P<kind>theorem|lemma|example|def|abbrev|instance|structure|inductive|end|namespace|section)\b[ \t]*"
    r"(?P<name>[^\s({\[:⦃]*)",
    re.MULTILINE,
)
_PROVABLE = frozenset({"theorem", "lemma", "example"})
_WORD = re.compile(r"#?[^\W\d][\w.!?']*|#\w+")
_OPENING, _CLOSING = frozenset("([{⟨⦃"), frozenset(")]}⟩⦄")
_SPACE = re.compile(r"\s++")
_BESIDE_SIGNS = re.compile(r" ?([^\w\s]) ?")

INCOMPLETE = frozenset({"sorry", "admit", "sorryAx", "stop", "admitted"})
"""Words that leave something unproved."""
POWERFUL = frozenset({
    "#",
    "axiom", "constant", "opaque", "unsafe", "partial", "macro", "macro_rules", "syntax", "notation", "infix", "infixl",
    "infixr", "prefix", "postfix", "elab", "elab_rules", "run_cmd", "run_tac", "run_meta", "run_elab", "initialize",
    "builtin_initialize", "declare_syntax_cat", "implemented_by", "extern", "csimp", "native_decide", "ofReduceBool",
    "addDecl", "unsafeCast", "lcProof", "import", "export",
})  # fmt: skip
"""Words that could change what a check means, or run code while it is made; `#` stands for all `#` commands."""


class Declaration(NamedTuple):
    """A theorem, lemma or example."""

    name: str
    statement: str
    """What stands between the name and `:=`, with single spaces."""
    proof: str
    """What stands after `:=`."""
    start: int
    """Where it begins in the text."""


def lean_code(text: str) -> str:
    """The code in an answer: its last Lean block, else its last block without a language, else the whole text."""
    marks = list(_FENCE.finditer(text))
    blocks = [
        (opening["info"].strip().lower(), text[opening.end() : closing.start()].strip("\n"))
        for opening, closing in zip(marks[::2], marks[1::2], strict=False)
    ]
    for wanted in ({"lean", "lean4"}, {""}):
        chosen = [code for info, code in blocks if info in wanted]
        if chosen:
            return chosen[-1]
    return text


def plain(code: str) -> str:
    """The code with its comments taken away; an unfinished comment takes the rest with it.

    Where this and Lean disagree on what is a comment, what counts is this: it is what Lean is given.
    """
    kept: list[str] = []
    depth = position = 0
    for found in _COMMENT_OR_TEXT.finditer(code):
        token = found.group()
        if depth == 0:
            kept.append(code[position : found.start()])
            kept.append(token if token[0] == '"' else " ")
        depth = depth + 1 if token == "/-" else max(0, depth - 1) if token == "-/" else depth
        position = found.end()
    return "".join(kept if depth else [*kept, code[position:]])


def declarations(code: str) -> list[Declaration]:
    """The theorems, lemmas and examples in plain code that have a proof."""
    found = list(_DECLARATION.finditer(code))
    ends = [*(later.start() for later in found[1:]), len(code)]
    made = [_declaration(match, code, end) for match, end in zip(found, ends, strict=False)]
    return [declaration for declaration in made if declaration is not None]


def _declaration(match: re.Match[str], code: str, end: int) -> Declaration | None:
    split = _definition_sign(code, match.end(), end) if match["kind"] in _PROVABLE else None
    if split is None:
        return None
    proof = code[split + 2 : end].strip()
    return Declaration(match["name"], _spaced(code[match.end() : split]), proof, match.start()) if proof else None


def _definition_sign(code: str, start: int, end: int) -> int | None:
    """Where the `:=` stands that belongs to the declaration, and not to a default argument in its brackets."""
    depth = 0
    for at in range(start, end - 1):
        character = code[at]
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif depth == 0 and character == ":" and code[at + 1] == "=":
            return at
    return None


def forbidden_word(code: str, words: frozenset[str] = INCOMPLETE | POWERFUL) -> str | None:
    """The first forbidden word in plain code; a part of a dotted name counts too."""
    for found in _WORD.finditer(code):
        word = found.group()
        if word[0] in words or any(part in words for part in word.split(".")):
            return word
    return None


def same_statement(wanted: Declaration, made: Declaration) -> bool:
    """Whether two declarations state the same, as written, spaces apart."""
    return _BESIDE_SIGNS.sub(r"\1", wanted.statement) == _BESIDE_SIGNS.sub(r"\1", made.statement)


def _spaced(text: str) -> str:
    return _SPACE.sub(" ", text).strip()
