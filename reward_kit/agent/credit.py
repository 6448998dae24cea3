# SPDX-License-Identifier: Apache-2.0
"""Which step deserves how much credit: returns and advantages, from scores and rewards that are on disk.

| function | what it gives | of what |
|---|---|---|
| `returns`, `gae` | what came after each step | the rewards of one episode |
| `grpo`, `dr_grpo`, `rloo`, `reinforce_plus_plus_baseline` | an advantage for each episode | scores, by group |
| `gigpo`, `turn_level` | an advantage for each step | episodes with states and rewards |
| `tree_grpo`, `tree_values` | an advantage for each episode, or step | episodes that branch off from others |

All are pure functions of plain numbers. A group is what was drawn for one prompt, from the same initial state. A score
that is `None` or NaN belongs to an episode that failed: it is left out of its group, and its own advantage is `None`. A
group of one has nothing to compare with, so its advantage is 0; `alone="score"` gives the raw score, as verl does.
Standard deviations are unbiased (divided by n - 1), and `eps` is added to them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, isfinite, isnan, sqrt
from typing import Any, Literal, NamedTuple

from reward_kit.agent.anchor_states import StateGroups

__all__ = [
    "Branch",
    "EpisodeCredit",
    "Trajectory",
    "dr_grpo",
    "filled_rewards",
    "gae",
    "gigpo",
    "grpo",
    "reinforce_plus_plus_baseline",
    "returns",
    "rloo",
    "tree_grpo",
    "tree_values",
    "turn_level",
]

Alone = Literal["zero", "score"]
"""What a group of one gives: 0, or the raw score for parity with verl."""
Mode = Literal["mean_norm", "mean_std_norm"]
"""Subtract the mean; or divide by the standard deviation as well."""
Statistics = Literal["per_episode", "per_step"]
"""Each episode counts once, as in the paper; or once per step, as in verl-agent, so that long episodes weigh more."""

EPS = 1e-6
"""As verl and GiGPO have it. TRL adds 1e-4."""


class _Spread(NamedTuple):
    """The mean and the standard deviation of some numbers; both 0 where there are none, the latter also for one."""

    mean: float
    std: float


def _spread(values: Sequence[float], weights: Sequence[int] | None = None) -> _Spread:
    """Each value counts as often as its weight says, or once."""
    counts = [1] * len(values) if weights is None else weights
    total = sum(counts)
    if total == 0:
        return _Spread(0.0, 0.0)
    start = values[0]  # values that are all equal then have exactly that mean, and no spread
    mean = start + fsum((value - start) * times for value, times in zip(values, counts, strict=True)) / total
    if total == 1:
        return _Spread(mean, 0.0)
    squares = fsum((value - mean) ** 2 * times for value, times in zip(values, counts, strict=True))
    return _Spread(mean, sqrt(squares / (total - 1)))


# ── one episode ──────────────────────────────────────────────────────────────────────────────────────────────────────


def returns(rewards: Sequence[float], gamma: float = 1.0) -> list[float]:
    """What each step and those after it brought: G_t = r_t + gamma · G_(t+1). A turn is discounted once, not a token.

    >>> returns([0.0, 0.0, 1.0], gamma=0.5)
    [0.25, 0.5, 1.0]
    """
    _check_share("gamma", gamma)
    total, found = 0.0, []
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.append(total)
    found.reverse()
    return found


def filled_rewards(rewards: Sequence[float | None], score: float, default: float = 0.0) -> list[float]:
    """The rewards of an episode's steps, where some steps or all have none.

    A missing reward is `default`. If it is the last step's, the episode's score is added to it; a last step that has a
    reward of its own has already been told what the end is worth.

    >>> filled_rewards([None, None], score=1.0, default=-0.5)
    [-0.5, 0.5]
    >>> filled_rewards([None, 2.0], score=1.0)
    [0.0, 2.0]
    """
    filled = [default if reward is None else reward for reward in rewards]
    if rewards and rewards[-1] is None:
        filled[-1] += score
    return filled


def gae(rewards: Sequence[float], values: Sequence[float], gamma: float = 1.0, lam: float = 1.0) -> list[float]:
    """Generalised advantage estimation over turns: each step's reward and the value after it, against its own value.

    `values` are a critic's estimates before each step. After the last step the value is 0.

    >>> gae([0.0, 1.0], [0.5, 0.75])
    [0.5, 0.25]
    """
    _check_share("gamma", gamma)
    _check_share("lam", lam)
    _check_lengths("values", values, rewards, "step")
    found, later, after = [], 0.0, 0.0
    for reward, value in zip(reversed(rewards), reversed(values), strict=True):
        later = reward + gamma * after - value + gamma * lam * later
        after = value
        found.append(later)
    found.reverse()
    return found


# ── episodes of a group ──────────────────────────────────────────────────────────────────────────────────────────────


def grpo(
    scores: Sequence[float | None],
    groups: Sequence[Hashable] | None = None,
    *,
    eps: float = EPS,
    scale: Literal["group", "batch"] = "group",
    alone: Alone = "zero",
) -> list[float | None]:
    """(score - mean of the group) / (standard deviation + eps). Without `groups`, all scores are one group.

    `scale="batch"` divides by the standard deviation of all scores instead, as TRL's `scale_rewards="batch"` does.

    >>> grpo([1.0, 0.0, None], eps=0.0)
    [0.7071067811865475, -0.7071067811865475, None]
    """
    scored = _scored(scores)
    whole = _spread([score for score in scored if score is not None]) if scale == "batch" else None
    found: list[float | None] = [None] * len(scores)
    for members in _members(scored, groups):
        values = [_known(scored[place]) for place in members]
        spread = _spread(values)
        if len(values) == 1:
            spread = _of_one(values[0], alone, spread)
        divisor = (spread if whole is None else whole).std + eps
        for place, value in zip(members, values, strict=True):
            found[place] = _divided(value - spread.mean, divisor)
    return found


def dr_grpo(
    scores: Sequence[float | None], groups: Sequence[Hashable] | None = None, *, alone: Alone = "zero"
) -> list[float | None]:
    """Score - mean of the group, as Dr. GRPO has it: no division, so that easy and hard prompts weigh by their spread.

    >>> dr_grpo([1.0, 0.0, 0.5])
    [0.5, -0.5, 0.0]
    """
    return _centred(_scored(scores), groups, alone)


def rloo(
    scores: Sequence[float | None], groups: Sequence[Hashable] | None = None, *, alone: Alone = "zero"
) -> list[float | None]:
    """Score - mean of the others in the group (leave one out).

    >>> rloo([1.0, 0.0, 0.5])
    [0.75, -0.75, 0.0]
    """
    scored = _scored(scores)
    found = _centred(scored, groups, alone)
    for members in _members(scored, groups):
        others = len(members) - 1
        if others:
            for place in members:
                found[place] = _known(found[place]) * len(members) / others
    return found


def reinforce_plus_plus_baseline(
    scores: Sequence[float | None], groups: Sequence[Hashable], *, eps: float = EPS, alone: Alone = "zero"
) -> list[float | None]:
    """(score - mean of the group) / (standard deviation of these differences in the whole batch + eps).

    Every episode counts once. verl whitens over tokens instead, where long answers weigh more.
    """
    centred = _centred(_scored(scores), groups, alone)
    divisor = _spread([value for value in centred if value is not None]).std + eps
    return [None if value is None else _divided(value, divisor) for value in centred]


def _centred(scores: Sequence[float | None], groups: Sequence[Hashable] | None, alone: Alone) -> list[float | None]:
    found: list[float | None] = [None] * len(scores)
    for members in _members(scores, groups):
        values = [_known(scores[place]) for place in members]
        mean = 0.0 if len(values) == 1 and alone == "score" else _spread(values).mean
        for place, value in zip(members, values, strict=True):
            found[place] = value - mean
    return found


def _members(scores: Sequence[float | None], groups: Sequence[Hashable] | None) -> Iterable[list[int]]:
    """The places of the scores of each group; those without a score are in none."""
    if groups is not None:
        _check_lengths("groups", groups, scores, "score")
    members: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, score in enumerate(scores):
        if score is not None:
            members[None if groups is None else groups[place]].append(place)
    return members.values()


def _scored(scores: Sequence[float | None]) -> list[float | None]:
    """The scores, `None` for those of failed episodes."""
    found = [None if score is None or isnan(score) else float(score) for score in scores]
    for place, score in enumerate(found):
        if score is not None and not isfinite(score):
            raise ValueError(f"score {place} is {score!r}; expected a finite number, or None for a failed episode")
    return found


def _of_one(score: float, alone: Alone, spread: _Spread) -> _Spread:
    return _Spread(0.0, 1.0) if alone == "score" else spread


def _divided(value: float, divisor: float) -> float:
    """0 where nothing differs and nothing was added to the divisor."""
    return value / divisor if divisor else 0.0


# ── steps: GiGPO ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode, as far as credit needs it."""

    group: Hashable
    """Which prompt it answers. Episodes of a group start from the same state."""
    states: Sequence[Any]
    """What the world showed before each action. Steps in equal states are compared; `None` is equal to nothing."""
    rewards: Sequence[float]
    """What each step brought."""
    score: float | None
    """What the whole episode is worth; `sum(rewards)` in the paper. None: it failed, and is left out."""

    def __post_init__(self) -> None:
        _check_lengths("states", self.states, self.rewards, "reward")


