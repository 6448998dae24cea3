# SPDX-License-Identifier: Apache-2.0
"""Whether a conversation went well: read from the databases that it leaves, not from what was said."""

from __future__ import annotations

from typing import Any

from support import desk  # type: ignore[import-not-found]  # beside this file

from reward_kit.agent.environments.two_sided import judged
from reward_kit.models import EvaluateResult, Message
from reward_kit.typed_interface import reward_function


@reward_function
def solved(messages: list[Message], task: dict[str, Any], facts: dict[str, Any], **_: Any) -> EvaluateResult:
    """1 where both databases are as they should be and the customer was told what there was to tell."""
    return judged(messages, task, facts, desk)
