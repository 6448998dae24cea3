# SPDX-License-Identifier: Apache-2.0
"""Accuracy and length together: a right answer earns more the shorter it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.parameters import number
from reward_kit.rewards._support.verdicts import reply_of
from reward_kit.rewards.accuracy import accuracy_reward
from reward_kit.rewards.length import CORRECT, TokenMethod, cosine_between, count_tokens, within_unit
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["cosine_scaled_accuracy_length_reward"]


@reward_function
def cosine_scaled_accuracy_length_reward(  # noqa: PLR0913, PLR0917 - inherited
    messages: list[Message],
    ground_truth: Any = None,
    extract_fn: Operator[Callable[[str], str] | None] = None,
    compare_fn: Operator[Callable[[str, str], float] | None] = None,
    max_length: int = 1000,
    min_value_wrong: float = 0.0,
    max_value_wrong: float = 0.3,
    min_value_correct: float = 0.5,
    max_value_correct: float = 1.0,
    token_method: TokenMethod = "whitespace",
    correctness_weight: float = 0.7,
    length_weight: float = 0.3,
    **kwargs: Any,
) -> EvaluateResult:
    r"""`correctness_weight` times the accuracy, plus `length_weight` times the score that its length earns the answer.

    The accuracy is the score of `accuracy_reward`, with `extract_fn` and `compare_fn`; if that gives no verdict, this
    reward gives none. The score of the length is that of `cosine_length_reward`: a right answer earns most when short,
    a wrong one when long. Values and weights may be any numbers, and the score then leaves [0, 1].

    Metrics: `combined_reward`, passed if the answer is right; `accuracy`; `length`; `token_count`.
    Cost: that of `accuracy_reward`, and 10 µs per kB.
    Does not detect: a wrong answer that is padded to earn `max_value_wrong`; what `accuracy_reward` does not detect.

    >>> answer = [{"role": "assistant", "content": r"2 + 2 is \boxed{4}"}]
    >>> round(cosine_scaled_accuracy_length_reward(messages=answer, ground_truth="4", max_length=10).score, 3)
    0.925
    >>> round(cosine_scaled_accuracy_length_reward(messages=answer, ground_truth="5", max_length=10).score, 3)
    0.045
    """
    reply = reply_of(messages, "combined_reward", "accuracy", "length", "token_count")
    number("correctness_weight", correctness_weight)
    number("length_weight", length_weight)
    accuracy = accuracy_reward(messages, ground_truth=ground_truth, extract_fn=extract_fn, compare_fn=compare_fn)
    if not accuracy.is_score_valid:
        return accuracy
    right = accuracy.score >= CORRECT
    tokens = count_tokens(reply.text, token_method)
    values = (min_value_wrong, max_value_wrong, min_value_correct, max_value_correct)
    earned = cosine_between(tokens, max_length, right, values)
    score = accuracy.score * correctness_weight + earned * length_weight
    reason = f"{accuracy.reason} {tokens} of {max_length} tokens earn {earned:.2f}."
    fits = tokens <= max_length
    ends = [part * length_weight for part in (min(values), max(values))]
    low, high = min(ends) + min(0.0, correctness_weight), max(ends) + max(0.0, correctness_weight)
    metrics = {
        "combined_reward": MetricResult(score=within_unit(score, low, high), reason=reason, is_score_valid=right),
        "accuracy": MetricResult(
            score=within_unit(accuracy.score, 0.0, 1.0), reason=str(accuracy.reason), is_score_valid=right
        ),
        "length": MetricResult(
            score=within_unit(earned, min(values), max(values)), reason=f"{earned:.2f} earned", is_score_valid=fits
        ),
        "token_count": MetricResult(
            score=max(0.0, 1.0 - tokens / max_length), reason=f"{tokens} tokens", is_score_valid=fits
        ),
    }
    return EvaluateResult(score=score, reason=reason, metrics=metrics)
