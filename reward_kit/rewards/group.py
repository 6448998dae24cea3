# SPDX-License-Identifier: Apache-2.0
"""Rewards that judge all answers to a sample at once: by agreement, by comparison, by length.

They run in batch mode: `rollouts_messages` holds one conversation a rollout, and each gets a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reward_kit.answers.final_answer import stated_answer
from reward_kit.errors import ConfigError, ItemError
from reward_kit.models import EvaluateResult, Message, MetricResult, Rollout
from reward_kit.reward_call import RewardCall
from reward_kit.rewards._judging.asking import Asker, as_asker, compare_answers
from reward_kit.rewards._judging.pairings import pairings
from reward_kit.rewards._judging.prompts import answer_of, question_of
from reward_kit.rewards._support.verdicts import check, last_reply, no_reply, no_verdict, wrong
from reward_kit.rewards.math import answers_match
from reward_kit.typed_interface import Operator, reward_function
from reward_kit.utils.tasks import together

__all__ = ["majority_vote_reward", "relative_length_reward", "tournament_reward"]

_LONGEST_ANSWER = 10_000
"""Characters of an answer that is compared with others; what is longer is no answer."""


# ── agreement ────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function(mode="batch")
def majority_vote_reward(
    rollouts_messages: list[list[Message]], *, at_least: int = 2, **kwargs: Any
) -> list[EvaluateResult]:
    r"""1.0 for each rollout whose final answer is the one most rollouts give, 0.0 for the others.

    Answers are the same where `math.answers_match` says so: 0.5 and \frac{1}{2} vote together. Where several answers
    have most votes, each of their rollouts gets its share of 1.0. An answer needs at least `at_least` rollouts to be a
    majority; if no answer has so many, no rollout gets a verdict. The ground truth is not used.

    Metrics: `agreement`, the share of the rollouts that give the same answer; `majority_answer`.
    Cost: one comparison for each rollout and different answer, some tens of microseconds each.
    Does not detect: whether the majority is right. Trained on alone, it rewards agreeing on anything, such as always
    the same number.

    >>> said = [[Message(role="assistant", content=f"The answer is {n}.")] for n in ("0.5", "1/2", "3")]
    >>> [result.score for result in majority_vote_reward(said)]
    [1.0, 1.0, 0.0]
    """
    answers = [_final_answer(messages) for messages in rollouts_messages]
    groups = _same_answers(answers)
    most = max(map(len, groups.values()), default=0)
    if most < at_least:
        return [no_verdict(f"No answer is given by {at_least} rollouts or more.") for _ in answers]
    winners = [first for first, members in groups.items() if len(members) == most]
    named = " or ".join(repr(answers[first]) for first in winners)
    votes = {member: members for members in groups.values() for member in members}
    return [
        _vote(len(votes.get(at, ())) / len(answers), 1 / len(winners), named, won=len(votes.get(at, ())) == most)
        for at in range(len(answers))
    ]


def _final_answer(messages: Sequence[Message]) -> str | None:
    reply = last_reply(messages)
    stated = stated_answer(reply.text) if reply is not None else None
    return stated.text if stated is not None and 0 < len(stated.text) <= _LONGEST_ANSWER else None


def _same_answers(answers: Sequence[str | None]) -> dict[int, list[int]]:
    """The rollouts that give each answer, by the first that does."""
    groups: dict[int, list[int]] = {}
    for at, answer in enumerate(answers):
        if answer is None:
            continue
        known = (first for first in groups if answers_match(str(answers[first]), answer))
        groups.setdefault(next(known, at), []).append(at)
    return groups


def _vote(agreement: float, share: float, named: str, *, won: bool) -> EvaluateResult:
    reason = f"{'among' if won else 'not among'} those who say {named}"
    metrics = {
        "agreement": MetricResult(score=agreement, reason="rollouts with this answer", is_score_valid=won),
        "majority_answer": check(won, reason),
    }
    return EvaluateResult(score=share if won else 0.0, reason=reason, metrics=metrics)


# ── comparison ───────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function(mode="batch", timeout=1800)
async def tournament_reward(
    rollouts_messages: list[list[Message]],
    *,
    judge: Operator[Any],
    rubric: str | None = None,
    games: Operator[int] = 4,
    votes: Operator[int] = 1,
    **kwargs: Any,
) -> list[EvaluateResult]:
    """The share of its games that each rollout wins against others of its sample, a tie counting half.

    A judge compares two rollouts at a time, in both orders. Each plays `games` others (all of them in a small group),
    chosen so that all rollouts play equally often. A game without a verdict is not counted; a rollout without a counted
    game gets no verdict. An empty answer loses without a game.

    Metrics: `tournament`, with the games won, tied and lost.
    Cost: two requests a vote and game; n × games / 2 games for n rollouts. Replies are cached.
    Does not detect: how good the group is as a whole: of n poor answers one still wins.

    >>> import asyncio
    >>> always_a = {"model_name": "mock", "mock": {"responses": ["VERDICT: A"]}, "cache": {"enabled": False}}
    >>> said = [[Message(role="user", content="Hi!"), Message(role="assistant", content=text)] for text in ("Yo", "")]
    >>> [result.score for result in asyncio.run(tournament_reward(said, judge=always_a))]
    [1.0, 0.0]
    """
    answers = [_spoken(messages) for messages in rollouts_messages]
    question = question_of(rollouts_messages[0]) if rollouts_messages else ""
    pairs = pairings(len(answers), games)
    async with as_asker(judge) as asker:
        played = await together(
            _game(asker, question, answers[one], answers[other], rubric, votes) for one, other in pairs
        )
    points: list[list[float]] = [[] for _ in answers]
    for (one, other), outcome in zip(pairs, played, strict=True):
        if isinstance(outcome, float):
            points[one].append(outcome)
            points[other].append(1.0 - outcome)
    problem = next((outcome for outcome in played if isinstance(outcome, str)), "there is nobody to play against")
    return [_placed(scores, problem) for scores in points]


def _spoken(messages: Sequence[Message]) -> str:
    reply = last_reply(messages)
    return answer_of(reply) if reply is not None else ""


async def _game(judge: Asker, question: str, one: str, other: str, rubric: str | None, votes: int) -> float | str:
    """The first's score, or why there is none."""
    if not one or not other:
        return 0.5 if one == other else float(bool(one))
    try:
        return (await compare_answers(judge, question, one, other, rubric=rubric, votes=votes)).score
    except ItemError as error:
        return str(error)


