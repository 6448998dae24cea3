# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model: it knows the problems, and is wrong in one answer of three, always the same ones."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path

from reward_kit.models import Message

_ROWS = map(json.loads, (Path(__file__).parent / "dataset.jsonl").read_text().splitlines())
_RESULTS = {row["messages"][-1]["content"]: row["ground_truth"] for row in _ROWS}


def answer(messages: Sequence[Message], draw: int) -> str:
    """The answer of this draw to the last question."""
    question = messages[-1].text
    result = _RESULTS.get(question)
    if result is None:
        return "I do not know."
    slip = zlib.crc32(f"{question} {draw}".encode()) % 3 == 0
    return f"The result is = {int(result) + slip}"
