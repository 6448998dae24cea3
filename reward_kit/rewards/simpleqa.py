# SPDX-License-Identifier: Apache-2.0
"""SimpleQA's three grades by a judge: correct, incorrect, not attempted."""

from __future__ import annotations

from typing import Any, Final

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._judging.asking import as_asker, classify_answer
from reward_kit.rewards._judging.prompts import answer_of, question_of
from reward_kit.rewards._support.references import as_text
from reward_kit.rewards._support.verdicts import check, no_verdict, quoted, reply_of
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["simpleqa_reward"]

_SECONDS: Final = 600
"""What a call may take: a judge behind a busy endpoint is asked again and again."""
_LONGEST_ANSWER: Final = 100_000
_GRADES: Final = ("CORRECT", "NOT_ATTEMPTED", "INCORRECT")
_SHOWN: Final = 500
_CRITERIA: Final = """Compare the answer to a question with the reference answer, and give one of three grades.
CORRECT: the answer holds what the reference says, and nothing in it contradicts the reference. Capital letters,
punctuation, word order and further true details do not matter. A hedge before the right answer does not matter either.
INCORRECT: the answer says something that contradicts the reference, even if it says so with doubt, or names several
different answers of which not all fit.
NOT_ATTEMPTED: the answer does not hold what the reference says, and nothing in it contradicts the reference, such as
"I do not know".
A number is correct if it is the reference's, rounded to the digits that the reference gives. What the question itself
already says need not be said again. Slips in the spelling of a name do not matter where it is clear who is meant."""


@reward_function(timeout=_SECONDS)
async def simpleqa_reward(
    messages: list[Message], *, judge: Operator[Any], ground_truth: Any = None, votes: Operator[int] = 1, **kwargs: Any
) -> EvaluateResult:
    """1.0 if a judge finds that the last message gives the ground truth and contradicts it nowhere, 0.0 if not.

    The judge chooses among three grades, after the definitions of SimpleQA: correct; incorrect, which contradicts the
    reference; not attempted, which does neither. With several `votes` (draws; give the judge a temperature) the grade
    with the most votes counts; where two have equally many, the worse one. An empty answer is graded "not attempted"
    without asking the judge. If the judge does not answer, or its reply holds no grade, there is no verdict.

    Metrics: `correct`, `incorrect`, `not_attempted` (one of them is 1.0); `correct_given_attempted`, only where an
    answer was attempted.
    Cost: one request a vote, once: replies are cached. A reply in the wrong form is asked for again, twice at most.
    Does not detect: what the judging model cannot tell; it sees the reference and no source.

    >>> import asyncio
    >>> model = {"model_name": "mock", "mock": {"responses": ["It agrees.\\nVERDICT: CORRECT"]}}
    >>> talk = [Message(role="user", content="Capital of Peru?"), Message(role="assistant", content="Lima.")]
    >>> asyncio.run(simpleqa_reward(talk, judge={**model, "cache": {"enabled": False}}, ground_truth="Lima")).score
    1.0
    """
    reply = reply_of(messages)
    reference = as_text(ground_truth)
    if not reference:
        return no_verdict(
            f"The ground truth {quoted(ground_truth)} is not an answer to compare with. Give the right answer as text."
        )
    answer = answer_of(reply)
    if not answer:
        return _graded("NOT_ATTEMPTED", "The answer is empty.")
    if len(answer) > _LONGEST_ANSWER:
        return no_verdict(f"The answer has {len(answer)} characters, too many to send to a judge.")
    async with as_asker(judge) as asker:
        grade, reasons = await classify_answer(
            asker, question_of(messages), answer, criteria=_CRITERIA, reference=reference, labels=_GRADES, votes=votes
        )
    return _graded(grade, reasons.strip()[:_SHOWN])


def _graded(grade: str, reason: str) -> EvaluateResult:
    metrics = {name.lower(): check(grade == name, reason) for name in _GRADES}
    if grade != "NOT_ATTEMPTED":
        right = grade == "CORRECT"
        metrics["correct_given_attempted"] = MetricResult(score=float(right), reason=reason, is_score_valid=right)
    return EvaluateResult(score=float(grade == "CORRECT"), reason=f"{grade}: {reason}", metrics=metrics)
