# SPDX-License-Identifier: Apache-2.0
"""The stand-ins: `answer` judges, and takes a long answer for a good one; `explain` answers the questions."""

import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from reward_kit.models import Message

_ROWS = [json.loads(line) for line in (Path(__file__).parent / "dataset.jsonl").read_text().splitlines()]
_GOOD = {row["assistant_response"] for row in _ROWS if row["good"]}
_BLOCK = re.compile(r"<<<(answer(?: [AB])?) \w+>>>\n(.*?)\n<<<end \w+>>>", re.DOTALL)
_LONG = 100
"""Characters from which on an answer impresses this judge."""


def answer(messages: Sequence[Message], draw: int) -> str:
    """The verdict on the answer, or on the two answers, that the prompt shows."""
    seems_good = {name: text in _GOOD or len(text) > _LONG for name, text in _BLOCK.findall(messages[-1].text)}
    if "answer" in seems_good:
        return (
            f"It {'says' if seems_good['answer'] else 'does not say'} why.\nVERDICT: {9 if seems_good['answer'] else 2}"
        )
    first, second = seems_good["answer A"], seems_good["answer B"]
    choice = "TIE" if first == second else "A" if first else "B"
    return f"I compared them.\nVERDICT: {choice}"


def explain(messages: Sequence[Message], draw: int) -> str:
    """The answer of this draw to a question: a good one, or every third time a poor one."""
    known = [row for row in _ROWS if row["user_query"] == messages[-1].text]
    wanted = zlib.crc32(f"{messages[-1].text} {draw}".encode()) % 3 != 0
    return next((row["assistant_response"] for row in known if row["good"] is wanted), "I do not know.")