def _placed(scores: Sequence[float], problem: str) -> EvaluateResult:
    if not scores:
        return no_verdict(f"No game of this rollout was judged: {problem}")
    score = sum(scores) / len(scores)
    reason = f"{scores.count(1.0)} won, {scores.count(0.5)} tied, {scores.count(0.0)} lost"
    metric = MetricResult(score=score, reason=reason, is_score_valid=score == 1.0)
    return EvaluateResult(score=score, reason=reason, metrics={"tournament": metric})


# ── length ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function(mode="batch")
def relative_length_reward(
    rollouts_messages: list[list[Message]],
    ground_truth: Any = None,
    *,
    verifier: Operator[Callable[..., Any] | str | None] = None,
    verifier_params: Operator[dict[str, Any] | None] = None,
    pass_threshold: float = 1.0,
    rollouts: list[Rollout] | None = None,
    **kwargs: Any,
) -> list[EvaluateResult]:
    """1.0 for the shortest answer of the group and 0.0 for the longest, in proportion between them.

    Length is counted in characters, thinking included. With a `verifier` (a synchronous reward or its import path) only
    rollouts that pass it are compared, and the others get 0.0, so that a short wrong answer gets nothing. If all
    compared rollouts are equally long, each gets 1.0. A rollout that the verifier cannot judge gets no verdict.

    Metrics: `relative_length`; `verified` where there is a verifier.
    Cost: linear in the answers, and the verifier's.
    Does not detect: without a verifier, that an answer is empty of content: use one.

    >>> said = [[Message(role="assistant", content=text)] for text in ("4", "It is 4.", "Let me think. It is 4.")]
    >>> [round(result.score, 2) for result in relative_length_reward(said)]
    [1.0, 0.67, 0.0]
    """
    whole = rollouts or [Rollout.of_conversation(said, ground_truth, kwargs) for said in rollouts_messages]
    passed = [_verified(rollout, verifier, verifier_params) for rollout in whole]
    lengths = [_length(messages) for messages in rollouts_messages]
    right = [isinstance(verdict, float) and verdict >= pass_threshold for verdict in passed]
    competing = [length for length, counts in zip(lengths, right, strict=True) if counts and length]
    shortest, longest = min(competing, default=0), max(competing, default=0)
    return [
        _measured(length, verdict, shortest, longest, right=counts, verified=verifier is not None)
        for length, verdict, counts in zip(lengths, passed, right, strict=True)
    ]


def _verified(rollout: Rollout, verifier: Any, params: dict[str, Any] | None) -> float | str:
    """What the verifier says, 1.0 where there is none; or why it says nothing."""
    if verifier is None:
        return 1.0
    call = RewardCall(verifier, params)
    if call.mode == "batch" or call.is_async:
        raise ConfigError(f"The verifier {call.name!r} must be pointwise and synchronous. Use another.")
    try:
        return call.judge(call.arguments_of([rollout])).score
    except ItemError as error:
        return str(error)


def _length(messages: Sequence[Message]) -> int:
    reply = last_reply(messages)
    return 0 if reply is None else len(reply.text) + len(reply.reasoning_content or "")


def _measured(
    length: int, verdict: float | str, shortest: int, longest: int, *, right: bool, verified: bool
) -> EvaluateResult:
    if isinstance(verdict, str):
        return no_verdict(f"The verifier gave no verdict: {verdict}")
    metrics = {"verified": check(right, f"the verifier's score is {verdict:g}")} if verified else {}
    if not length:
        return no_reply() if not verified else wrong("There is no answer.", metrics)
    if not right:
        return wrong("Not a right answer, so its length earns nothing.", metrics)
    score = 1.0 if longest == shortest else (longest - length) / (longest - shortest)
    reason = f"{length} characters, in a group of {shortest} to {longest}"
    metrics["relative_length"] = MetricResult(score=score, reason=reason, is_score_valid=score == 1.0)
    return EvaluateResult(score=score, reason=reason, metrics=metrics)
