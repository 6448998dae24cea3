# SPDX-License-Identifier: Apache-2.0
"""Returns and advantages, against slow formulas written out here with numpy, and against GiGPO's reference values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.agent.credit import (
    Branch,
    EpisodeCredit,
    Trajectory,
    dr_grpo,
    filled_rewards,
    gae,
    gigpo,
    grpo,
    reinforce_plus_plus_baseline,
    returns,
    rloo,
    tree_grpo,
    tree_values,
    turn_level,
)
from tests.growth import growth_of_calls

REFERENCE = next(
    (found for parent in Path(__file__).parents if (found := parent / "shared" / "data" / "gigpo_dev.json").is_file()),
    None,
)
"""Cases that were checked against the authors' own code. They lie beside the repository, not in it."""
CLOSE = 1e-9

score = st.sampled_from([0.0, 1.0, 0.5, -1.0, 0.1, 3.25])
scores = st.lists(score, min_size=1, max_size=8)
maybe_scores = st.lists(st.none() | st.just(math.nan) | score, min_size=1, max_size=10)
GroupAdvantages = Callable[[Sequence[float | None], Sequence[Any]], list[float | None]]
BY_GROUP: list[GroupAdvantages] = [grpo, dr_grpo, rloo]
by_group = pytest.mark.parametrize("advantages", BY_GROUP, ids=["grpo", "dr_grpo", "rloo"])


def scored(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None or math.isnan(value) else value for value in values]


def known(values: Sequence[float | None]) -> list[float]:
    return [value for value in scored(values) if value is not None]


# ── one episode ──────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(score, max_size=12), st.floats(0, 1))
def test_a_return_is_the_discounted_sum_of_what_follows(rewards: list[float], gamma: float) -> None:
    by_hand = [
        sum(gamma ** (later - step) * rewards[later] for later in range(step, len(rewards)))
        for step in range(len(rewards))
    ]
    assert returns(rewards, gamma) == pytest.approx(by_hand, abs=CLOSE)


@given(st.lists(st.tuples(score, score), max_size=8), st.floats(0, 1))
def test_gae_is_the_return_less_the_value_or_one_step_of_it(steps: list[tuple[float, float]], gamma: float) -> None:
    rewards, values = [reward for reward, _ in steps], [value for _, value in steps]
    far = [gain - value for gain, value in zip(returns(rewards, gamma), values, strict=True)]
    near = [r + gamma * later - v for r, v, later in zip(rewards, values, [*values[1:], 0.0], strict=False)]
    assert gae(rewards, values, gamma, 1.0) == pytest.approx(far, abs=CLOSE)
    assert gae(rewards, values, gamma, 0.0) == pytest.approx(near, abs=CLOSE)


@pytest.mark.parametrize(
    ("rewards", "filled"),
    [
        ([None, None, None], [0.5, 0.5, 10.5]),
        ([1.0, None, None], [1.0, 0.5, 10.5]),
        ([None, None, 2.0], [0.5, 0.5, 2.0]),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        ([], []),
    ],
)
def test_a_score_stands_in_for_the_missing_reward_of_the_end(rewards: list[float | None], filled: list[float]) -> None:
    assert filled_rewards(rewards, score=10.0, default=0.5) == filled


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan])
def test_a_discount_is_a_share(gamma: float) -> None:
    with pytest.raises(ValueError, match=r"gamma is .*; expected a number from 0 to 1"):
        returns([1.0], gamma)


# ── episodes of a group ──────────────────────────────────────────────────────────────────────────────────────────────


@given(scores.filter(lambda values: len(values) > 1), st.sampled_from([1e-6, 1e-4]))
def test_grpo_is_the_formula(values: list[float], eps: float) -> None:
    by_hand = (np.array(values) - np.mean(values)) / (np.std(values, ddof=1) + eps)
    assert grpo(values, eps=eps) == pytest.approx(by_hand.tolist(), abs=CLOSE)


@given(scores.filter(lambda values: len(values) > 1))
def test_dr_grpo_and_rloo_are_the_formulas(values: list[float]) -> None:
    others = [value - np.mean(values[:place] + values[place + 1 :]) for place, value in enumerate(values)]
    assert dr_grpo(values) == pytest.approx((np.array(values) - np.mean(values)).tolist(), abs=CLOSE)
    assert rloo(values) == pytest.approx(others, abs=CLOSE)


