# SPDX-License-Identifier: Apache-2.0
"""The frozen lakes: the game keeps its rules, and what is played there comes out with credit."""

from __future__ import annotations

from collections import Counter, deque
from pathlib import Path

import pytest

from examples.agent_frozen_lake.lake import LAKES, MOVES, Lake, reached, samples
from reward_kit.agent.step_credit import CreditSettings, step_credits
from reward_kit.agent.step_rows import episode_rows
from reward_kit.evaluation import evaluate
from reward_kit.models import Message
from reward_kit.storage.judged_episodes import read_episodes

HERE = "examples.agent_frozen_lake.lake"


def walk(place: int, *moves: str) -> tuple[Lake, list[float | None], bool]:
    world = Lake(samples()[place])
    world.start()
    answers = [world.answer(Message(role="assistant", content=move)) for move in moves]
    return world, [answer.reward for answer in answers], answers[-1].done


def test_the_goal_brings_a_reward_and_a_hole_ends_the_walk() -> None:
    won, rewards, over = walk(0, "down", "down", "right", "down", "right", "right")
    assert (rewards, over, won.facts()) == ([0.0] * 5 + [1.0], True, {"reached": True})
    assert reached(won.facts()).score == 1.0
    lost, rewards, over = walk(0, "right", "down")
    assert (rewards, over, lost.facts()) == ([0.0, 0.0], True, {"reached": False})


@pytest.mark.parametrize("said", ["up", "left", "north", ""])
def test_the_edge_and_words_that_are_no_move_leave_the_walker_where_it_is(said: str) -> None:
    world, _, over = walk(0, said)
    assert not over and world.start().state == Lake(samples()[0]).start().state


@pytest.mark.parametrize("place", range(len(LAKES)))
def test_every_lake_can_be_crossed(place: int) -> None:
    paths: deque[tuple[str, ...]] = deque([()])
    seen = set()
    while paths:
        path = paths.popleft()
        world, _, over = walk(place, *path) if path else (Lake(samples()[place]), [], False)
        if world.facts()["reached"]:
            return
        if not over and world.place not in seen:
            seen.add(world.place)
            paths.extend((*path, move) for move in MOVES)
    pytest.fail(f"there is no way to the goal of {LAKES[place]!r}")


def test_a_run_of_the_game_becomes_steps_with_credit(tmp_path: Path) -> None:
    rows = [{"id": "lake", "user_query": "Walk to G.", "lake": "SG OO"}]
    evaluate(
        rows,
        f"{HERE}:reached",
        model="mock",
        n=8,
        generation={"mock": {"responses": ["right", "down", "left"]}},
        agent={"environment": f"{HERE}:Lake", "max_turns": 3},
        output_dir=tmp_path,
    )
    (episodes,) = read_episodes(tmp_path)
    assert {episode.ended for episode in episodes} == {"done", "max_turns"}, "some walk, some fall, some stand still"
    credits = step_credits(episodes, CreditSettings(gamma=1.0))
    mean = sum(episode.score or 0.0 for episode in episodes) / 8
    starts = [step for steps in credits for step in steps or ()]
    assert {step.state_group for step in starts} == {0}, "everybody only ever stood at the start"
    for episode, steps in zip(episodes, credits, strict=True):
        assert steps is not None and len(steps) == (3 if episode.truncated else 1)
        assert steps[0].episode_advantage == pytest.approx((episode.score or 0.0) - mean)
    counts: Counter[str] = Counter()
    made = list(episode_rows([episodes], "steps", CreditSettings(), counts))
    assert counts["rows"] == len(starts) == len(made)
    assert made[0]["prompt"][-1] == {"role": "user", "content": "PG\nOO"}
    assert made[0]["completion"][0]["content"] in MOVES
