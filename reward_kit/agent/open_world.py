# SPDX-License-Identifier: Apache-2.0
"""A world, opened, asked and closed within its time. Whatever it does wrong is a failure of the world."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from math import isfinite
from typing import Any

from reward_kit.agent.blocking import in_a_thread
from reward_kit.agent.calls import Approval, ToolRunner
from reward_kit.agent.environment import Answer, Environment, World, may_block, opened
from reward_kit.config_models import AgentConfig
from reward_kit.errors import EnvironmentFailure, ItemError, boundary
from reward_kit.models import Message, Sample
from reward_kit.redaction import echoes
from reward_kit.utils import exact_json

__all__ = ["as_answer", "ask_world", "attached_states", "facts_of", "open_world", "restore_attached"]

_LARGEST_FACTS = 16 << 20


@contextlib.asynccontextmanager
async def open_world(
    environment: Environment, sample: Sample, config: AgentConfig, approve: Approval | None = None, *, draw: int = 0
) -> AsyncIterator[World]:
    """A fresh world for one episode of `sample`, closed in the end whatever happens."""
    world: World = await ask_world(config, "open", opened, environment, sample)
    world.runner = ToolRunner(approve)
    world.draw = draw
    try:
        yield world
    finally:
        with contextlib.suppress(ItemError):  # what the episode came to is known; a world that closes badly is gone
            await ask_world(config, "close", world.close_all)


async def ask_world(config: AgentConfig, what: str, method: Callable[..., Any], *arguments: Any) -> Any:
    """What a method of a world returns, within its time; whatever it raises is a failure of the world."""
    with boundary(EnvironmentFailure, f"The world's {what!r}"):
        try:
            async with asyncio.timeout(config.world_timeout) as limit:
                if may_block(method) and not getattr(getattr(method, "__self__", None), "on_the_loop", False):
                    value = await in_a_thread(method, *arguments)
                else:
                    value = method(*arguments)
                return await value if isinstance(value, Awaitable) else value
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise EnvironmentFailure(
                f"The world's {what!r} did not come back within {config.world_timeout:g} seconds. "
                "Raise `agent.world_timeout` if it needs longer."
            ) from error


async def facts_of(world: World, config: AgentConfig) -> dict[str, Any]:
    """What the world says of itself, as plain data."""
    facts = await ask_world(config, "facts", world.all_facts)
    try:
        text = exact_json.dumps(facts, non_str_keys=True)
    except (TypeError, RecursionError) as error:
        raise EnvironmentFailure(
            f"The world's facts cannot be written as JSON ({error}). Return plain data from `facts`.", retryable=False
        ) from error
    if echoes(text):
        raise EnvironmentFailure(_HOLDS_KEY.format("facts"), retryable=False)
    if not isinstance(facts, dict) or len(text) > _LARGEST_FACTS:
        raise EnvironmentFailure(
            f"The world's facts are {'too large' if isinstance(facts, dict) else f'a {type(facts).__name__}'}. "
            f"Return a dict of at most {_LARGEST_FACTS >> 20} MB from `facts`.",
            retryable=False,
        )
    plain: dict[str, Any] = exact_json.loads(text)
    return plain


_HOLDS_KEY = (
    "The world's {} hold a credential that it was given, or that was sent to a server. Nothing of them is kept, shown "
    "to the model or judged. Correct the world or its server, so that it tells nobody."
)


def attached_states(world: World) -> dict[str, Any]:
    """What tools that were added to a world remember, as its snapshots hold it; nothing where they remember nothing."""
    states = [attached.state for attached in world.all_attached]
    if None in states:
        raise EnvironmentFailure(
            "The world is kept by snapshots, which do not hold the files and processes of `agent.sandbox_tools`. Set "
            "`agent.durability` to replay, or to restart.",
            retryable=False,
        )
    try:
        plain = exact_json.loads(exact_json.dumps(states))
    except (TypeError, RecursionError):
        plain = None
    if plain != states:
        raise EnvironmentFailure(
            "What a tool keeps in `state` is not plain data, so that a snapshot cannot hold it. Keep texts, numbers, "
            "lists and dicts with texts as keys there, or set `agent.durability` to replay.",
            retryable=False,
        )
    return {"attached": plain} if any(states) else {}


def restore_attached(world: World, kept: Sequence[dict[str, Any]] | None) -> None:
    """Let tools that were added to a world remember what its snapshot holds."""
    for attached, state in zip(world.all_attached, kept or (), strict=False):
        if attached.state is not None:
            attached.state.clear()
            attached.state.update(state)


def as_answer(value: Any) -> Answer:
    """What a world returned, as an answer. One that holds a credential which was sent is a failure of the world."""
    answer = _as_answer(value)
    if answer.messages and echoes(repr(answer.messages).encode(errors="surrogatepass")):
        raise EnvironmentFailure(_HOLDS_KEY.format("messages"), retryable=False)
    return answer


def _as_answer(value: Any) -> Answer:
    """What a world returned, as an answer: messages alone, or a text that a user says, are enough."""
    if isinstance(value, Answer):
        if value.reward is not None and not isfinite(value.reward):
            raise EnvironmentFailure(
                f"The world gave the reward {value.reward!r}, which is not a finite number. Correct its method "
                "`answer`.",
                retryable=False,
            )
        return value
    if value is None:
        return Answer()
    if isinstance(value, str):
        return Answer([Message(role="user", content=value)])
    if isinstance(value, Message):
        return Answer([value])
    if isinstance(value, Sequence) and all(isinstance(message, Message) for message in value):
        return Answer(value)
    raise EnvironmentFailure(
        f"The world answered with a {type(value).__name__}. Return an `Answer`, messages, or a text.", retryable=False
    )
