# SPDX-License-Identifier: Apache-2.0
"""DROP's measure of an answer: F1 over words, with numbers compared as numbers, and exact match.

text ─▶ words, in lower case, without articles and punctuation, numbers as values ─▶ a bag for each span
spans of the answer ─▶ paired with those of the reference so that the sum is largest ─▶ the mean is the F1
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, Final, NamedTuple

from reward_kit.answers.final_answer import stated_answer
from reward_kit.answers.reasoning import without_reasoning
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.verdicts import check, no_verdict_if_unreadable, quoted, reply_of
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["drop_reward"]

_ANSWER_LINE: Final = re.compile(r"\banswer\s{0,5}:[ \t]*([^\n]+)", re.IGNORECASE)
_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_LONGEST_ANSWER: Final = 10_000
"""Characters of an answer that are compared; no answer of DROP is that long."""
_MOST_PAIRED: Final = 6
"""Spans up to which every pairing is tried; beyond, pairs are taken greedily, the best first."""

Bag = frozenset[str]


class _Measure(NamedTuple):
    f1: float
    exact: bool


@reward_function
def drop_reward(
    messages: list[Message], *, ground_truth: Any = None, ends_at: Operator[str | None] = None, **kwargs: Any
) -> EvaluateResult:
    """DROP's F1 of the last message's answer, from 0.0 to 1.0.

    The answer is what follows the last "Answer:", else what the message marks as its answer, else the message. Words
    are compared in lower case, without articles and punctuation, numbers by value; where the reference has numbers, an
    answer without one of them gets 0.0. The ground truth is a text or number, a list of right texts (the best counts),
    or the column `answers_spans` of the data, `{"spans": [...]}`: then one span is right, and so is a list of all
    spans, separated by commas or "and". Any other ground truth gives no verdict.
    `ends_at` is a regular expression: what follows the first line in which it is found is not read, as graders have it
    that take the first answer.

    Metrics: `f1` (the score), `exact_match`; `error`.
    Cost: linear in the answer and in the references, about 50 µs.
    Does not detect: the order of words, a "not"; a long answer that happens to hold the right words.

    >>> reply = [{"role": "assistant", "content": "7 + 5 is 12.\\nAnswer: 12 yards"}]
    >>> round(drop_reward(reply, ground_truth={"spans": ["12"]}).score, 3)
    0.667
    >>> drop_reward([{"role": "assistant", "content": "Answer: 12.0"}], ground_truth="12").score
    1.0
    """
    reply = reply_of(messages, ends_at=ends_at)
    with no_verdict_if_unreadable():
        references = _references(ground_truth)
    answer = _answer(reply.text)
    best = max(_measured(answer, reference) for reference in references)
    reason = f"F1 {best.f1:.3f} of {quoted(answer)} with the nearest of {len(references)} references."
    metrics = {
        "f1": MetricResult(score=best.f1, reason=reason, is_score_valid=best.f1 == 1.0),
        "exact_match": check(best.exact, "the same words" if best.exact else "other words"),
    }
    return EvaluateResult(score=best.f1, reason=reason, metrics=metrics)


def _answer(text: str) -> str:
    spoken = without_reasoning(text)
    if lines := _ANSWER_LINE.findall(spoken):
        return str(lines[-1]).strip()[:_LONGEST_ANSWER]
    stated = stated_answer(text)
    marked = stated is not None and stated.source in ("tag", "boxed", "hashes")
    return (stated.text if stated is not None and marked else spoken).strip()[:_LONGEST_ANSWER]


def _references(ground_truth: Any) -> list[tuple[str, ...]]:
    """The right answers, each as its spans."""
    if isinstance(ground_truth, Mapping) and isinstance(ground_truth.get("spans"), list | tuple):
        spans = tuple(_texts(ground_truth["spans"]))
        each: list[tuple[str, ...]] = [(span,) for span in spans]
        return [*each, spans] if len(spans) > 1 else each
    given = ground_truth if isinstance(ground_truth, list | tuple) else [ground_truth]
    return [(text,) for text in _texts(given)]


def _texts(given: Sequence[Any]) -> list[str]:
    texts = [str(one) for one in given if isinstance(one, str | int | float) and not isinstance(one, bool)]
    numbers = all(one == one for one in given)  # noqa: PLR0124 - NaN is not itself
    if not texts or len(texts) != len(given) or not numbers or not all(text.strip() for text in texts):
        raise ValueError(
            f"The ground truth {quoted(given)} is not an answer. Give a text, a list of texts, or the spans."
        )
    return texts


# ── the measure ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _measured(answer: str, reference: tuple[str, ...]) -> _Measure:
    spans = (answer,) if len(reference) == 1 else tuple(filter(str.strip, re.split(r",|;|\band\b", answer)))
    given, right = [_normal(span) for span in spans], [_normal(span) for span in reference]
    exact = sorted(given) == sorted(right)
    return _Measure(_aligned([_bag(one) for one in given], [_bag(one) for one in right]), exact)


def _normal(text: str) -> str:
    """The words as DROP compares them.

    >>> _normal("The 1,200 well-known men, 3.50")
    '1200.0 well known men 3.5'
    """
    words = (_word(token) for token in re.split(r"[\s-]+", text.lower()))
    return " ".join(word for word in words if word)


def _word(token: str) -> str:
    bare = token if _is_number(token) else token.translate(_NO_PUNCTUATION)
    number = str(float(bare)) if _is_number(bare) else bare
    return _ARTICLES.sub("", number).strip()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _bag(normal: str) -> Bag:
    return frozenset(normal.split())


def _aligned(given: Sequence[Bag], right: Sequence[Bag]) -> float:
    """The mean F1 of spans, paired so that it is largest; a span without a partner counts 0."""
    size = max(len(given), len(right), 1)
    scores = [[_f1(one, other) for other in right] for one in given]
    if min(len(given), len(right)) > _MOST_PAIRED or size > _MOST_PAIRED:
        return _greedy(scores) / size
    rows, few = (scores, len(right)) if len(given) <= len(right) else (_turned(scores), len(given))
    sums = (sum(row[at] for row, at in zip(rows, order, strict=True)) for order in permutations(range(few), len(rows)))
    return max(sums, default=0.0) / size


def _turned(scores: Sequence[Sequence[float]]) -> list[list[float]]:
    return [list(column) for column in zip(*scores, strict=True)]


def _greedy(scores: Sequence[Sequence[float]]) -> float:
    ranked = sorted(((score, i, j) for i, row in enumerate(scores) for j, score in enumerate(row)), reverse=True)
    taken: tuple[set[int], set[int]] = (set(), set())
    total = 0.0
    for score, i, j in ranked:
        if i not in taken[0] and j not in taken[1]:
            taken[0].add(i)
            taken[1].add(j)
            total += score
    return total


def _f1(given: Bag, right: Bag) -> float:
    numbers = {word for word in right if _is_number(word)}
    if numbers and not numbers & given:
        return 0.0
    shared = len(given & right)
    precision = shared / len(given) if given else 1.0
    recall = shared / len(right) if right else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
