# SPDX-License-Identifier: Apache-2.0
"""Branching: further episodes that leave finished ones at a step, and share all before it for nothing.

The draws from `FIRST_BRANCH` on are branches. They are handed out in order, level by level: those of the first level
leave the first `n` episodes, those of the next level leave the branches of the level before. So which branch a draw is
follows from the episodes alone, and entering the run again comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from reward_kit.config_models import FIRST_BRANCH, BranchingConfig
from reward_kit.errors import ConfigError
from reward_kit.models import Rollout
from reward_kit.utils.module_loader import load_function

__all__ = ["Branches", "Leaving"]


class Leaving(NamedTuple):
    """Where a branch leaves: the episode, and the step that is taken anew."""

    parent: Rollout
    step: int


class Branches:
    """Which draws leave which episodes, and where."""

    def __init__(self, config: BranchingConfig, n: int) -> None:
        """By the settings, for samples that are played `n` times from the start."""
        self._config, self._n = config, n
        self._steps: Callable[[Rollout], Any] | None = None
        if isinstance(config.at, str):
            try:
                self._steps = load_function(config.at)
            except ImportError as error:
                raise ConfigError(f"`agent.branching.at` cannot be loaded: {error}") from error

    @property
    def draws(self) -> int:
        """The episodes of a sample, all in all."""
        return self._n + self._config.total

    def levels(self) -> list[range]:
        """The draws of each level, the first of them those that are played from the start."""
        total, depth = self._config.total, min(self._config.depth, self._config.total)
        bounds = [FIRST_BRANCH + total * level // depth for level in range(depth + 1)]
        return [range(self._n), *(range(a, b) for a, b in pairwise(bounds))]

    def leaving(self, parents: Sequence[Rollout], draws: Sequence[int]) -> dict[int, Leaving | None]:
        """Where each of the draws of a level leaves the episodes of the level before.

        None where there is no step to leave at: such a draw is played from the start.
        """
        points = [
            Leaving(parent, step) for parent in parents if parent.failure is None for step in self._steps_of(parent)
        ]
        if self._config.width is not None and points:
            wanted = max(1, len(draws) // self._config.width)
            points = [points[place * len(points) // wanted] for place in range(min(wanted, len(points)))]
        return {draw: points[place % len(points)] if points else None for place, draw in enumerate(draws)}

    def _steps_of(self, parent: Rollout) -> list[int]:
        """The steps of an episode that branches may leave at. Its first step is none: that would be a fresh episode."""
        played, at = len(parent.steps or ()), self._config.at
        if self._steps is not None:
            chosen = self._steps(parent)
            if not isinstance(chosen, Sequence) or not all(isinstance(step, int) for step in chosen):
                raise ConfigError(
                    f"`agent.branching.at` names {at!r}, which did not return a list of steps. Correct the function."
                )
        else:
            chosen = range(at, played, at) if isinstance(at, int) else at
        return [step for step in dict.fromkeys(chosen) if 0 < step < played]
