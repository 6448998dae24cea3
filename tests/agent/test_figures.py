# SPDX-License-Identifier: Apache-2.0
"""The figures of episodes: what is counted, over what the intervals are, and that branches are in no mean."""

from __future__ import annotations

from typing import Any

from reward_kit.agent.figures import EpisodeFigures
from reward_kit.analysis.present.episode_tables import episode_tables


def episode(rewards: list[float | None], errors: int = 0, ended: str = "done", **more: Any) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"reward": reward, "calls": [{"id": "c", "name": "f"}]} for reward in rewards]
    for step in steps[:errors]:
        step["calls"] = [{"id": "c", "name": "f", "error": "schema"}]
    return {"steps": steps, "ended": ended, "truncated": ended == "max_turns", **more}


def figures_of(*samples: list[dict[str, Any]]) -> dict[str, Any]:
    found = EpisodeFigures()
    for sample in samples:
        found.add(sample)
    return found.figures()


def test_turns_calls_errors_ends_and_rewards_are_counted_by_episode() -> None:
    found = figures_of(
        [episode([1.0, 0.0]), episode([0.0], errors=1, ended="max_turns")],
        [episode([None, 2.0, 3.0]), episode([None], ended="answered")],
    )
    assert found["episodes"] == 4 and found["truncated"] == 1
    assert found["ended"] == {"done": 2, "max_turns": 1, "answered": 1}
    assert found["turns"]["value"] == 7 / 4 and found["turns"]["samples"] == 2
    assert found["tool_errors"]["value"] == 1 / 4
    assert found["tool_errors_by_kind"] == {"schema": 1}
    assert found["step_rewards"]["value"] == 6 / 3, "an episode without any reward has no sum"
    assert [step["value"] for step in found["reward_by_step"]] == [0.5, 1.0, 3.0]


def test_rewards_that_the_reward_gave_count_before_those_of_the_world() -> None:
    told = episode([5.0, 5.0], step_outputs=[{"step_index": "1", "base_reward": 0.25}])
    found = figures_of([told], [told])
    assert found["step_rewards"]["value"] == 0.25
    assert found["reward_by_step"][1]["value"] == 0.25 and found["reward_by_step"][0] is None


def test_a_branch_is_counted_and_is_in_no_mean() -> None:
    alone = figures_of([episode([1.0])], [episode([0.0])])
    branched = figures_of(
        [episode([1.0]), episode([1.0, 9.0, 9.0], branch={"response_index": 0, "step": 1})], [episode([0.0])]
    )
    assert branched.pop("branches") == 1
    assert branched == alone


def test_the_same_episodes_of_more_samples_make_a_narrower_interval() -> None:
    few = figures_of(*[[episode([float(i % 2)])] for i in range(4)])
    many = figures_of(*[[episode([float(i % 2)])] for i in range(64)])
    assert few["step_rewards"]["high"] - few["step_rewards"]["low"] > (
        many["step_rewards"]["high"] - many["step_rewards"]["low"]
    )


def test_tables_say_what_was_found_and_leave_out_what_was_not() -> None:
    found = figures_of([episode([1.0] * 20, errors=2)], [episode([1.0] * 20)])
    titles = [table.title for table in episode_tables(found, full=False)]
    assert titles == ["Episodes", "How episodes ended", "Tool calls that went wrong", "Reward by step"]
    assert len(episode_tables(found, full=False)[-1].rows) < len(episode_tables(found, full=True)[-1].rows) == 20
    plain = figures_of([episode([None])], [episode([None])])
    assert [table.title for table in episode_tables(plain, full=True)] == ["Episodes", "How episodes ended"]
    assert episode_tables(None, full=True) == []
