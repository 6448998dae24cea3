# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model: it knows the problems, and is wrong in one answer of three."""

import zlib
from collections.abc import Sequence

from prepare import PROBLEMS, solution  # type: ignore[import-not-found]  # beside this file

from reward_kit.models import Message


def answer(messages: Sequence[Message], draw: int) -> str:
    """The solution of this draw."""
    for asked, _, thought, right, wrong in PROBLEMS:
        if messages[-1].text.startswith(asked):
            slip = zlib.crc32(f"{asked} {draw}".encode()) % 3 == 0
            return str(solution(thought, wrong if slip else right))
    return "I do not know."
