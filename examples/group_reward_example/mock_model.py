# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model. It likes one expression best: of six answers, two are that one, and one is wrong."""

import re
from collections.abc import Sequence

from reward_kit.models import Message


def answer(messages: Sequence[Message], draw: int) -> str:
    """The expression of this draw."""
    found = re.search(r"value is (\d+)", messages[-1].text)
    n = int(found[1]) if found else 0
    return [f"{n - 1} + 1", f"{n - 2} + 2", f"{n - 1} + 1", f"2 * {n // 2} + {n % 2}", f"{n} + 1", f"{n - 3} + 3"][
        draw % 6
    ]
