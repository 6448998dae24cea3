# SPDX-License-Identifier: Apache-2.0
"""Judge whether an answer is right, with ways to find and to compare it that can be replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reward_kit.mathematics.equivalence import is_right, readable
from reward_kit.mathematics.form import left_undone
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._support.verdicts import check, no_verdict, quoted, reply_of, wrong
from reward_kit.rewards.math import answers_match, final_answer, right_answer
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["accuracy_reward", "compare_math_expressions", "extract_math_expression", "normalize_text"]


@reward_function
def accuracy_reward(
    messages: list[Message],
    ground_truth: Any = None,
    extract_fn: Operator[Callable[[str], str] | None] = None,
    compare_fn: Operator[Callable[[str, str], float] | None] = None,
    accept_unevaluated: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    r"""How right the last message's answer is: 1.0 or 0.0, or what `compare_fn(answer, gold)` gives in [0, 1].

    By default the final answer is found and compared as in `math_reward`, exactly: numbers, formulas and words. An
    answer that is not worked out (`17 \cdot 23` for 391) gets 0.0 unless `accept_unevaluated` is set. `extract_fn`
    takes the answer out of the text instead, and is applied to the reply only. If the ground truth is missing, or
    cannot be compared with the answer, there is no verdict.

    Metrics: `accuracy`, `answer_extraction`, `answer_accuracy`; `error`.
    Cost: as `answers_match`, plus one pass over the reply.
    Does not detect: an answer in words that means the same in other words. A reply that names several answers is wrong.

    >>> reply = [{"role": "assistant", "content": "The capital of France is Paris. The answer is Paris."}]
    >>> accuracy_reward(reply, ground_truth="Paris").score
    1.0
    >>> accuracy_reward(reply, ground_truth="London").score
    0.0
    """
    reply = reply_of(messages, "accuracy")
    gold = right_answer(ground_truth)
    if gold is None:
        return no_verdict(f"The ground truth {quoted(ground_truth)} holds no answer. Give the right one as text.")
    answer = (extract_fn or _answer)(reply.text)
    found = {"answer_extraction": check(bool(answer), quoted(answer))}
    if not answer:
        reason = "The text states no answer."
        return wrong(reason, {**found, "answer_accuracy": check(False, reason), "accuracy": check(False, reason)})
    score = _score(gold, answer, compare_fn, accept_unevaluated=accept_unevaluated)
    if score is None and readable(gold):
        score = 0.0  # nobody can read the answer, and that is for the answer to answer for
    if score is None:
        return no_verdict(f"Cannot tell whether {quoted(answer)} equals {quoted(gold)}.", found)
    reason = f"The answer {quoted(answer)} scores {score:g} against {quoted(gold)}."
    accuracy = check(score > 0.0, reason).model_copy(update={"score": min(1.0, max(0.0, score))})
    return EvaluateResult(
        score=score, reason=reason, metrics={**found, "answer_accuracy": accuracy, "accuracy": accuracy}
    )


def _answer(text: str) -> str:
    return final_answer(text) or ""


def _score(
    gold: str, answer: str, compare: Callable[[str, str], float] | None, *, accept_unevaluated: bool
) -> float | None:
    if compare is not None:
        return float(compare(answer, gold))
    matched = is_right(gold, answer)
    if matched and not accept_unevaluated and left_undone(gold, answer) is not None:
        return 0.0
    return None if matched is None else float(matched)


# ── inherited names ──────────────────────────────────────────────────────────────────────────────────────────────────


def normalize_text(text: str) -> str:
    """The text in small letters, without punctuation, with single spaces.

    >>> normalize_text("  It is   Paris! ")
    'it is paris'
    """
    kept = (character if character.isalnum() or character.isspace() else " " for character in text.lower())
    return " ".join("".join(kept).split())


def extract_math_expression(text: str) -> str:
    r"""The final answer of a text, as `final_answer` finds it; a text that is no more than an answer is its own.

    >>> extract_math_expression(r"So it is \boxed{\frac{1}{2}}."), extract_math_expression("12")
    ('\\frac{1}{2}', '12')
    """
    return _answer(text)


def compare_math_expressions(pred: str, gt: str) -> float:
    """1.0 if two expressions mean the same, as `answers_match` says, else 0.0. Nothing lies between.

    >>> compare_math_expressions("1/2", "0.5"), compare_math_expressions("20", "25")
    (1.0, 0.0)
    """
    return float(answers_match(gt, pred) is True)