@given(st.lists(st.tuples(score, st.sampled_from("ab")), min_size=2, max_size=10))
def test_what_the_batch_divides_by(pairs: list[tuple[float, str]]) -> None:
    values, groups = [value for value, _ in pairs], [group for _, group in pairs]
    means = {name: np.mean([value for value, group in pairs if group == name]) for name in groups}
    centred = np.array([value - means[group] for value, group in pairs])
    whitened = centred / (np.std(centred, ddof=1) + 1e-6)
    by_scores = centred / (np.std(values, ddof=1) + 1e-6)
    assert reinforce_plus_plus_baseline(values, groups) == pytest.approx(whitened.tolist(), abs=1e-6)
    assert grpo(values, groups, scale="batch") == pytest.approx(by_scores.tolist(), abs=1e-6)


@by_group
@given(values=maybe_scores, data=st.data())
def test_a_failed_episode_is_left_out_and_the_others_do_not_notice(
    advantages: GroupAdvantages, values: list[float | None], data: st.DataObject
) -> None:
    groups = data.draw(st.lists(st.sampled_from("ab"), min_size=len(values), max_size=len(values)))
    found = advantages(values, groups)
    assert [place for place, value in enumerate(found) if value is None] == [
        place for place, value in enumerate(scored(values)) if value is None
    ]
    survivors = [group for group, value in zip(groups, scored(values), strict=True) if value is not None]
    assert known(found) == advantages(known(values), survivors)


@by_group
@given(pairs=st.lists(st.tuples(score, st.sampled_from("abc")), max_size=12), data=st.data())
def test_groups_do_not_touch_each_other_and_their_advantages_cancel_out(
    advantages: GroupAdvantages, pairs: list[tuple[float, str]], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(pairs))))
    found = advantages([pairs[place][0] for place in order], [pairs[place][1] for place in order])
    for name in "abc":
        alone = advantages([value for value, group in pairs if group == name], [name] * len(pairs_of(pairs, name)))
        there = {place: value for place, value in zip(order, found, strict=True) if pairs[place][1] == name}
        assert [there[place] for place in sorted(there)] == pytest.approx(alone, abs=CLOSE)
        assert sum(known(alone)) == pytest.approx(0, abs=1e-6)


def pairs_of(pairs: list[tuple[float, str]], name: str) -> list[tuple[float, str]]:
    return [pair for pair in pairs if pair[1] == name]


@given(score, st.integers(1, 9))
def test_equal_scores_give_exactly_nothing(value: float, count: int) -> None:
    for advantages in BY_GROUP:
        assert advantages([value] * count, ["p"] * count) == [0.0] * count
    assert grpo([value] * count, eps=0.0) == [0.0] * count


def test_a_group_of_one_gives_nothing_or_its_score_for_parity() -> None:
    values, groups = [1.0, None, 0.0, 1.0], ["alone", "alone", "pair", "pair"]
    assert dr_grpo(values, groups) == [0.0, None, -0.5, 0.5]
    assert dr_grpo(values, groups, alone="score") == [1.0, None, -0.5, 0.5]
    assert rloo(values, groups) == [0.0, None, -1.0, 1.0]
    assert rloo(values, groups, alone="score") == [1.0, None, -1.0, 1.0]
    assert grpo(values, groups)[0] == 0.0
    assert grpo(values, groups, alone="score")[0] == pytest.approx(1 / (1 + 1e-6))


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(ValueError, match=r"score 1 is inf; expected a finite number"):
        grpo([1.0, math.inf])
    with pytest.raises(ValueError, match="1 groups were given for 2 of scores"):
        grpo([1.0, 2.0], ["p"])


# ── GiGPO ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def slow_gigpo(
    episodes: Sequence[Trajectory], gamma: float, omega: float, mode: str, statistics: str
) -> list[list[float]]:
    """Equations 3 and 5 to 8, each step compared with each other."""

    def relative(value: float, others: list[float]) -> float:
        centred = value - float(np.mean(others))
        return centred if mode == "mean_norm" else centred / (float(np.std(others, ddof=1)) + 1e-6)

    rows = [
        (place, step, episode.group, episode.states[step])
        for place, episode in enumerate(episodes)
        for step in range(len(episode.states))
    ]
    gains = [returns(episode.rewards, gamma) for episode in episodes]
    found: list[list[float]] = [[] for _ in episodes]
    for place, step, group, state in rows:
        times = [len(other.states) if statistics == "per_step" else 1 for other in episodes]
        peers = [
            other.score or 0.0
            for other, count in zip(episodes, times, strict=True)
            for _ in range(count)
            if other.group == group
        ]
        overall = relative(episodes[place].score or 0.0, peers) if len(peers) > 1 else 0.0
        same = [gains[other][at] for other, at, theirs, seen in rows if (theirs, seen) == (group, state)]
        own = relative(gains[place][step], same) if len(same) > 1 else 0.0
        found[place].append(overall + omega * own)
    return found