class EpisodeCredit(NamedTuple):
    """The credit of one episode and of its steps."""

    episode_advantage: float
    """A_E: of the episode among those of its group."""
    returns: list[float]
    """G_t of each step."""
    step_groups: list[int]
    """Which steps are compared with each other: those with the same number."""
    step_advantages: list[float]
    """A_S: of each step's return among those of its group."""
    advantages: list[float]
    """A_E + omega · A_S."""


def gigpo(
    episodes: Sequence[Trajectory],
    *,
    gamma: float = 0.95,
    omega: float = 1.0,
    mode: Mode = "mean_norm",
    statistics: Statistics = "per_episode",
    similarity: float | None = None,
    eps: float = EPS,
    alone: Alone = "zero",
) -> list[EpisodeCredit | None]:
    """GiGPO (arXiv:2505.10978): the credit of each episode and its steps, `None` for episodes that failed.

    A = A_E + omega · A_S, equation 8 of the paper. A_E compares scores of episodes of one prompt; A_S compares returns
    of steps that were taken in the same state of one prompt, also if an episode came there twice. A step that is alone
    in its state has A_S = 0. `similarity` (the authors use 0.95) makes texts one state that differ a little.
    """
    scored = _scored([episode.score for episode in episodes])
    overall = _episode_advantages(episodes, scored, mode, statistics, eps, alone)
    found = _returns_of(episodes, scored, gamma)
    groups = StateGroups(similarity)
    places = [
        [groups.number(episode.group, state) for state in episode.states] if gains is not None else []
        for episode, gains in zip(episodes, found, strict=True)
    ]
    steps = _step_advantages(found, places, mode, eps)
    credits: list[EpisodeCredit | None] = []
    for episode, gains, numbers, own in zip(overall, found, places, steps, strict=True):
        if episode is None or gains is None:
            credits.append(None)
            continue
        joint = [episode + omega * step for step in own]
        credits.append(EpisodeCredit(episode, gains, numbers, own, joint))
    return credits


