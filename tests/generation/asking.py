# SPDX-License-Identifier: Apache-2.0
"""One question to a client, as the tests of every API put it."""

from __future__ import annotations

from typing import Any

from reward_kit.config_models import Sampling
from reward_kit.generation.client import ModelClient
from reward_kit.models import Completion, Failure, Message

QUESTION = [Message(role="system", content="Be brief."), Message(role="user", content="Is it?")]


async def ask(
    client: ModelClient, messages: list[Message] | None = None, *draws: int, tools: Any = None, **sampling: Any
) -> list[Completion | Failure]:
    """What comes of some draws of a question."""
    given = Sampling(**{"max_tokens": 99, **sampling})
    return await client.generate(messages or QUESTION, draws=draws or (0,), sampling=given, tools=tools, sample_id="s")


async def one(client: ModelClient, messages: list[Message] | None = None, **given: Any) -> Completion:
    """The answer to it."""
    (entry,) = await ask(client, messages, **given)
    assert isinstance(entry, Completion), entry
    return entry
