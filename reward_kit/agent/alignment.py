# SPDX-License-Identifier: Apache-2.0
"""Rewards of steps meet their steps: `StepOutput.step_index` is the Nth turn of the assistant, from 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reward_kit.models import StepOutput

__all__ = ["Aligned", "align", "twice"]


class Aligned(NamedTuple):
    """The reward of each turn, and what did not fit."""

    rewards: list[float | None]
    """One per turn; `None` where there is none."""
    foreign: list[str]
    """Indices of rewards that no turn has."""
    double: list[str]
    """Indices that came more than once. The first one counts."""
    missing: list[str]
    """Turns without a reward."""

    def complaints(self) -> list[str]:
        """What did not fit, in sentences; empty where everything did."""
        told = {
            "rewards for steps that do not exist": self.foreign,
            "several rewards for one step, of which the first counts": self.double,
            "no rewards for some steps": self.missing,
        }
        return [f"There are {what}: {', '.join(indices)}." for what, indices in told.items() if indices]


def align(outputs: Iterable[StepOutput], turns: Sequence[int | str]) -> Aligned:
    """The rewards in the order of `turns`. An index may be a number or its text: 0 and "0" are the same."""
    outputs = list(outputs)
    rewards: dict[str, float] = {}
    for output in outputs:
        rewards.setdefault(str(output.step_index), output.base_reward)
    names = [str(turn) for turn in turns]
    return Aligned(
        rewards=[rewards.get(name) for name in names],
        foreign=[name for name in rewards if name not in set(names)],
        double=twice(output.step_index for output in outputs),
        missing=[name for name in names if name not in rewards],
    )


def twice(indices: Iterable[int | str]) -> list[str]:
    """The indices that come more than once."""
    return [index for index, times in Counter(map(str, indices)).items() if times > 1]
