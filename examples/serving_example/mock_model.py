# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model: it multiplies, and is wrong in one answer of three, always the same ones."""

import math
import re
import zlib
from collections.abc import Sequence

from reward_kit.models import Message


def answer(messages: Sequence[Message], draw: int) -> str:
    """The answer of this draw to the last question."""
    question = messages[-1].text
    slip = zlib.crc32(f"{question} {draw}".encode()) % 3 == 0
    return f"It is {math.prod(map(int, re.findall('[0-9]+', question))) - slip}."
