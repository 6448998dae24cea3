# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model: it adds, and is wrong in one answer of four, always the same ones."""

import re
import zlib
from collections.abc import Sequence

from reward_kit.models import Message


def answer(messages: Sequence[Message], draw: int) -> str:
    """The answer of this draw to the last question."""
    question = messages[-1].text
    slip = zlib.crc32(f"{question} {draw}".encode()) % 4 == 0
    return f"That makes {sum(map(int, re.findall(r'[0-9]+', question))) + slip}."
