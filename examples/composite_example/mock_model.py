# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model: its answers are right, or lack one thing or another."""

import zlib
from collections.abc import Sequence

from number_problems import answers, problems  # type: ignore[import-not-found]  # beside this file

from reward_kit.models import Message

_ANSWERS: dict[str, list[str]] = {problem.text: list(answers(problem).values()) for problem in problems()}


def answer(messages: Sequence[Message], draw: int) -> str:
    """The answer of this draw to the last question."""
    question = messages[-1].text
    known = _ANSWERS.get(question)
    if known is None:
        return "I do not know."
    number = zlib.crc32(f"{question} {draw}".encode()) % 8
    return known[number] if number < len(known) else known[0]
