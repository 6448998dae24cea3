# SPDX-License-Identifier: Apache-2.0
"""The credit of every step of a run's episodes, computed from its files alone.

    results.jsonl → episodes of a sample → scores, step rewards, states, branches → `agent/credit.py` → StepCredit

The episodes of a sample are a group. A step's reward is what the reward function said of it (`step_outputs`), where it
spoke of steps at all, else what the world gave. An episode that failed or was not judged is left out of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from reward_kit.agent.alignment import Aligned, align
from reward_kit.agent.credit import (
    Branch,
    EpisodeCredit,
    Mode,
    Trajectory,
    dr_grpo,
    filled_rewards,
    gigpo,
    grpo,
    rloo,
    tree_grpo,
    tree_values,
    turn_level,
)
from reward_kit.storage.judged_episodes import JudgedEpisode

__all__ = ["CreditSettings", "Method", "StepCredit", "aligned_rewards", "step_credits", "step_rewards"]

Method = Literal["gigpo", "grpo", "dr_grpo", "rloo", "turn_level", "tree_grpo", "tree_values"]
"""The functions of `agent/credit.py` that need no other sample's episodes."""


@dataclass(frozen=True)
class CreditSettings:
    """How credit is computed."""

    method: Method = "gigpo"
    gamma: float = 0.95
    """How much a reward counts one step earlier."""
    omega: float = 1.0
    """gigpo: the weight of the step's advantage beside the episode's."""
    mode: Mode = "mean_norm"
    """gigpo, turn_level: subtract the mean; or divide by the standard deviation, too."""
    default_step_reward: float = 0.0
    """The reward of a step that nobody gave one."""


class StepCredit(NamedTuple):
    """One step's credit."""

    step: int
    turn: int
    """Which of the episode's turns it is."""
    state: str | None
    reward: float
    return_to_go: float
    state_group: int
    """Steps of the sample with the same number were taken in the same state."""
    episode_advantage: float | None
    """The episode's own part, where the method has one."""
    step_advantage: float | None
    """The step's own part, where the method has one."""
    advantage: float


class _Parts(NamedTuple):
    """What one method says of one episode."""

    episode: float | None
    steps: list[float] | None
    whole: list[float]


def step_credits(episodes: Sequence[JudgedEpisode], settings: CreditSettings) -> list[list[StepCredit] | None]:
    """The credit of each step of the episodes of one sample; `None` for an episode that has no score."""
    trajectories = [
        Trajectory(
            group=None,
            states=[step.state for step in episode.steps],
            rewards=filled_rewards(step_rewards(episode), episode.score or 0.0, settings.default_step_reward),
            score=episode.score,
        )
        for episode in episodes
    ]
    base = gigpo(trajectories, gamma=settings.gamma, omega=settings.omega, mode=settings.mode)
    parts = _parts(episodes, trajectories, base, settings)
    return [
        None if credit is None or part is None else _steps(episode, trajectory, credit, part)
        for episode, trajectory, credit, part in zip(episodes, trajectories, base, parts, strict=True)
    ]


def step_rewards(episode: JudgedEpisode) -> list[float | None]:
    """The reward of each step, `None` where there is none."""
    aligned = aligned_rewards(episode)
    return [step.reward for step in episode.steps] if aligned is None else aligned.rewards


def aligned_rewards(episode: JudgedEpisode) -> Aligned | None:
    """What the reward function said of single steps, and what of it fits no step; None where it said nothing."""
    if episode.step_outputs is None:
        return None
    return align(episode.step_outputs, range(len(episode.steps)))


def _steps(episode: JudgedEpisode, trajectory: Trajectory, credit: EpisodeCredit, part: _Parts) -> list[StepCredit]:
    return [
        StepCredit(
            step=place,
            turn=step.turn,
            state=step.state,
            reward=trajectory.rewards[place],
            return_to_go=credit.returns[place],
            state_group=credit.step_groups[place],
            episode_advantage=part.episode,
            step_advantage=None if part.steps is None else part.steps[place],
            advantage=part.whole[place],
        )
        for place, step in enumerate(episode.steps)
    ]


# ── methods ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_BY_SCORE: dict[Method, Callable[[Sequence[float | None]], list[float | None]]] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
}


def _parts(
    episodes: Sequence[JudgedEpisode],
    trajectories: Sequence[Trajectory],
    base: Sequence[EpisodeCredit | None],
    settings: CreditSettings,
) -> list[_Parts | None]:
    scores = [episode.score for episode in episodes]
    if settings.method == "gigpo":
        return [
            None if credit is None else _Parts(credit.episode_advantage, credit.step_advantages, credit.advantages)
            for credit in base
        ]
    if settings.method == "turn_level":
        return _of_steps(turn_level(trajectories, gamma=settings.gamma, mode=settings.mode))
    if settings.method == "tree_values":
        return _of_steps(tree_values(scores, [len(episode.steps) for episode in episodes], _branches(episodes)))
    if settings.method == "tree_grpo":
        return _of_episodes(tree_grpo(scores, _branches(episodes)), episodes)
    return _of_episodes(_BY_SCORE[settings.method](scores), episodes)


def _of_steps(found: Sequence[list[float] | None]) -> list[_Parts | None]:
    return [None if steps is None else _Parts(None, steps, steps) for steps in found]


def _of_episodes(found: Sequence[float | None], episodes: Sequence[JudgedEpisode]) -> list[_Parts | None]:
    """Every step of an episode has the same advantage."""
    return [
        None if own is None else _Parts(own, None, [own] * len(episode.steps))
        for own, episode in zip(found, episodes, strict=True)
    ]


def _branches(episodes: Sequence[JudgedEpisode]) -> list[Branch | None]:
    """Where each branched off. One whose parent is not among them is the root of a tree of its own."""
    places = {episode.response_index: place for place, episode in enumerate(episodes)}
    return [
        None
        if episode.branch is None or episode.branch.response_index not in places
        else Branch(places[episode.branch.response_index], episode.branch.step)
        for episode in episodes
    ]
