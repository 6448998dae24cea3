# SPDX-License-Identifier: Apache-2.0
"""The play of a run whose model is an agent: its environment opened, its turns kept on disk."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, cast

from reward_kit.agent.branching import Branches
from reward_kit.agent.calls import Approval
from reward_kit.agent.environment import finished
from reward_kit.agent.episode import Episodes
from reward_kit.agent.from_settings import open_environment
from reward_kit.config_models import AgentConfig, PipelineConfig
from reward_kit.errors import ConfigError
from reward_kit.execution.counters import RunCounters
from reward_kit.generation.budget import Budget
from reward_kit.generation.cache.responses import CachedClient
from reward_kit.generation.stack import ModelStack
from reward_kit.models import Rollout
from reward_kit.storage.turn_journal import TurnJournal, Turns
from reward_kit.utils.module_loader import load_function

__all__ = ["open_episodes"]


@contextlib.asynccontextmanager
async def open_episodes(
    config: PipelineConfig,
    agent: AgentConfig,
    models: ModelStack,
    turns: Turns,
    counters: RunCounters,
    budget: Budget | None,
    known: Callable[[str, int], Rollout | None],
) -> AsyncIterator[ModelStack]:
    """The models with a play of episodes in place of single answers. Their turns are kept in `turns`.

    `known` finds the rollout of an earlier entry of the run, for branches to leave from.
    """
    if models.client is None:
        raise AssertionError("an agent is played where answers are generated")
    approve = None if agent.approve is None else _approval(agent.approve)
    branches = None if agent.branching is None else Branches(agent.branching, config.generation.n)
    if isinstance(turns, TurnJournal) and isinstance(models.client, CachedClient):
        turns.write_before = models.client.cache.flush
    async with open_environment(agent, config.sandbox, budget) as environment:
        sampling = config.generation.sampling()
        play = Episodes(
            models.client, sampling, models.price, environment, agent, journal=turns, approve=approve,
            branches=branches, known=known,
        )  # fmt: skip
        counters.episodes = play.watch
        # Each episode is handed out by itself, so that it is on disk as soon as it has ended; branches need all.
        yield replace(models, play=play, draws_at_once=lambda: 1 if branches is None else branches.draws)


def _approval(path: str) -> Approval:
    try:
        function = load_function(path)
    except ImportError as error:
        raise ConfigError(f"`agent.approve` cannot be loaded: {error}") from error

    async def approve(name: str, arguments: dict[str, Any]) -> str | None:
        return cast("str | None", await finished(function(name, arguments)))

    return approve
