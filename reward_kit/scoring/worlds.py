# SPDX-License-Identifier: Apache-2.0
"""Worlds for rewards: a fresh one for each rollout, in which the rollout's steps were played again."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeAlias

from reward_kit.config_models import AgentConfig, SandboxConfig
from reward_kit.errors import ConfigError
from reward_kit.models import Rollout
from reward_kit.reward_call import RewardCall

if TYPE_CHECKING:
    from reward_kit.agent.environment import World

__all__ = ["Worlds", "open_worlds"]

Worlds: TypeAlias = "Callable[[Rollout], AbstractAsyncContextManager[World]]"
"""Opens the world of a rollout, as it was after its last step."""


@contextlib.asynccontextmanager
async def open_worlds(
    call: RewardCall, agent: AgentConfig | None, sandbox: SandboxConfig
) -> AsyncIterator[Worlds | None]:
    """What opens worlds for the reward; None where it asks for none."""
    if not call.wants("world"):
        yield None
        return
    if agent is None and not call.requires("world"):
        yield None
        return
    if agent is None:
        raise ConfigError(
            f"Reward {call.name!r} asks for a world, and the run has no agent. Set `agent.environment`, or give the "
            "parameter a default."
        )
    if call.mode == "batch":
        raise ConfigError(
            f"Reward {call.name!r} judges all answers to a sample together, and each has a world of its own. Judge "
            "them one by one, or read `facts` instead of `world`."
        )
    from reward_kit.agent.episode import replayed
    from reward_kit.agent.from_settings import open_environment

    async with open_environment(agent, sandbox) as environment:
        yield lambda rollout: replayed(environment, rollout, agent)
