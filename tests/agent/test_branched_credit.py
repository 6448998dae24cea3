# SPDX-License-Identifier: Apache-2.0
"""Credit of episodes that branch off others, from a real run: what they share on disk is what the trees share."""

from __future__ import annotations

import pytest

from reward_kit.agent.credit import Branch, tree_grpo, tree_values
from reward_kit.agent.step_credit import CreditSettings, step_credits
from reward_kit.evaluation import evaluate
from reward_kit.storage.judged_episodes import JudgedEpisode, read_episodes

LAKE = "examples.agent_frozen_lake.lake"


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> list[JudgedEpisode]:
    run = tmp_path_factory.mktemp("branched")
    evaluate(
        [{"id": "lake", "user_query": "Walk to G.", "lake": "S.G ... .O."}],
        f"{LAKE}:reached",
        model="mock",
        n=3,
        generation={"mock": {"responses": ["right", "right", "left", "down"]}},
        agent={"environment": f"{LAKE}:Lake", "max_turns": 4, "branching": {"at": 1, "total": 5, "depth": 2}},
        output_dir=run,
    )
    (found,) = read_episodes(run)
    return found


def test_a_branch_has_the_steps_that_it_shares_and_its_own(episodes: list[JudgedEpisode]) -> None:
    branched = [episode for episode in episodes if episode.branch is not None]
    assert len(episodes) == 8 and branched
    by_index = {episode.response_index: episode for episode in episodes}
    for episode in branched:
        assert episode.branch is not None
        parent, step = by_index[episode.branch.response_index], episode.branch.step
        assert [one.state for one in episode.steps[: step + 1]] == [one.state for one in parent.steps[: step + 1]]
        shared = episode.steps[step - 1].turn + 1
        assert episode.turns[:shared] == parent.turns[:shared]


def test_trees_are_made_of_what_is_on_disk(episodes: list[JudgedEpisode]) -> None:
    scores, lengths = [episode.score for episode in episodes], [len(episode.steps) for episode in episodes]
    assert len(set(scores)) == 2, "some reach the goal, some do not"
    places = {episode.response_index: place for place, episode in enumerate(episodes)}
    left = [episode.branch for episode in episodes]
    branches = [None if point is None else Branch(places[point.response_index], point.step) for point in left]
    found = [step_credits(episodes, CreditSettings(method=method)) for method in ("tree_values", "tree_grpo")]
    by_step, by_episode = ([[step.advantage for step in steps or ()] for steps in made] for made in found)
    assert by_step == tree_values(scores, lengths, branches)
    assert [steps[0] for steps in by_episode] == tree_grpo(scores, branches)
