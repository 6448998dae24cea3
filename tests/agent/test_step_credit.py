# SPDX-License-Identifier: Apache-2.0
"""Credit from a run's files alone: the right scores, rewards, states and branches reach the right formula."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest

from reward_kit.agent.credit import Branch, dr_grpo, grpo, rloo, tree_grpo, tree_values
from reward_kit.agent.step_credit import CreditSettings, Method, StepCredit, step_credits
from reward_kit.agent.step_rows import episode_rows, log_rows
from reward_kit.errors import ConfigError
from reward_kit.evaluation import evaluate
from reward_kit.models import SentBack
from reward_kit.storage.judged_episodes import JudgedEpisode, read_episodes
from tests.agent.recorded_episodes import walk, write_results

MEAN = CreditSettings(gamma=1.0)


def episodes(directory: Path, *walks: Any) -> list[JudgedEpisode]:
    (found,) = read_episodes(write_results(directory, *walks))
    return found


def credits(found: list[JudgedEpisode], settings: CreditSettings = MEAN) -> list[list[StepCredit]]:
    return [credit for credit in step_credits(found, settings) if credit is not None]


def texts(turns: list[dict[str, Any]]) -> list[str]:
    return [turn["content"] for turn in turns]


def test_turns_and_steps_are_told_from_the_prompt_and_its_examples(tmp_path: Path) -> None:
    (episode,) = episodes(tmp_path, walk("rd", "AB", score=1.0, rewards=[0.5, None]))
    assert texts(episode.prompt) == ["You are at F.", "left", "Walk to G.", "You are at A."]
    assert texts(episode.turns) == ["Begin at A.", "r", "You are at B.", "d"]
    assert [(step.turn, step.state, step.reward) for step in episode.steps] == [(1, "A", 0.5), (3, "B", None)]
    assert (episode.score, episode.ended, episode.truncated) == (1.0, "done", False)


def test_states_are_compared_and_a_failed_episode_is_left_out(tmp_path: Path) -> None:
    won, failed, lost = (
        walk("rd", "AB", score=1.0),
        walk("r", "A", score=None, index=1),
        walk("dd", "AC", score=0.0, index=2),
    )
    found = step_credits(episodes(tmp_path, won, failed, lost), MEAN)
    assert found[1] is None
    first, last = found[0], found[2]
    assert first is not None and last is not None
    assert [step.advantage for step in first] == [1.0, 0.5]
    assert [step.advantage for step in last] == [-1.0, -0.5]
    assert [step.state_group for step in first] == [0, 1]
    assert first[0] == StepCredit(0, 1, "A", 0.0, 1.0, 0, 0.5, 0.5, 1.0)


def test_what_the_reward_says_of_steps_comes_before_what_the_world_gave(tmp_path: Path) -> None:
    judged = walk("rd", "AB", score=1.0, rewards=[9.0, 9.0], outputs=[(0, 0.25), ("1", 0.5)])
    world = walk("rd", "AB", score=1.0, rewards=[0.1, 0.2], index=1)
    partly = walk("rd", "AB", score=1.0, rewards=[9.0, 9.0], outputs=[(0, 0.25)], index=2)
    found = credits(episodes(tmp_path, judged, world, partly))
    assert [[step.reward for step in steps] for steps in found] == [[0.25, 0.5], [0.1, 0.2], [0.25, 1.0]]


@pytest.mark.parametrize("method", [method for method in get_args(Method) if method != "gigpo"])
def test_each_method_is_the_formula_of_its_name(tmp_path: Path, method: Method) -> None:
    branched = walk("rd", "AC", score=0.5, index=2, branch={"response_index": 0, "step": 1})
    orphan = walk("r", "A", score=0.25, index=3, branch={"response_index": 7, "step": 1})
    found = episodes(tmp_path, walk("rd", "AB", score=1.0), walk("ddd", "ACD", score=0.0, index=1), branched, orphan)
    scores, lengths, branches = [1.0, 0.0, 0.5, 0.25], [2, 3, 2, 1], [None, None, Branch(0, 1), None]
    by_episode = {"grpo": grpo(scores), "dr_grpo": dr_grpo(scores), "rloo": rloo(scores)}
    by_episode["tree_grpo"] = tree_grpo(scores, branches)
    by_step: dict[str, Any] = {"tree_values": tree_values(scores, lengths, branches)}
    by_step["turn_level"] = [[0.5625, 0.5], [-0.4375, -0.5, 0.0], [0.0625, 0.0], [-0.1875]]
    expected = by_step.get(method) or [[a] * n for a, n in zip(by_episode[method], lengths, strict=True)]
    made = credits(found, CreditSettings(method=method, gamma=1.0))
    assert [[step.advantage for step in steps] for steps in made] == expected
    assert all((step.episode_advantage is None) == (method in by_step) for steps in made for step in steps)


def made(directory: Path, shape: Any, *walks: Any) -> tuple[list[dict[str, Any]], Counter[str]]:
    counts: Counter[str] = Counter()
    source = read_episodes(write_results(directory, *walks))
    return list(episode_rows(source, shape, MEAN, counts)), counts


def test_a_step_is_what_the_model_saw_and_what_it_said(tmp_path: Path) -> None:
    rows, counts = made(
        tmp_path,
        "steps",
        walk("rd", "AB", score=1.0),
        walk("rd", "AB", score=1.0, index=1),
        walk("r", "A", score=None, index=2),
    )
    assert counts["rows"] == 4 and counts["not judged"] == 1, "draws that said the same are all kept"
    second = rows[1]
    assert texts(second["prompt"])[-3:] == ["Begin at A.", "r", "You are at B."]
    assert second["completion"] == [{"role": "assistant", "content": "d", "reasoning_content": "hm"}]
    assert not any("reasoning_content" in turn for turn in second["prompt"]), "it was never sent back"
    assert (second["query_id"], second["response_index"], second["step"], second["num_steps"]) == ("lake", 0, 1, 2)


def test_a_prompt_has_what_the_model_thought_where_that_was_sent_back_to_it(tmp_path: Path) -> None:
    record, columns = walk("rd", "AB", score=1.0)
    kept = SentBack(by="m at x", thoughts=["reasoning"], fields={})
    turns = [turn.model_copy(update={"sent_back": kept}) for turn in record.rollout.turns]
    record = record.model_copy(update={"rollout": record.rollout.model_copy(update={"turns": turns})})
    rows, _ = made(tmp_path / "steps", "steps", (record, columns))
    assert [turn.get("reasoning_content") for turn in rows[1]["prompt"]][-2:] == ["hm", None]
    (whole,), _ = made(tmp_path / "episodes", "episodes", (record, columns))
    assert not any("sent_back" in turn for row in (*rows, whole) for turn in (*row["prompt"], *row["completion"]))


def test_an_episode_has_its_conversation_once(tmp_path: Path) -> None:
    (row,), counts = made(tmp_path, "episodes", walk("rd", "AB", score=1.0, outputs=[(0, 1.0), (0, 2.0), (5, 1.0)]))
    assert texts(row["completion"]) == ["Begin at A.", "r", "You are at B.", "d"]
    assert [step["return_to_go"] for step in row["steps"]] == [2.0, 1.0]
    assert counts["rewards for steps that do not exist"] == 1
    assert counts["steps with several rewards, of which the first counts"] == 1
    assert counts["steps without a reward"] == 1


def test_token_ids_travel_with_their_steps(tmp_path: Path) -> None:
    record, columns = walk("r", "A", score=1.0)
    columns["steps"][0]["tokens"] = {"prompt_ids": [1, 2], "ids": [3], "logprobs": [-0.5]}
    source = list(read_episodes(write_results(tmp_path, (record, columns))))
    for shape in ("steps", "episodes"):
        (row,) = episode_rows(source, shape, MEAN, Counter(), with_tokens=True)
        step = row if shape == "steps" else row["steps"][0]
        assert step["tokens"] == {"prompt_ids": [1, 2], "ids": [3], "logprobs": [-0.5]}


def test_the_log_has_the_credit_and_no_messages(tmp_path: Path) -> None:
    rows = list(log_rows(episodes(tmp_path, walk("rd", "AB", score=1.0), walk("r", "A", score=None, index=1)), MEAN))
    assert [(row["response_index"], row["step"], row["return_to_go"]) for row in rows] == [(0, 0, 1.0), (0, 1, 1.0)]
    assert not {"prompt", "completion"} & rows[0].keys()


def test_answers_of_an_ordinary_run_are_episodes_of_one_step(tmp_path: Path) -> None:
    rows = [{"id": "a", "user_query": "2 + 2?", "assistant_response": ["4", "5"]}]
    evaluate(rows, lambda response: float(response == "4"), output_dir=tmp_path)
    (found,) = read_episodes(tmp_path)
    assert [texts(one.prompt + one.turns) for one in found] == [["2 + 2?", "4"], ["2 + 2?", "5"]]
    assert [[step.advantage for step in steps] for steps in credits(found)] == [[1.0], [-1.0]], "both began alike"


def test_samples_are_groups_of_their_own(tmp_path: Path) -> None:
    walks = [walk("r", "A", score=1.0), walk("r", "A", score=0.0, query="pond", position=1)]
    found = list(read_episodes(write_results(tmp_path, *walks)))
    assert [[one.query_id for one in sample] for sample in found] == [["lake"], ["pond"]]
    assert [credits(sample)[0][0].advantage for sample in found] == [0.0, 0.0]


def test_what_holds_no_episodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no results.jsonl\. Name the output directory of a run that judged"):
        list(read_episodes(tmp_path))
