# SPDX-License-Identifier: Apache-2.0
"""What every trainer's adapter has for an episode: a world to step through, and who judges the episode in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from reward_kit.agent.environment import FunctionsWorld, World
from reward_kit.agent.tools import Tool, tools_of_class
from reward_kit.config_models import AgentConfig
from reward_kit.errors import ConfigError, ItemError
from reward_kit.integrations.trainer_reward import TrainerReward
from reward_kit.integrations.world_session import WorldSession, environment_from
from reward_kit.utils.module_loader import load_object

__all__ = ["JudgedWorld", "JudgedWorlds", "known_tools"]


class JudgedWorld(NamedTuple):
    """One episode at a time: the world, and who judges it."""

    session: WorldSession
    judge: TrainerReward | None

    def earned(self) -> float | None:
        """What the episode is worth; None where it cannot be judged.

        Without a judge that is the sum of what the world gave for the steps.
        """
        if self.session.failure is not None:
            return None
        if self.judge is None:
            return sum(self.session.rewards)
        try:
            rollout = self.session.rollout()
        except ItemError:
            return None
        (earned,) = self.judge.judge([rollout])
        return None if earned.error is not None else earned.score

    def earned_or(self, failed_score: float) -> float:
        """The same for a trainer that takes nothing but numbers."""
        earned = self.earned()
        return failed_score if earned is None else earned


class JudgedWorlds:
    """As many episodes as a trainer asks for, of one environment and judged by one reward."""

    def __init__(
        self,
        environment: Any,
        reward: Callable[..., Any] | str | None = None,
        params: Mapping[str, Any] | None = None,
        reward_params: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
    ) -> None:
        """Load both, so that what is wrong with them is known before the training begins."""
        self._environment, self._config = environment_from(environment, params), config
        self.judge = None if reward is None else TrainerReward(reward, failed_score=0.0, params=reward_params)

    def fresh(self) -> JudgedWorld:
        """An episode that has not begun."""
        return JudgedWorld(WorldSession(self._environment, self._config), self.judge)


def known_tools(environment: Any) -> list[Tool]:
    """The tools of a class of worlds, for trainers that want to know them before there is a world."""
    named = load_object(environment) if isinstance(environment, str) else environment
    if isinstance(named, type) and issubclass(named, World) and named is not FunctionsWorld:
        return tools_of_class(named)
    raise ConfigError("The tools are only known in advance for a class of worlds. Give `tools`, or name such a class.")
