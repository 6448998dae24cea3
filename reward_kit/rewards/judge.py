# SPDX-License-Identifier: Apache-2.0
"""A model as judge: a grade for an answer, or a choice between two.

In a run, the config's `judge` section says which model; a reward that names `judge` is handed it. Elsewhere `judge` is
a model's name, a dict with the keys of that section, any model client, or a `Judge`. See docs/judge.md.

A judge is a measuring instrument with an error of its own, and a policy trained against one learns to please it: check
it against labels you trust before you use it, and prefer a rule where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._judging.asking import Comparison, Grade, as_asker, compare_answers, grade_answer
from reward_kit.rewards._judging.prompts import answer_of, question_of
from reward_kit.rewards._support.verdicts import check, no_verdict, reply_of, wrong
from reward_kit.typed_interface import Operator, RewardContractError, reward_function

__all__ = ["Comparison", "Grade", "compare", "grade", "judge_reward", "pairwise_judge_reward"]

_SECONDS = 600
"""What a call may take: a judge behind a busy endpoint is asked again and again."""
_LONGEST_ANSWER = 200_000
"""Characters of an answer that is sent to a judge."""
_SHOWN = 500
"""Characters of the judge's reasons that a result keeps."""


@reward_function(timeout=_SECONDS)
async def judge_reward(
    messages: list[Message],
    *,
    judge: Operator[Any],
    rubric: str | None = None,
    ground_truth: Any = None,
    scale: Sequence[int] = (0, 10),
    votes: Operator[int] = 1,
    **kwargs: Any,
) -> EvaluateResult:
    """The grade a model gives the last message, from 0.0 to 1.0.

    The judge is shown the conversation, the answer without its thinking, the `rubric` and, where there is one, the
    ground truth as a reference, and must end its reply with `VERDICT: n` on the `scale`. With several `votes` (draws;
    give the judge a temperature) the median counts. If the judge does not answer, or its reply holds no verdict, the
    reward gives no verdict.

    Metrics: `judge`.
    Cost: one request a vote, once: replies are cached. A reply in the wrong form is asked for again, twice at most.
    Does not detect: what the judging model cannot tell. It can be misled by confident or flattering answers, and
    prefers the style of its own family.

    >>> import asyncio
    >>> model = {"model_name": "mock", "mock": {"responses": ["Good, I would say 9.", "Good.\\nVERDICT: 8"]}}
    >>> talk = [Message(role="user", content="2 + 2?"), Message(role="assistant", content="4")]
    >>> asyncio.run(judge_reward(talk, judge={**model, "cache": {"enabled": False}})).score
    0.8
    """
    reply = reply_of(messages)
    answer = answer_of(reply)
    if not answer:
        return wrong("There is no answer to judge.", {"judge": check(False, "the answer is empty")})
    if len(answer) > _LONGEST_ANSWER:
        return no_verdict(f"The answer has {len(answer)} characters, too many to send to a judge.")
    given = await grade(
        judge,
        question_of(messages),
        answer,
        rubric=rubric,
        reference=_reference(ground_truth),
        scale=scale,
        votes=votes,
    )
    reason = f"votes {list(given.votes)} on {list(scale)}: {given.reply.strip()[:_SHOWN]}"
    metrics = {"judge": MetricResult(score=given.score, reason=reason, is_score_valid=given.score == 1.0)}
    return EvaluateResult(score=given.score, reason=reason, metrics=metrics)


@reward_function(timeout=_SECONDS)
async def pairwise_judge_reward(
    messages: list[Message],
    *,
    judge: Operator[Any],
    ground_truth: Any = None,
    rubric: str | None = None,
    votes: Operator[int] = 1,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if a model finds the last message better than the ground truth's answer, 0.5 for a tie, 0.0 if worse.

    For each vote the judge is asked twice, with the two answers in both orders; if it contradicts itself, the vote is a
    tie. The majority of the votes counts. If the ground truth is not an answer, there is no verdict.

    Metrics: `judge`.
    Cost: two requests a vote, once: replies are cached.
    Does not detect: what the judging model cannot tell; that both answers are poor.

    >>> import asyncio
    >>> always_a = {"model_name": "mock", "mock": {"responses": ["VERDICT: A"]}, "cache": {"enabled": False}}
    >>> talk = [Message(role="user", content="2 + 2?"), Message(role="assistant", content="4")]
    >>> asyncio.run(pairwise_judge_reward(talk, judge=always_a, ground_truth="5")).score
    0.5
    """
    reply = reply_of(messages)
    reference = _reference(ground_truth)
    if not reference:
        return no_verdict(
            f"The ground truth {ground_truth!r} is not an answer to compare with. Give the right answer as text."
        )
    answer = answer_of(reply)
    if max(len(answer), len(reference)) > _LONGEST_ANSWER:
        return no_verdict(f"The answers have {len(answer)} and {len(reference)} characters, too many for a judge.")
    comparison = await compare(judge, question_of(messages), answer, reference, rubric=rubric, votes=votes)
    reason = f"votes {list(comparison.votes)} (1: better than the reference, 0: worse)"
    metrics = {"judge": MetricResult(score=comparison.score, reason=reason, is_score_valid=comparison.score == 1.0)}
    return EvaluateResult(score=comparison.score, reason=reason, metrics=metrics)


async def grade(
    judge: Any,
    question: str,
    answer: str,
    *,
    rubric: str | None = None,
    reference: str | None = None,
    scale: Sequence[int] = (0, 10),
    votes: int = 1,
) -> Grade:
    """A judge's grade for an answer, for rewards of your own. A `RewardError` where it gives none."""
    match tuple(scale):
        case (int(low), int(high)) if low < high:
            pass
        case _:
            raise RewardContractError(f"scale is {scale!r}; it needs a lowest and a highest grade. Write [0, 10].")
    async with as_asker(judge) as asker:
        return await grade_answer(
            asker, question, answer, rubric=rubric, reference=reference, scale=(low, high), votes=votes
        )


async def compare(
    judge: Any, question: str, first: str, second: str, *, rubric: str | None = None, votes: int = 1
) -> Comparison:
    """A judge's choice between two answers, for rewards of your own. A `RewardError` where it makes none."""
    async with as_asker(judge) as asker:
        return await compare_answers(asker, question, first, second, rubric=rubric, votes=votes)


def _reference(ground_truth: Any) -> str | None:
    """The reference answer that a ground truth is: a text or number, or the last turn of a conversation."""
    if isinstance(ground_truth, (list, tuple)) and ground_truth:
        last = ground_truth[-1]
        turn = Message.model_validate(last) if isinstance(last, dict) and "role" in last else last
        return answer_of(turn) if isinstance(turn, Message) and turn.role == "assistant" else None
    return str(ground_truth) if isinstance(ground_truth, (str, int, float)) else None
