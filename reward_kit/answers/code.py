# SPDX-License-Identifier: Apache-2.0
"""The code in an answer: which fenced blocks there are, and which of them is the solution.

    text ─▶ blocks, in order ─▶ the last one in the language that defines what is tested, or that reads input

Linear in the length of the answer.
"""

from __future__ import annotations

import ast
import functools
import re
import threading
import warnings
from typing import NamedTuple

from reward_kit.answers.reasoning import without_reasoning

__all__ = ["Block", "code_blocks", "completed", "defines", "find_code", "parses"]

_OPENING = re.compile(r"[ \t]{0,8}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^\n`]*$")
_ALIASES = {
    "python": frozenset({"python", "py", "python3", "python2", "py3"}),
    "javascript": frozenset({"javascript", "js", "node", "nodejs", "mjs"}),
    "cpp": frozenset({"cpp", "c++", "cc", "cxx", "cplusplus", "c"}),
    "c": frozenset({"c", "c89", "c99", "c11", "c17", "c23", "ansic"}),
}
_READS_INPUT = re.compile(
    r"\binput\s*\(|\bsys\.stdin\b|\bstdin\b|\bopen\(0\b|\bos\.read\(0\b|\bcin\b|\bscanf\b|\bgetline\b"
    r"|\bgetchar\b|\breadline\s*\("
)
_LONGEST_PARSED = 1 << 20
_WARNINGS = threading.Lock()
"""Held while warnings are off, which they are for all threads at once."""


class Block(NamedTuple):
    """A block of code between fences (three backticks), with the language that the fence names."""

    code: str
    language: str
    """What the fence says, in lower case; empty when it says nothing."""


def code_blocks(text: str) -> list[Block]:
    """Every fenced block of a text; one that is never closed goes to the end."""
    found: list[Block] = []
    fence, language = "", ""
    lines: list[str] = []
    for line in text.splitlines():
        opening = _OPENING.match(line)
        if not fence:
            if opening:
                fence, language, lines = opening["fence"], opening["language"].lower(), []
        elif opening and not opening["language"] and opening["fence"].startswith(fence):
            found.append(Block("\n".join(lines).strip("\n"), language))
            fence = ""
        else:
            lines.append(line)
    if fence and any(map(str.strip, lines)):
        found.append(Block("\n".join(lines).strip("\n"), language))
    return found


def find_code(answer: str, language: str = "python", *names: str) -> str | None:
    """The solution in an answer, after what was thought aloud; None where there is no code.

    Of the blocks that say they are in the language (or, if none does, of those that say nothing): the last one of those
    that define most of `names`; without names, the last one that reads input; else the last. An answer without blocks
    is code where it is valid Python.
    """
    spoken = without_reasoning(answer)
    blocks = code_blocks(spoken)
    called = _ALIASES.get(language.lower(), frozenset({language.lower()}))
    in_language = [block.code for block in blocks if block.language in called]
    candidates = in_language or [block.code for block in blocks if not block.language]
    if not candidates:
        bare = spoken.strip("\n")
        return bare if not blocks and bare.strip() and language.lower() in _ALIASES["python"] and parses(bare) else None
    return max(reversed(candidates), key=functools.partial(_fitness, names=names))


def _fitness(code: str, names: tuple[str, ...]) -> int:
    if not names:
        return bool(_READS_INPUT.search(code))
    return sum(defines(code, name) for name in names)


def defines(code: str, name: str) -> bool:
    """Whether a source gives a meaning to a name (of `Solution().solve`, the first one)."""
    first = re.escape(re.split(r"\W", name, maxsplit=1)[0])
    declared = rf"^[ \t]*(?:async[ \t]+)?(?:def|class|function)[ \t]+{first}\b"
    assigned = rf"^[ \t]*(?:const |let |var )?{first}[ \t]*="
    return bool(re.search(f"{declared}|{assigned}", code, re.MULTILINE))


def parses(code: str) -> bool:
    """Whether Python can parse `code`. Nothing is run; a very long text counts as no Python."""
    if len(code) > _LONGEST_PARSED:
        return False
    try:
        with _WARNINGS, warnings.catch_warnings(action="ignore"):
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def completed(answer: str, prompt: str | None, *names: str) -> str | None:
    """The whole program of an answer that may only continue the code in `prompt`, as completions of HumanEval do.

    One that defines the function anew still finds what the prompt imports and defines beside it.
    """
    code = find_code(answer, "python", *names)
    if prompt is None or not any(defines(prompt, name) for name in names):
        return code
    if code is None or not any(defines(code, name) for name in names):
        return _joined(prompt, code if code is not None else without_reasoning(answer))
    if not parses(code):
        return _joined(prompt, code)
    whole = f"{prompt.rstrip()}\n\n\n{code}"
    return whole if parses(prompt) and _compiles(whole) else code


def _compiles(code: str) -> bool:
    """Whether it is a program; one whose `from __future__` does not come first only parses."""
    return "from __future__" not in code and parses(code)


def _joined(prompt: str, code: str) -> str:
    """A body after its head. Where the answer's body lost its indentation, it gets it back."""
    if code[:1].strip():
        indented = prompt + "\n".join("    " + line if line.strip() else line for line in code.splitlines())
        if parses(indented):
            return indented
    return prompt + code
