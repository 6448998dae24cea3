# SPDX-License-Identifier: Apache-2.0
"""Group rewards: all answers of a sample at once, in batch mode."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import ConfigError
from reward_kit.evaluation import evaluate
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._judging.pairings import pairings
from reward_kit.rewards.group import majority_vote_reward, relative_length_reward, tournament_reward

QUESTION = Message(role="user", content="?")


def saying(*texts: str) -> list[list[Message]]:
    return [[QUESTION, Message(role="assistant", content=text)] for text in texts]


def boxed(*answers: str) -> list[list[Message]]:
    return saying(*(f"So \\boxed{{{answer}}}." for answer in answers))


def scores(results: list[EvaluateResult]) -> list[float | None]:
    return [result.score if result.is_score_valid else None for result in results]


# ── agreement ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_votes_are_counted_by_meaning() -> None:
    results = majority_vote_reward(boxed("0.5", "\\frac{1}{2}", "2", "1/2"))
    assert scores(results) == [1.0, 1.0, 0.0, 1.0]
    assert [result.metrics["agreement"].score for result in results] == [0.75, 0.75, 0.25, 0.75]


def test_a_tie_is_shared_and_no_agreement_is_no_verdict() -> None:
    assert scores(majority_vote_reward(boxed("1", "2", "1", "2", "3"))) == [0.5, 0.5, 0.5, 0.5, 0.0]
    assert scores(majority_vote_reward(boxed("1", "2", "3"))) == [None, None, None]
    assert scores(majority_vote_reward(boxed("1", "2", "3"), at_least=1)) == pytest.approx([1 / 3] * 3)
    assert majority_vote_reward([]) == []


def test_who_gives_no_answer_has_no_vote() -> None:
    rollouts = [*boxed("7", "7"), *saying("I do not know, sorry", ""), [QUESTION]]
    assert scores(majority_vote_reward(rollouts)) == [1.0, 1.0, 0.0, 0.0, 0.0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_the_most_frequent_answer_wins_whatever_the_order(answers: list[int]) -> None:
    counts = Counter(answers)
    most = max(counts.values())
    winners = [answer for answer, count in counts.items() if count == most]
    wanted = (
        [1 / len(winners) if answer in winners else 0.0 for answer in answers] if most > 1 else [None] * len(answers)
    )
    assert scores(majority_vote_reward(boxed(*map(str, answers)))) == wanted


# ── comparison ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Longer:
    """A judge that prefers the longer answer, and counts what it is asked."""

    def __init__(self, broken: bool = False) -> None:
        self.asked = 0
        self._broken = broken

    async def ask(self, prompt: Any, draws: Any = (0,)) -> list[str]:
        self.asked += 1
        first, second = (part.split("<<<end")[0] for part in str(prompt).split("<<<answer ")[1:])
        choice = "A" if len(first) > len(second) else "B" if len(second) > len(first) else "TIE"
        return ["Hm." if self._broken else f"VERDICT: {choice}"] * len(draws)


async def test_everybody_plays_everybody_in_a_small_group() -> None:
    judge = Longer()
    results = await tournament_reward(saying("a", "bbb", "bb", "cc"), judge=judge)
    assert scores(results) == pytest.approx([0.0, 1.0, 0.5, 0.5]) and judge.asked == 12
    assert results[1].reason == "3 won, 0 tied, 0 lost"


async def test_a_large_group_plays_a_few_games_each() -> None:
    judge = Longer()
    texts = ["x" * length for length in range(1, 21)]
    results = await tournament_reward(saying(*texts), judge=judge, games=4)
    assert judge.asked == 20 * 4 and results[-1].score == 1.0 and results[0].score == 0.0


async def test_an_empty_answer_loses_and_two_tie_without_a_game() -> None:
    judge = Longer()
    assert scores(await tournament_reward(saying("a", "", ""), judge=judge)) == [1.0, 0.25, 0.25]
    assert judge.asked == 0


async def test_games_without_a_verdict_are_no_zeros() -> None:
    assert scores(await tournament_reward(saying("a", "b"), judge=Longer(broken=True))) == [None, None]
    assert scores(await tournament_reward(saying("a"), judge=Longer())) == [None]
    mixed = await tournament_reward(saying("a", "b", ""), judge=Longer(broken=True))
    assert scores(mixed) == [1.0, 1.0, 0.0]


@given(st.integers(0, 15), st.integers(0, 15))
def test_all_play_equally_often_and_nobody_the_same_twice(players: int, games: int) -> None:
    pairs = pairings(players, games)
    assert len(set(pairs)) == len(pairs) and all(one < other < players for one, other in pairs)
    played = Counter(player for pair in pairs for player in pair)
    wanted = min(games, max(players - 1, 0))
    wanted += players % 2 * (wanted % 2)
    assert all(played[player] == wanted for player in range(players))


# ── length ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def right(messages: list[Message], ground_truth: Any, **kwargs: Any) -> EvaluateResult:
    if "?" in messages[-1].text:
        return EvaluateResult(score=0.0, is_score_valid=False, reason="cannot tell")
    return EvaluateResult(score=float(ground_truth in messages[-1].text))


def test_shorter_is_better_among_equals() -> None:
    assert scores(relative_length_reward(saying("aaaa", "aa", "aaa"))) == [0.0, 1.0, 0.5]
    assert scores(relative_length_reward(saying("aa", "bb"))) == [1.0, 1.0]
    assert scores(relative_length_reward([*saying("aa"), [QUESTION]])) == [1.0, None], "nothing was answered there"


def test_being_short_pays_only_where_being_right_does() -> None:
    rollouts = saying("4", "it is 4", "no", "4 or so, I would say", "4?", "")
    results = relative_length_reward(rollouts, "4", verifier=right)
    assert scores(results) == [1.0, pytest.approx(13 / 19), 0.0, 0.0, None, 0.0]
    assert results[2].metrics["verified"].score == 0.0


def test_the_verifier_may_be_a_path_with_params(tmp_path: Path) -> None:
    rows = [{"id": "1", "user_query": "?", "ground_truth_for_eval": "4"}]
    replies = ["\\boxed{4}", "It is \\boxed{4}.", "\\boxed{5}"]
    result = evaluate(
        rows, "reward_kit.rewards.group:relative_length_reward", n=3, model="mock", output_dir=tmp_path,
        generation={"mock": {"responses": replies}, "cache": {"enabled": False}},
        params={"verifier": "reward_kit.rewards.math:math_reward", "verifier_params": {"tolerance": 0.0}},
    )  # fmt: skip
    assert result.mean_score == pytest.approx(1 / 3) and result.judged == 3


def stopped(response: str, finish_reason: str, ground_truth: float) -> float:
    """A verifier that looks at more than what was said."""
    return float(finish_reason == "stop" and float(response) == ground_truth)


def test_the_verifier_is_handed_the_rollout_as_in_a_run(tmp_path: Path) -> None:
    rows = [{"user_query": "2 + 2?", "ground_truth": 4}]
    run = evaluate(
        rows, relative_length_reward, n=2, model="mock", output_dir=tmp_path,
        params={"verifier": stopped}, generation={"mock": {"responses": ["4", "4.0"]}},
    )  # fmt: skip
    assert [row["evaluation_score"] for row in run.rows()] == [1.0, 0.0]


def test_a_verifier_must_be_one_that_can_be_called_here() -> None:
    for path in ("reward_kit.rewards.judge:judge_reward", "reward_kit.rewards.group:majority_vote_reward"):
        with pytest.raises(ConfigError, match="pointwise and synchronous"):
            relative_length_reward(saying("a"), verifier=path)