@st.composite
def trajectories(draw: st.DrawFn) -> list[Trajectory]:
    found = []
    for _ in range(draw(st.integers(1, 6))):
        length = draw(st.integers(1, 5))
        states = draw(st.lists(st.sampled_from("ABC"), min_size=length, max_size=length))
        rewards = draw(st.lists(score, min_size=length, max_size=length))
        found.append(Trajectory(draw(st.sampled_from("pq")), states, rewards, sum(rewards)))
    return found


@given(
    trajectories(),
    st.sampled_from([0.0, 0.9, 1.0]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from(["mean_norm", "mean_std_norm"]),
    st.sampled_from(["per_episode", "per_step"]),
)
def test_gigpo_is_the_equations(
    episodes: list[Trajectory], gamma: float, omega: float, mode: Any, statistics: Any
) -> None:
    found = gigpo(episodes, gamma=gamma, omega=omega, mode=mode, statistics=statistics)
    expected = slow_gigpo(episodes, gamma, omega, mode, statistics)
    for credit, advantages in zip(found, expected, strict=True):
        assert credit is not None
        # Rounding of a mean is a large share of `eps` where all values are equal up to their last digit.
        assert credit.advantages == pytest.approx(advantages, abs=1e-6)


@given(trajectories(), st.data())
def test_gigpo_leaves_failed_episodes_out(episodes: list[Trajectory], data: st.DataObject) -> None:
    failed = set(data.draw(st.lists(st.integers(0, len(episodes) - 1))))
    broken = [
        Trajectory(one.group, one.states, [math.nan] * len(one.rewards), None) if place in failed else one
        for place, one in enumerate(episodes)
    ]
    found = gigpo(broken)
    assert [place for place, credit in enumerate(found) if credit is None] == sorted(failed)
    left = [one for place, one in enumerate(episodes) if place not in failed]
    assert [credit for credit in found if credit is not None] == gigpo(left)


def reference_cases() -> list[Any]:
    if REFERENCE is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason="shared/data/gigpo_dev.json is not beside this tree"))]
    cases = json.loads(REFERENCE.read_text(encoding="utf-8"))["cases"]
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("statistics", ["per_episode", "per_step"])
@pytest.mark.parametrize("case", reference_cases())
def test_gigpo_gives_the_reference_values(case: dict[str, Any], statistics: Any) -> None:
    given, expected = case["input"], case["output"]
    episodes = []
    for episode in given["episodes"]:
        *before, last = episode["step_rewards"]
        rewards = [*before, last + episode["terminal_reward"]]
        episodes.append(Trajectory(episode["group"], episode["states"], rewards, sum(rewards)))
    found = gigpo(
        episodes,
        gamma=given["gamma"],
        omega=given["omega"],
        mode=given["mode"],
        statistics=statistics,
        similarity=given["similarity"],
        eps=given["epsilon"],
        alone="score",
    )
    credits = [credit for credit in found if credit is not None]
    assert len(credits) == len(episodes)
    compared: dict[str, Callable[[EpisodeCredit], list[float]]] = {
        "returns": lambda credit: credit.returns,
        "step_advantages": lambda credit: credit.step_advantages,
        f"episode_advantages_{statistics}": lambda credit: [credit.episode_advantage] * len(credit.returns),
        f"joint_{statistics}": lambda credit: credit.advantages,
    }
    assert [credit.step_groups for credit in credits] == expected["step_groups"]
    for name, values in compared.items():
        for credit, right in zip(credits, expected[name], strict=True):
            assert values(credit) == pytest.approx(right, abs=1e-6), name


def test_turns_are_compared_with_the_same_turn() -> None:
    episodes = [
        Trajectory("p", ["A", "B"], [0.0, 1.0], 1.0),
        Trajectory("p", ["A", "C", "D"], [0.0, 0.0, 0.0], 0.0),
        Trajectory("p", ["A"], [1.0], None),
        Trajectory("q", ["A"], [5.0], 5.0),
    ]
    assert turn_level(episodes, mode="mean_norm") == [[0.5, 0.5], [-0.5, -0.5, 0.0], None, [0.0]]


def test_what_is_no_episode_is_refused() -> None:
    with pytest.raises(ValueError, match="1 states were given for 2 of rewards"):
        Trajectory("p", ["A"], [0.0, 1.0], 1.0)
    with pytest.raises(ValueError, match="episode 0 has a reward that is not finite"):
        gigpo([Trajectory("p", ["A"], [math.nan], 1.0)])


