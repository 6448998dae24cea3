# SPDX-License-Identifier: Apache-2.0
"""The local engine: both stages on this machine, in one event loop and its worker processes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from reward_kit.execution.engine import Engine
from reward_kit.generation.client import ModelClient
from reward_kit.generation.stack import ModelStack, open_models
from reward_kit.models import Rollout
from reward_kit.scoring.rewards import Rewards
from reward_kit.scoring.scorers import Scorer, open_rewards
from reward_kit.storage.turn_journal import TurnJournal

__all__ = ["LocalEngine"]


class LocalEngine(Engine):
    """Plays and scores in this process, with worker processes for synchronous rewards."""

    @contextlib.asynccontextmanager
    async def open_models(
        self, client: ModelClient | None, turns: TurnJournal | None, known: Callable[[str, int], Rollout | None]
    ) -> AsyncIterator[ModelStack]:
        """The client in its layers, and with it a play of single answers or of episodes."""
        async with open_models(self._config, client, self._budget) as models:
            if self._config.agent is None or turns is None:
                yield models
                return
            from reward_kit.execution.agents import open_episodes  # here: most runs have no agent

            playing = open_episodes(
                self._config, self._config.agent, models, turns, self._counters, self._budget, known
            )  # fmt: skip
            async with playing as episodes:
                yield episodes

    def open_scorer(self, reward: Rewards, at_hand: int) -> contextlib.AbstractAsyncContextManager[Scorer]:
        """The rewards, called here or in worker processes."""
        return open_rewards(reward, self._config, self._directory, self._budget, at_hand=at_hand)
