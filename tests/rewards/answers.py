# SPDX-License-Identifier: Apache-2.0
"""Conversations that end with the answer to be judged."""

from __future__ import annotations

from reward_kit.models import Message


def answered(text: str, question: str = "?") -> list[Message]:
    return [Message(role="user", content=question), Message(role="assistant", content=text)]
