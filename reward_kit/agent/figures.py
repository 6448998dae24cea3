# SPDX-License-Identifier: Apache-2.0
"""The figures of an agent's episodes, from lines of results: turns, tool calls and their errors, ends, rewards by step.

Episodes of one sample are not independent of each other, so every interval is computed over samples. Episodes that
branched off others share steps with them: they are counted, and are in no mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from reward_kit.statistics import ClusteredMean, Estimate

__all__ = ["EpisodeFigures", "is_branch", "is_episode"]

_MOST_STEPS = 64
"""Steps whose rewards are told one by one; later ones are in the sum."""


def is_episode(line: Mapping[str, Any]) -> bool:
    """Whether a line of results is about an agent's episode."""
    return line.get("steps") is not None


def is_branch(line: Mapping[str, Any]) -> bool:
    """Whether a line is about an episode that branched off another one."""
    return line.get("branch") is not None


class EpisodeFigures:
    """Running figures. Give it the lines of a sample together."""

    def __init__(self) -> None:
        """No episode has been seen yet."""
        self._episodes = self._branches = self._truncated = 0
        self._ended: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._means = {name: ClusteredMean() for name in ("turns", "tool_calls", "tool_errors", "step_rewards")}
        self._by_step: list[ClusteredMean] = []

    def __bool__(self) -> bool:
        """Whether there is any episode."""
        return bool(self._episodes or self._branches)

    def add(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take account of the episodes of one sample."""
        whole = [line for line in lines if is_episode(line)]
        own = [line for line in whole if not is_branch(line)]
        self._branches += len(whole) - len(own)
        self._episodes += len(own)
        if not own:
            return
        for line in own:
            self._ended[str(line.get("ended") or "failed")] += 1
            self._truncated += bool(line.get("truncated"))
            self._errors.update(use["error"] for step in line["steps"] for use in step["calls"] if use.get("error"))
        self._means["turns"].add([float(len(line["steps"])) for line in own])
        self._means["tool_calls"].add([float(sum(len(step["calls"]) for step in line["steps"])) for line in own])
        self._means["tool_errors"].add([float(_errors(line)) for line in own])
        rewards = [_rewards(line) for line in own]
        told = [[reward for reward in of_one if reward is not None] for of_one in rewards]
        if given := [sum(of_one) for of_one in told if of_one]:
            self._means["step_rewards"].add(given)
        self._add_by_step(rewards)

    def _add_by_step(self, rewards: list[list[float | None]]) -> None:
        for number in range(min(_MOST_STEPS, max(map(len, rewards)))):
            at = [of_one[number] for of_one in rewards if number < len(of_one)]
            if given := [reward for reward in at if reward is not None]:
                while len(self._by_step) <= number:
                    self._by_step.append(ClusteredMean())
                self._by_step[number].add(given)

    def figures(self) -> dict[str, Any]:
        """All of it as plain data, each mean with its 95 % interval."""
        found: dict[str, Any] = {"episodes": self._episodes}
        if self._branches:
            found["branches"] = self._branches
        found |= {"ended": dict(self._ended.most_common()), "truncated": self._truncated}
        found |= {name: _plain(mean.estimate()) for name, mean in self._means.items()}
        found["tool_errors_by_kind"] = dict(self._errors.most_common())
        if by_step := [_plain(mean.estimate()) for mean in self._by_step]:
            found["reward_by_step"] = by_step
        return found


def _rewards(line: Mapping[str, Any]) -> list[float | None]:
    """What each step was worth: as the reward says, where it speaks of steps; else as the world said."""
    if (outputs := line.get("step_outputs")) is not None:
        by_step = {str(output["step_index"]): float(output["base_reward"]) for output in outputs}
        return [by_step.get(str(number)) for number in range(len(line["steps"]))]
    return [step.get("reward") for step in line["steps"]]


def _errors(line: Mapping[str, Any]) -> int:
    return sum(use.get("error") is not None for step in line["steps"] for use in step["calls"])


def _plain(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "samples": estimate.count}