def turn_level(
    episodes: Sequence[Trajectory], *, gamma: float = 1.0, mode: Mode = "mean_std_norm", eps: float = EPS
) -> list[list[float] | None]:
    """Each step's return among those of the same turn in the group, whatever their states."""
    found = _returns_of(episodes, _scored([episode.score for episode in episodes]), gamma)
    groups = StateGroups()
    places = [
        [groups.number(episode.group, turn) for turn in range(len(gains or ()))]
        for episode, gains in zip(episodes, found, strict=True)
    ]
    steps = _step_advantages(found, places, mode, eps)
    return [None if gains is None else own for gains, own in zip(found, steps, strict=True)]


def _returns_of(
    episodes: Sequence[Trajectory], scores: Sequence[float | None], gamma: float
) -> list[list[float] | None]:
    _check_share("gamma", gamma)
    for place, episode in enumerate(episodes):
        if scores[place] is not None and not all(map(isfinite, episode.rewards)):
            raise ValueError(f"episode {place} has a reward that is not finite: {list(episode.rewards)!r}")
    pairs = zip(episodes, scores, strict=True)
    return [None if score is None else returns(episode.rewards, gamma) for episode, score in pairs]


def _episode_advantages(
    episodes: Sequence[Trajectory],
    scores: Sequence[float | None],
    mode: Mode,
    statistics: Statistics,
    eps: float,
    alone: Alone,
) -> list[float | None]:
    found: list[float | None] = [None] * len(episodes)
    for members in _members(scores, [episode.group for episode in episodes]):
        values = [_known(scores[place]) for place in members]
        weights = [len(episodes[place].rewards) if statistics == "per_step" else 1 for place in members]
        spread = _spread(values, weights)
        if sum(weights) == 1:
            spread = _of_one(values[0], alone, spread)
        for place, value in zip(members, values, strict=True):
            found[place] = _normalised(value, spread, mode, eps)
    return found


def _step_advantages(
    found: Sequence[list[float] | None], places: Sequence[Sequence[int]], mode: Mode, eps: float
) -> list[list[float]]:
    together: defaultdict[int, list[float]] = defaultdict(list)
    for gains, numbers in zip(found, places, strict=True):
        for gain, number in zip(gains or (), numbers, strict=True):
            together[number].append(gain)
    spreads = {number: _spread(values) for number, values in together.items()}
    return [
        [_normalised(gain, spreads[number], mode, eps) for gain, number in zip(gains or (), numbers, strict=True)]
        for gains, numbers in zip(found, places, strict=True)
    ]


def _normalised(value: float, spread: _Spread, mode: Mode, eps: float) -> float:
    centred = value - spread.mean
    return centred if mode == "mean_norm" else _divided(centred, spread.std + eps)


# ── trees ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Branch(NamedTuple):
    """Where an episode branched off from another of the same batch."""

    parent: int
    """The other's place in the batch."""
    step: int
    """The first step that they do not share. Those before it are the parent's."""


