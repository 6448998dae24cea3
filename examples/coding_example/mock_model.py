# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model: it knows the families, and gives a wrong solution in two answers of five."""

import zlib
from collections.abc import Sequence

from code_families import problems  # type: ignore[import-not-found]  # beside this file

from reward_kit.models import Message

_KNOWN = {problem.statement: problem for problem in problems()}


def answer(messages: Sequence[Message], draw: int) -> str:
    """The answer of this draw to the last question."""
    question = messages[-1].text.rpartition(" Give the whole ")[0]
    problem = _KNOWN.get(question)
    if problem is None:
        return "I do not know."
    number = zlib.crc32(f"{question} {draw}".encode()) % 5
    code = problem.wrong[number] if number < len(problem.wrong) else problem.right
    return f"This should do it:\n\n```python\n{code}\n```"
