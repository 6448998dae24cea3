# SPDX-License-Identifier: Apache-2.0
"""The reward of this example. Actors on other nodes import it, so it stands in a file of its own."""

from __future__ import annotations

import re
from typing import Any

from reward_kit import EvaluateResult, Message, reward_function


@reward_function
def mentions_the_answer(messages: list[Message], ground_truth: str | None = None, **kwargs: Any) -> EvaluateResult:
    """1.0 where one of the numbers in the reply is the right one."""
    numbers = re.findall(r"-?\d+", messages[-1].text)
    found = ground_truth in numbers
    return EvaluateResult(score=float(found), reason=f"{ground_truth} was {'found' if found else 'not found'}")
