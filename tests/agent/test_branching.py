# SPDX-License-Identifier: Apache-2.0
"""Branches: which draws leave which episodes, that they share what came before, and pay only for what is new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.agent import Episodes
from reward_kit.agent.branching import Branches
from reward_kit.agent.environment import environment_of
from reward_kit.config_models import FIRST_BRANCH, BranchingConfig, Sampling, load_config
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.models import Branch, Message, Rollout, Step
from reward_kit.storage.candidates import read_queries
from tests.agent.worlds import SAMPLE, Account, Model, call, calls, essence, says, settings, turn_of
from tests.loopback.runs import lines

B = FIRST_BRANCH


def script(messages: list[Message] | Any, draw: int) -> Message:
    """Deposit another sum in each draw, four times."""
    return calls(call("deposit", {"amount": draw % B + 1})) if turn_of(messages) < 4 else says("done")


def branching(**given: Any) -> BranchingConfig:
    return BranchingConfig.model_validate(given)


async def played(
    model: Model, draws: list[int], known: dict[int, Rollout] | None = None, **given: Any
) -> list[Rollout]:
    branches = Branches(branching(**given), 2)
    play = Episodes(
        model, Sampling(), None, environment_of(Account), settings(), branches=branches,
        known=lambda _, draw: (known or {}).get(draw),
    )  # fmt: skip
    return await play(SAMPLE, draws)


async def test_a_branch_shares_the_steps_before_it_and_asks_only_for_the_rest() -> None:
    model = Model(script)
    rollouts = await played(model, [0, 1, B, B + 1, B + 2], total=3, at=[2])
    assert [rollout.branch for rollout in rollouts[:2]] == [None, None]
    assert [rollout.branch for rollout in rollouts[2:]] == [
        Branch(response_index=0, step=2), Branch(response_index=1, step=2), Branch(response_index=0, step=2),
    ]  # fmt: skip
    for rollout in rollouts[2:]:
        assert rollout.branch is not None and rollout.steps is not None
        parent = rollouts[rollout.branch.response_index]
        assert rollout.turns[:4] == parent.turns[:4]
        assert rollout.facts == {
            "balance": 2 * (parent.response_index + 1) + 2 * (rollout.response_index % B + 1),
            "history": [parent.response_index + 1] * 2 + [rollout.response_index % B + 1] * 2,
        }
    assert len(model.asked) == 2 * 5 + 3 * 3, "two whole episodes, and the rest of three"


async def test_branches_of_known_episodes_are_the_same_as_in_one_go() -> None:
    whole = await played(Model(script), [0, 1, *range(B, B + 4)], total=4, at=1, depth=2)
    model = Model(script)
    known = {rollout.response_index: rollout for rollout in whole[:3]}
    later = await played(model, [B + 1, B + 2, B + 3], known, total=4, at=1, depth=2)
    assert [essence(rollout) for rollout in later] == [essence(rollout) for rollout in whole[3:]]
    assert {draw for _, draw, _ in model.asked} == {B + 1, B + 2, B + 3}


def rollout(draw: int, steps: int) -> Rollout:
    return Rollout(sample=SAMPLE, response_index=draw, steps=[Step(turn=i) for i in range(steps)])


@given(st.integers(1, 5), st.integers(1, 20), st.integers(1, 4), st.one_of(st.integers(1, 6), st.none()))
def test_every_draw_is_in_one_level_and_each_leaves_at_a_step_that_was_taken(
    n: int, total: int, depth: int, width: int | None
) -> None:
    branches = Branches(branching(total=total, at=1, depth=depth, width=width), n)
    levels = branches.levels()
    assert [draw for level in levels for draw in level] == [*range(n), *range(B, B + total)]
    parents = [rollout(draw, draw + 1) for draw in levels[0]]
    leaving = branches.leaving(parents, levels[1])
    assert leaving.keys() == set(levels[1])
    for left in leaving.values():
        assert left is None or 0 < left.step < len(left.parent.steps or ())
    assert (None in leaving.values()) == (n == 1), "an episode of one step has no middle"


def test_a_width_says_how_many_leave_at_one_step() -> None:
    leaving = Branches(branching(total=6, at=1, width=3), 2).leaving([rollout(0, 9), rollout(1, 9)], range(2, 8))
    taken = [(left.parent.response_index, left.step) for left in leaving.values() if left is not None]
    assert len(set(taken)) == 2 and all(taken.count(point) == 3 for point in taken)


def chosen(rollout: Rollout) -> list[int]:
    """The last step."""
    return [len(rollout.steps or ()) - 1]


def test_a_function_may_choose_the_steps() -> None:
    leaving = Branches(branching(total=1, at=f"{__file__}:chosen"), 1).leaving([rollout(0, 5)], [1])
    assert [left.step for left in leaving.values() if left is not None] == [4]


def test_what_cannot_be_loaded_is_told() -> None:
    with pytest.raises(ValueError, match="cannot be loaded"):
        Branches(branching(total=1, at="nowhere:nothing"), 1)


@pytest.mark.parametrize("at", [0, -1, [], [0]])
def test_branches_leave_at_a_step_that_can_be(at: Any) -> None:
    with pytest.raises(ValueError, match="step 1 or later"):
        branching(total=1, at=at)


def test_raising_n_moves_no_branch(tmp_path: Path) -> None:
    def run(n: int) -> list[tuple[int, Any]]:
        config = load_config(
            {
                "generation": {"model_name": "mock", "n": n, "cache": {"enabled": False}},
                "agent": {"environment": "tests.agent.worlds:Account", "branching": {"total": 2, "at": 2}},
                "reward": {"function_path": "tests.agent.worlds:of_the_facts"},
                "output": {"output_dir": str(tmp_path)},
            }
        )
        rows = [{"id": "s", "prompt": "Go."}]
        assert EvaluationPipeline(config, samples=rows, client=Model(script)).run().status == "finished"
        return [(row["response_index"], row.get("branch")) for row in lines(tmp_path / "rollouts.jsonl")]

    first, later = run(2), run(4)
    assert [index for index, _ in first] == [0, 1, B, B + 1]
    assert [index for index, _ in later] == [0, 1, 2, 3, B, B + 1]
    assert later[4:] == first[2:]
    (query,) = read_queries(tmp_path)
    assert [candidate.candidate_idx for candidate in query.candidates] == [0, 1, 2, 3], "a branch is no answer"
