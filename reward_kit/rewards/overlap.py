# SPDX-License-Identifier: Apache-2.0
"""Overlap with a reference text: ROUGE for summaries, BLEU for translations.

ROUGE is computed here, with a longest common subsequence that stays fast for answers of any length, and gives the
numbers of the package `rouge-score`. BLEU is `sacrebleu`'s own: its tokenizers are what makes numbers comparable.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from reward_kit.answers.reasoning import without_reasoning
from reward_kit.errors import needs_extra
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.parameters import one_of
from reward_kit.rewards._support.references import reference_texts
from reward_kit.rewards._support.verdicts import no_verdict_if_unreadable, reply_of
from reward_kit.typed_interface import reward_function

__all__ = ["bleu_reward", "rouge_reward"]

_ROUGE_WORD: Final = re.compile("[a-z0-9]+")
_LONGEST_TEXT: Final = 1_000_000
"""Characters of a text that are compared; no summary is that long."""


class _Rouge(NamedTuple):
    precision: float
    recall: float
    f1: float


# ── ROUGE ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def rouge_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    variant: Literal["rouge1", "rouge2", "rouge3", "rouge4", "rougeL"] = "rougeL",
    measure: Literal["f1", "precision", "recall"] = "f1",
    stem: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    """The ROUGE score of the last message against the ground truth, from 0.0 to 1.0.

    `variant`: `rougeL`, the longest common subsequence of words, or `rouge1` to `rouge4`, the sequences of so many
    words in common. `measure` says which of its three numbers is the score. The numbers are those of the package
    `rouge-score`: words are runs of a-z and 0-9 in lower case, and with `stem` those of more than three letters are cut
    to their stems (that needs the extra `text`). Of several right texts, the one with the best F1 counts. The model's
    reasoning is not part of the answer. If the ground truth is not text, there is no verdict.

    Metrics: `rouge_f1`, `rouge_precision`, `rouge_recall`; `error`.
    Cost: linear in the answer, about 100 µs per kB; `rougeL` times a 64th of the right text's words.
    Does not detect: meaning, truth, a "not"; copied sentences score high. Languages that do not use a-z have no words.

    >>> reply = [{"role": "assistant", "content": "The cat sat on the mat."}]
    >>> round(rouge_reward(reply, ground_truth="The cat is on the mat.").score, 3)
    0.833
    """
    reply = reply_of(messages)
    one_of("variant", variant, ("rouge1", "rouge2", "rouge3", "rouge4", "rougeL"))
    one_of("measure", measure, ("f1", "precision", "recall"))
    with no_verdict_if_unreadable():
        right = reference_texts(ground_truth)
    words = _stemmed_words if stem else _rouge_words
    given = words(without_reasoning(reply.text)[:_LONGEST_TEXT])
    best = max((_rouge(given, words(one[:_LONGEST_TEXT]), variant) for one in right), key=lambda found: found.f1)
    score: float = getattr(best, measure)
    reason = f"{variant} {measure} {score:.3f} with the nearest of {len(right)} right texts."
    metrics = {
        "rouge_f1": MetricResult(score=best.f1, reason=reason),
        "rouge_precision": MetricResult(score=best.precision, reason="of the answer is in the right text"),
        "rouge_recall": MetricResult(score=best.recall, reason="of the right text is in the answer"),
    }
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


def _rouge_words(text: str) -> list[str]:
    return _ROUGE_WORD.findall(text.lower())


def _stemmed_words(text: str) -> list[str]:
    words: list[str] = _stemmer().tokenize(text)
    return words


@functools.cache
def _stemmer() -> Any:
    with needs_extra("Cutting words to their stems", "text"):
        from rouge_score.tokenizers import DefaultTokenizer
    return DefaultTokenizer(use_stemmer=True)


def _rouge(given: Sequence[str], right: Sequence[str], variant: str) -> _Rouge:
    if variant == "rougeL":
        shared, given_size, right_size = _longest_common_subsequence(given, right), len(given), len(right)
    else:
        size = int(variant[-1])
        ours, theirs = _sequences(given, size), _sequences(right, size)
        shared, given_size, right_size = (ours & theirs).total(), ours.total(), theirs.total()
    precision, recall = shared / max(given_size, 1), shared / max(right_size, 1)
    return _Rouge(precision, recall, 2 * precision * recall / (precision + recall) if shared else 0.0)


def _sequences(words: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(size)), strict=False))


def _longest_common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """Its length. A row of the usual table is one integer, a bit for each word of `other` (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for place, word in enumerate(other):
        places[word] = places.get(word, 0) | 1 << place
    whole = (1 << len(other)) - 1
    row = whole
    for word in one:
        if (at := places.get(word)) is not None:
            matched = row & at
            row = ((row + matched) | (row - matched)) & whole
    return len(other) - row.bit_count()


# ── BLEU ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function
def bleu_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    tokenize: Literal["13a", "intl", "zh", "char", "none"] = "13a",
    lowercase: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    """The BLEU score of the last message against the ground truth, from 0.0 to 1.0.

    It is sacrebleu's score for a sentence divided by 100 (`exp` smoothing, orders that the answer is too short for left
    out). Several right texts are used together as references, as BLEU defines it. `tokenize` says how texts become
    words: `13a` for most languages, `zh` for Chinese, `char` for other scripts without spaces, `intl` and `none` as in
    sacrebleu. The model's reasoning is not part of the answer. If the ground truth is not text, there is no verdict.

    Metrics: `bleu`, `brevity_penalty`, `bleu_precision_1` to `bleu_precision_4`; `error`.
    Needs: extra `text`.
    Cost: linear in the answer, about 200 µs for a sentence.
    Does not detect: meaning, truth, a "not"; a single sentence's BLEU is rough, an average over many says more.

    >>> reply = [{"role": "assistant", "content": "The cat sat on the mat."}]
    >>> round(bleu_reward(reply, ground_truth="The cat is sitting on the mat.").score, 3)
    0.424
    """
    reply = reply_of(messages)
    one_of("tokenize", tokenize, ("13a", "intl", "zh", "char", "none"))
    with no_verdict_if_unreadable():
        right = reference_texts(ground_truth)
    answer = without_reasoning(reply.text).strip()[:_LONGEST_TEXT]
    found = _bleu(tokenize, lowercase).sentence_score(answer, [one[:_LONGEST_TEXT] for one in right])
    score = min(1.0, found.score / 100)
    reason = f"BLEU {score:.3f} against {len(right)} right texts."
    metrics = {
        "bleu": MetricResult(score=score, reason=reason),
        "brevity_penalty": MetricResult(score=min(1.0, found.bp), reason="below 1.0: shorter than the right text"),
    }
    for order, precision in enumerate(found.precisions, start=1):
        shared = MetricResult(score=min(1.0, precision / 100), reason=f"of the sequences of {order} words are right")
        metrics[f"bleu_precision_{order}"] = shared
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


@functools.cache
def _bleu(tokenize: str, lowercase: bool) -> Any:
    with needs_extra("BLEU", "text"):
        from sacrebleu.metrics.bleu import BLEU
    return BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True)