def test_the_work_of_gigpo_grows_with_the_steps_and_no_faster() -> None:
    def work(count: int) -> None:
        gigpo(
            [
                Trajectory(n // 8, [f"{n * step % 7}" for step in range(10)], [float(n % 2)] * 10, float(n % 3))
                for n in range(count)
            ],
            mode="mean_std_norm",
        )

    assert growth_of_calls(work, 64) < 4.4


# ── trees ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[float | None], list[int], list[Branch | None], list[str]]:
    """Episodes of two prompts, some of which branch off from earlier ones, in an order of their own."""
    lengths: list[int] = []
    branches: list[Branch | None] = []
    groups: list[str] = []
    for place in range(draw(st.integers(1, 7))):
        parent = draw(st.integers(0, place - 1)) if place and draw(st.booleans()) else None
        step = 0 if parent is None else draw(st.integers(0, lengths[parent]))
        groups.append(draw(st.sampled_from("pq")) if parent is None else groups[parent])
        branches.append(None if parent is None else Branch(parent, step))
        lengths.append(step + draw(st.integers(0 if parent is not None else 1, 3)))
    count = len(lengths)
    order = draw(st.permutations(range(count)))
    moved = {old: new for new, old in enumerate(order)}
    values = draw(st.lists(st.none() | score, min_size=count, max_size=count))
    at = [branches[old] for old in order]
    return (
        values,
        [lengths[old] for old in order],
        [None if branch is None else Branch(moved[branch.parent], branch.step) for branch in at],
        [groups[old] for old in order],
    )


def owner(place: int, step: int, branches: Sequence[Branch | None]) -> tuple[int, int]:
    """The episode that first took a step which this one passes."""
    branch = branches[place]
    return (place, step) if branch is None or step >= branch.step else owner(branch.parent, step, branches)


@given(trees())
def test_tree_values_are_the_means_over_the_episodes_that_pass(tree: Any) -> None:
    values, lengths, branches, groups = tree

    def value(place: int, step: int) -> float:
        if step < 0:
            peers = [v for v, group in zip(values, groups, strict=True) if v is not None and group == groups[place]]
        else:
            peers = [
                v
                for other, v in enumerate(values)
                if v is not None and step < lengths[other]
                if owner(other, step, branches) == owner(place, step, branches)
            ]
        return float(np.mean(peers))

    for place, found in enumerate(tree_values(values, lengths, branches, groups)):
        if values[place] is None:
            assert found is None
            continue
        steps = range(lengths[place])
        by_hand = [2 * value(place, step) - value(place, -1) - value(place, step - 1) for step in steps]
        assert found == pytest.approx(by_hand, abs=CLOSE)


def test_a_shared_step_may_be_divided_among_those_who_share_it() -> None:
    values, branches = [1.0, 0.0, 0.0], [None, Branch(0, 1), None]
    whole = tree_values(values, [2, 2, 1], branches)
    assert whole == [
        pytest.approx([1 / 3, 7 / 6]),
        pytest.approx([1 / 3, -5 / 6]),
        pytest.approx([-2 / 3]),
    ]
    divided = tree_values(values, [2, 2, 1], branches, shared="divided")
    assert divided[0] == pytest.approx([1 / 6, 7 / 6])
    rooted = tree_values(values, [2, 2, 1], branches, shared="root")
    assert rooted[0] == pytest.approx([1 / 3 / math.sqrt(2), 7 / 6])


@given(trees())
def test_tree_grpo_is_grpo_within_the_tree_and_among_all(tree: Any) -> None:
    values, _, branches, groups = tree
    roots = []
    for place in range(len(values)):
        at = place
        while (branch := branches[at]) is not None:
            at = branch.parent
        roots.append(at)
    within, between = grpo(values, roots), grpo(values, groups)
    expected = [None if a is None or b is None else a + b for a, b in zip(within, between, strict=True)]
    assert tree_grpo(values, branches, groups) == expected


@pytest.mark.parametrize(
    ("branches", "complaint"),
    [
        ([Branch(1, 0), Branch(0, 0)], "branches off from itself"),
        ([None, Branch(7, 0)], "branches off from episode 7; there are 2"),
        ([None, Branch(0, 5)], "branches off at step 5; it has 3 steps, and its parent 3"),
        ([None], "1 branches were given for 2"),
    ],
)
def test_what_is_no_tree_is_refused(branches: list[Branch | None], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        tree_values([1.0, 0.0], [3, 3], branches)


def test_a_branch_stays_in_its_group() -> None:
    with pytest.raises(ValueError, match="episode 1 branches off from episode 0 of another group"):
        tree_values([1.0, 0.0], [3, 3], [None, Branch(0, 1)], ["p", "q"])
