# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model in the middle of its training: it adds, and forgets to carry in one answer of three."""

import re
import zlib
from collections.abc import Sequence

from reward_kit.models import Message


def answer(messages: Sequence[Message], draw: int) -> str:
    """The answer of this draw to the last question."""
    question = messages[-1].text
    first, second = map(int, re.findall("[0-9]+", question))
    forgets = zlib.crc32(f"{question} {draw}".encode()) % 3 == 0
    carried = 0 if forgets else 10 * ((first % 10 + second % 10) // 10)
    return f"{first} + {second} = {(first // 10 + second // 10) * 10 + carried + (first + second) % 10}"
