# SPDX-License-Identifier: Apache-2.0
"""Repetition and diversity: how much of the answer says something it has not said before?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.parameters import listed, number, whole
from reward_kit.rewards._support.prose import plain_words
from reward_kit.rewards._support.verdicts import check, reply_of, wrong
from reward_kit.typed_interface import RewardContractError, reward_function

__all__ = ["diversity_reward", "get_ngrams", "repetition_penalty_reward"]

_BY_LETTER = frozenset({"zh", "ja", "th", "lo", "km", "my"})
"""Languages written without spaces, in which each letter is taken for a word."""
_LITTLE_REPETITION = 0.2
_DIVERSE = 0.6
_DIVERSE_AT_ONE_SIZE = 0.7
_USUAL_WEIGHTS = (0.2, 0.3, 0.5)


def get_ngrams(text: str, n: int, language: str = "en") -> tuple[list[tuple[str, ...]], int]:
    """All runs of `n` words in `text`, and how many there are.

    Case, accents, punctuation, full-width forms and invisible characters make no difference. Letters count as words
    where there are none: in scripts without spaces, in a run of letters longer than any word, and everywhere where
    `language` is written without spaces. A text that is mostly symbols is taken by its characters.

    >>> get_ngrams("The cat, the CAT", 2)
    ([('the', 'cat'), ('cat', 'the'), ('the', 'cat')], 3)
    """
    whole("n", n, at_least=1)
    ngrams = list(_runs(_words(text, language), n))
    return ngrams, len(ngrams)


@reward_function
def repetition_penalty_reward(
    messages: list[Message],
    ground_truth: Any = None,
    ngram_size: int = 3,
    max_penalty: float = 0.5,
    language: str = "en",
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 minus `max_penalty` times the share of word sequences that the answer repeats.

    A sequence is `ngram_size` words. Nothing is repeated in an answer shorter than that. An empty answer gets 0.0, or
    the lowest score where that is lower. `max_penalty` may exceed 1,
    and the score fall below zero. Case, accents, punctuation and invisible characters do not make a sequence new;
    letters stand for words in a text without spaces. Reasoning in the content counts, too.

    Metrics: `repetition`, passed below a fifth; `unique_ngram_ratio`; `repetition_penalty`.
    Cost: linear in the answer, about 100 µs per kB.
    Does not detect: the same thing said in other words, with other numbers, or in look-alike letters of another script;
    that long texts repeat more sequences than short ones by nature.

    >>> answer = [{"role": "assistant", "content": "I am sure. I am SURE! I am sure…"}]
    >>> round(repetition_penalty_reward(messages=answer).score, 3)
    0.714
    """
    reply = reply_of(messages, "repetition")
    whole("ngram_size", ngram_size, at_least=1)
    number("max_penalty", max_penalty)
    unique, total = _unique(_words(reply.text, language), ngram_size)
    repeated = 1.0 - unique / total if total else 0.0
    score = 1.0 - repeated * max_penalty if reply.text.strip() else min(0.0, 1.0 - max_penalty)
    reason = f"{unique} of {total} sequences of {ngram_size} words are new" if total else "Too short to repeat itself"
    little = repeated < _LITTLE_REPETITION
    metrics = {
        "repetition": _metric(score, reason, little),
        "unique_ngram_ratio": _metric(1.0 - repeated, reason, little),
        "repetition_penalty": _metric(score, f"{1.0 - score:.2f} are taken away", little),
    }
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


@reward_function
def diversity_reward(
    messages: list[Message],
    ground_truth: Any = None,
    ngram_sizes: Sequence[int] = (1, 2, 3),
    weights: Sequence[float] | None = None,
    language: str = "en",
    **kwargs: Any,
) -> EvaluateResult:
    """The share of word sequences that are new, averaged over sequences of several sizes; 0.0 for an empty answer.

    `weights` say how much each size counts, in the order of `ngram_sizes`: by default 0.2, 0.3 and 0.5 for three sizes,
    else all the same; they need not add up to one. In an answer too short for a size, all is new at that size. What
    counts as the same word is said at `repetition_penalty_reward`.

    Metrics: `diversity`, passed above 0.6; `ngram_<n>` for each size, passed above 0.7.
    Cost: linear in the answer, about 200 µs per kB.
    Does not detect: gibberish, which is diverse; that short answers are diverse by nature; what
    `repetition_penalty_reward` does not detect.

    >>> diversity_reward(messages=[{"role": "assistant", "content": "hi"}]).score
    1.0
    >>> round(diversity_reward(messages=[{"role": "assistant", "content": "ha ha ha ha ha"}]).score, 3)
    0.282
    """
    reply = reply_of(messages, "diversity")
    shares = _shares(ngram_sizes, weights)
    if not reply.text.strip():
        return wrong("The answer is empty.", {"diversity": check(False, "The answer is empty.")})
    words = _words(reply.text, language)
    new = {size: _new(words, size) for size in shares}
    score = sum(new[size] * share for size, share in shares.items())
    reason = "New sequences: " + ", ".join(f"{ratio:.0%} of {size} words" for size, ratio in new.items())
    metrics = {"diversity": _metric(score, reason, score > _DIVERSE)}
    for size, ratio in new.items():
        metrics[f"ngram_{size}"] = _metric(ratio, f"{ratio:.0%} of the sequences are new", ratio > _DIVERSE_AT_ONE_SIZE)
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


def _metric(score: float, reason: str, passed: bool) -> MetricResult:
    return MetricResult(score=max(0.0, min(1.0, score)), reason=reason, is_score_valid=passed)


def _words(text: str, language: str) -> list[str]:
    return plain_words(text, by_letter=str(language).lower().partition("-")[0] in _BY_LETTER)


def _runs(words: list[str], size: int) -> Iterator[tuple[str, ...]]:
    """Each word with those that follow it, `size` in all."""
    if size > len(words):
        return iter(())
    return zip(*(words[start:] for start in range(size)), strict=False)


def _unique(words: list[str], size: int) -> tuple[int, int]:
    """How many different runs there are, and how many in all."""
    return len(set(_runs(words, size))), max(0, len(words) - size + 1)


def _new(words: list[str], size: int) -> float:
    unique, total = _unique(words, size)
    return unique / total if total else 1.0


def _shares(sizes: Sequence[int], weights: Sequence[float] | None) -> dict[int, float]:
    """How much each size counts; together they are one."""
    for size in listed("ngram_sizes", sizes, "whole numbers"):
        whole("ngram_sizes", size, at_least=1)
    if weights is None:
        weights = _USUAL_WEIGHTS if len(sizes) == len(_USUAL_WEIGHTS) else [1.0] * len(sizes)
    for weight in listed("weights", weights, "numbers, one for each of ngram_sizes"):
        number("weights", weight, above=0.0)
    if len({*sizes}) != len(sizes) or len(weights) != len(sizes):
        raise RewardContractError(
            f"Parameters 'ngram_sizes' {sizes!r} and 'weights' {weights!r}; give different sizes, each with a weight."
        )
    return {size: weight / sum(weights) for size, weight in zip(sizes, weights, strict=True)}
