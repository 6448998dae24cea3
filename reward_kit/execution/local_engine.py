# SPDX-License-Identifier: Apache-2.0
"""The local engine: both stages on this machine, in one event loop and its worker processes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from reward_kit.execution.engine import Engine
from reward_kit.scoring.rewards import Rewards
from reward_kit.scoring.scorers import Scorer, open_rewards

__all__ = ["LocalEngine"]


class LocalEngine(Engine):
    """Plays and scores in this process, with worker processes for synchronous rewards."""

    def open_scorer(self, reward: Rewards, at_hand: int) -> AbstractAsyncContextManager[Scorer]:
        """The rewards, called here or in worker processes."""
        return open_rewards(reward, self._config, self._directory, self._budget, at_hand=at_hand)