def tree_grpo(
    scores: Sequence[float | None],
    branches: Sequence[Branch | None],
    groups: Sequence[Hashable] | None = None,
    *,
    eps: float = EPS,
    alone: Alone = "zero",
) -> list[float | None]:
    """Tree-GRPO: GRPO among the episodes of one tree, plus GRPO among all episodes of the prompt.

    Episodes that branch off from each other, directly or not, are one tree.
    """
    trees = _trees(branches, len(scores))
    within = grpo(scores, trees, eps=eps, alone=alone)
    between = grpo(scores, groups, eps=eps, alone=alone)
    return [None if one is None or other is None else one + other for one, other in zip(within, between, strict=True)]


def tree_values(
    scores: Sequence[float | None],
    lengths: Sequence[int],
    branches: Sequence[Branch | None],
    groups: Sequence[Hashable] | None = None,
    *,
    shared: Literal["whole", "divided", "root"] = "whole",
) -> list[list[float] | None]:
    """TreeRL: (V(step) - V(prompt)) + (V(step) - V(step before)), with V the mean score of the episodes that share it.

    `lengths` are the numbers of steps, those shared with a parent among them. The prompt's value is the mean of all its
    episodes. A step that k episodes share is k rows of training data: `shared="divided"` divides its advantage by k,
    `"root"` by the square root of k.
    """
    scored = _scored(scores)
    _check_lengths("lengths", lengths, scores, "score")
    if groups is not None:
        _check_lengths("groups", groups, scores, "score")
    paths = _paths(lengths, branches, groups)
    sums: defaultdict[Hashable, float] = defaultdict(float)
    counts: defaultdict[Hashable, int] = defaultdict(int)
    for score, path in zip(scored, paths, strict=True):
        if score is not None:
            for node in path:
                sums[node] += score
                counts[node] += 1
    values = {node: total / counts[node] for node, total in sums.items()}
    weights = {node: _weight(count, shared) for node, count in counts.items()}
    return [
        None
        if score is None
        else [(2 * values[node] - values[path[0]] - values[before]) * weights[node] for before, node in pairwise(path)]
        for score, path in zip(scored, paths, strict=True)
    ]


def _weight(count: int, shared: Literal["whole", "divided", "root"]) -> float:
    return {"whole": 1.0, "divided": 1 / count, "root": 1 / sqrt(count)}[shared]


def _paths(
    lengths: Sequence[int], branches: Sequence[Branch | None], groups: Sequence[Hashable] | None
) -> list[list[Hashable]]:
    """The nodes that each episode passes: its prompt, then one per step; those it shares are its parent's."""
    paths: list[list[Hashable]] = [[] for _ in lengths]
    for place in _parents_first(branches, len(lengths)):
        branch = branches[place]
        prompt: Hashable = ("prompt", None if groups is None else groups[place])
        path = [prompt] if branch is None else paths[branch.parent][: branch.step + 1]
        if branch is not None and not 0 <= branch.step <= min(lengths[place], lengths[branch.parent]):
            raise ValueError(
                f"episode {place} branches off at step {branch.step!r}; "
                f"it has {lengths[place]!r} steps, and its parent {lengths[branch.parent]!r}"
            )
        if path[0] != prompt:
            raise ValueError(f"episode {place} branches off from episode {branch and branch.parent} of another group")
        path.extend((place, step) for step in range(len(path) - 1, lengths[place]))
        paths[place] = path
    return paths


def _trees(branches: Sequence[Branch | None], count: int) -> list[int]:
    """The episode at the root of each one's tree."""
    roots = list(range(count))
    for place in _parents_first(branches, count):
        branch = branches[place]
        if branch is not None:
            roots[place] = roots[branch.parent]
    return roots


def _parents_first(branches: Sequence[Branch | None], count: int) -> list[int]:
    """Every place once, parents before those that branch off from them."""
    _check_lengths("branches", branches, range(count), "score")
    order: dict[int, None] = {}
    for start in range(count):
        waiting: dict[int, None] = {}
        place: int | None = start
        while place is not None and place not in order:
            if place in waiting:
                raise ValueError(f"episode {place} branches off from itself")
            waiting[place] = None
            branch = branches[place]
            place = None if branch is None else branch.parent
            if place is not None and not 0 <= place < count:
                raise ValueError(f"episode {start} branches off from episode {place}; there are {count}")
        order.update(dict.fromkeys(reversed(waiting)))
    return list(order)


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _known(score: float | None) -> float:
    assert score is not None
    return score


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value!r}; expected a number from 0 to 1")


def _check_lengths(name: str, given: Sequence[object], expected: Sequence[object], unit: str) -> None:
    if len(given) != len(expected):
        raise ValueError(f"{len(given)} {name} were given for {len(expected)} of {unit}s; expected one per {unit}")
