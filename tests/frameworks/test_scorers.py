# SPDX-License-Identifier: Apache-2.0
"""Scorers of autoevals, OpenEvals and DeepEval as rewards."""

from __future__ import annotations

from typing import Any

import pytest
from autoevals import ExactMatch, Levenshtein
from deepeval.metrics import ExactMatchMetric
from openevals.exact import exact_match, exact_match_async
from openevals.string.levenshtein import levenshtein_distance

from reward_kit.integrations.braintrust import scorer_to_reward_fn
from reward_kit.integrations.deepeval import adapt_metric
from reward_kit.integrations.openeval import adapt

TURNS: Any = [{"role": "user", "content": "capital?"}, {"role": "assistant", "content": "Paris"}]
REWARDS = {
    "autoevals, a class": (scorer_to_reward_fn(Levenshtein), "Levenshtein"),
    "autoevals, an object": (scorer_to_reward_fn(ExactMatch()), "ExactMatch"),
    "openevals, exact": (adapt(exact_match), "exact_match"),
    "openevals, distance": (adapt(levenshtein_distance), "levenshtein_distance"),
    "deepeval": (adapt_metric(ExactMatchMetric()), "Exact Match"),
}


@pytest.mark.parametrize("kind", REWARDS)
def test_a_scorer_is_a_reward(kind: str) -> None:
    reward, name = REWARDS[kind]
    right, wrong = (reward(messages=TURNS, ground_truth=truth) for truth in ("Paris", "Osoyoos"))
    assert right.score == right.metrics[name].score == 1.0
    assert right.is_score_valid
    assert wrong.score < 0.5


async def test_an_asynchronous_scorer_is_an_asynchronous_reward() -> None:
    assert (await adapt(exact_match_async)(messages=TURNS, ground_truth="Paris")).score == 1.0
