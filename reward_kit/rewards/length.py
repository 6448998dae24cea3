# SPDX-License-Identifier: Apache-2.0
"""Length: is the answer as long as it should be, and is a right answer short?"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.parameters import number, one_of, pair, whole
from reward_kit.rewards._support.verdicts import check, no_verdict, reply_of
from reward_kit.typed_interface import reward_function

__all__ = ["cosine_length_reward", "count_tokens", "length_reward"]

TokenMethod = Literal["whitespace", "character", "words"]
"""What a token is: what stands between spaces, one character, or one run of letters and digits."""

CORRECT = 0.9
"""A `correctness` of at least this is a right answer."""
_CLOSE = 0.2
"""The share of the target length by which an answer may miss it and still pass."""
_USUAL = 100
"""Tokens at which the score has fallen to its lowest where no length is asked for."""
_WORD = re.compile(r"\w+")
_STRETCH = 32_768


def count_tokens(text: str, method: str = "whitespace") -> int:
    """How long `text` is, in what `method` says: "whitespace", "character" or "words".

    >>> count_tokens("It's 3.5 km."), count_tokens("It's 3.5 km.", "words"), count_tokens("It's 3.5 km.", "character")
    (3, 5, 12)
    """
    one_of("token_method", method, ("whitespace", "character", "words"))
    if method == "character":
        return len(text)
    return _between_spaces(text) if method == "whitespace" else sum(1 for _ in _WORD.finditer(text))


def _between_spaces(text: str) -> int:
    """How many runs of characters stand between spaces, as `len(text.split())` would count them.

    A stretch at a time: the pieces of a long text would fill more memory than a processor has at hand, and counting
    them would take twice as long for each.
    """
    count = 0
    for start in range(0, len(text), _STRETCH):
        count += len(text[start : start + _STRETCH].split())
        if start and not text[start - 1].isspace() and not text[start].isspace():
            count -= 1  # the border parts one run, which was counted on both sides
    return count


@reward_function
def length_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    target_length: int | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    token_method: TokenMethod = "whitespace",
    scaling: Literal["linear", "cosine"] = "linear",
    reward_range: Sequence[float] | None = None,
    **kwargs: Any,
) -> EvaluateResult:
    """The top of `reward_range` if the answer is as long as asked for, less the further it is from that.

    With `target_length`, the best is that length, and the score falls to the bottom of the range at zero and at twice
    the target; with `min_length`, `max_length` or both, any length between them is best, and the score falls towards
    length zero below them, and over the same distance above. With none of the three, shorter is better: the score falls
    from the top at 0 tokens to the bottom at 100 tokens. An empty answer gets the bottom. `scaling` is the shape
    of the fall. `reward_range` is [0, 1] unless given; it may be any range, such as [-1, 1].

    Metrics: `length`, passed within a fifth of the target or between the bounds; `token_count`.
    Cost: linear in the answer, about 10 µs per kB.
    Does not detect: length without content, such as padding or repetition (see `repetition_penalty_reward`); words of
    languages written without spaces, where `token_method="character"` counts better; tokens of a model's tokenizer.

    >>> answer = [{"role": "assistant", "content": "Paris is the capital of France."}]
    >>> length_reward(messages=answer, target_length=6).score
    1.0
    >>> length_reward(messages=answer, max_length=4, reward_range=[-1, 1]).score
    0.0
    """
    reply = reply_of(messages, "length", "token_count")
    _check_lengths(target_length, min_length, max_length)
    one_of("scaling", scaling, ("linear", "cosine"))
    low, high = (0.0, 1.0) if reward_range is None else pair("reward_range", reward_range)
    tokens = count_tokens(reply.text, token_method)
    quality, passed, reason = _quality(tokens, target_length, (min_length, max_length), scaling == "cosine")
    if not tokens:
        quality, passed, reason = 0.0, False, "The answer is empty"
    score = low + (high - low) * quality
    reference = target_length or max_length or min_length or _USUAL
    metrics = {
        "length": MetricResult(score=within_unit(score, low, high), reason=reason, is_score_valid=passed),
        "token_count": MetricResult(
            score=min(1.0, tokens / reference), reason=f"{tokens} tokens", is_score_valid=passed
        ),
    }
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


@reward_function
def cosine_length_reward(  # noqa: PLR0913 - inherited
    messages: list[Message],
    *,
    ground_truth: Any = None,
    correctness: float | None = None,
    is_correct: bool | None = None,
    max_length: int = 1000,
    min_value_wrong: float = 0.0,
    max_value_wrong: float = 0.3,
    min_value_correct: float = 0.5,
    max_value_correct: float = 1.0,
    token_method: TokenMethod = "whitespace",
    **kwargs: Any,
) -> EvaluateResult:
    """More for a right answer the shorter it is, and more for a wrong one the longer it is, along a cosine.

    `is_correct` says whether it is right, or else a `correctness` of at least 0.9; with neither, there is no verdict.
    An empty answer is a wrong one. A right answer gets `max_value_correct` at length 0, falling to
    `min_value_correct` at `max_length` tokens and more; a wrong answer gets `min_value_wrong` at length 0, rising to
    `max_value_wrong`. The values may be any numbers, such as -1.

    Metrics: `cosine_length`, `token_count`, `correctness`.
    Cost: linear in the answer, about 10 µs per kB.
    Does not detect: whether the answer is right; a wrong answer that is padded to earn `max_value_wrong`.

    >>> answer = [{"role": "assistant", "content": "4"}]
    >>> round(cosine_length_reward(messages=answer, is_correct=True, max_length=4).score, 3)
    0.927
    >>> round(cosine_length_reward(messages=answer, is_correct=False, min_value_wrong=-1, max_length=4).score, 3)
    -0.81
    """
    reply = reply_of(messages, "cosine_length", "token_count")
    right = _is_right(correctness, is_correct)
    if right is None:
        return no_verdict("Neither is_correct nor correctness says whether the answer is right. Give one of them.")
    tokens = count_tokens(reply.text, token_method)
    right = right and tokens > 0
    values = (min_value_wrong, max_value_wrong, min_value_correct, max_value_correct)
    score = cosine_between(tokens, max_length, right, values)
    reason = f"A {'right' if right else 'wrong'} answer of {tokens} tokens, of {max_length} at most."
    metrics = {
        "cosine_length": MetricResult(
            score=within_unit(score, min(values), max(values)), reason=reason, is_score_valid=right
        ),
        "token_count": MetricResult(
            score=min(1.0, tokens / max_length), reason=f"{tokens} tokens", is_score_valid=tokens <= max_length
        ),
        "correctness": check(right, f"The answer is taken to be {'right' if right else 'wrong'}."),
    }
    return EvaluateResult(score=score, reason=reason, metrics=metrics)


def _is_right(correctness: float | None, is_correct: bool | None) -> bool | None:
    if is_correct is not None:
        return bool(is_correct)
    if correctness is None:
        return None
    number("correctness", correctness)
    return correctness >= CORRECT


def _check_lengths(target: int | None, shortest: int | None, longest: int | None) -> None:
    for name, value in (("target_length", target), ("max_length", longest)):
        if value is not None:
            whole(name, value, at_least=1)
    if shortest is not None:
        whole("min_length", shortest, at_least=0)
        if longest is not None:
            whole("max_length", longest, at_least=shortest)


def _quality(
    tokens: int, target: int | None, bounds: tuple[int | None, int | None], cosine: bool
) -> tuple[float, bool, str]:
    """How good the length is in [0, 1], whether it passes, and why."""
    shortest, longest = bounds
    if target is not None:
        missed = abs(tokens - target) / target
        return _fall(missed, cosine), missed < _CLOSE, f"{tokens} tokens, where {target} are wanted"
    if shortest is None and longest is None:
        return _fall(tokens / _USUAL, cosine), True, f"{tokens} tokens; shorter is better"
    if shortest is not None and tokens < shortest:
        grown = tokens / shortest
        return _bow(grown) if cosine else grown, False, f"{tokens} tokens, fewer than {shortest}"
    if longest is not None and tokens > longest:
        excess = min(1.0, (tokens - longest) / ((longest - (shortest or 0)) or longest))
        return 1.0 - (_bow(excess) if cosine else excess), False, f"{tokens} tokens, more than {longest}"
    return 1.0, True, f"{tokens} tokens, as many as wanted"


def _fall(distance: float, cosine: bool) -> float:
    """From 1 at no distance to 0 at a distance of one and beyond."""
    distance = min(1.0, distance)
    return (1.0 + math.cos(distance * math.pi)) / 2.0 if cosine else 1.0 - distance


def _bow(share: float) -> float:
    """From 0 to 1 along a quarter of a cosine: slowly first."""
    return 1.0 - math.cos(share * math.pi / 2.0)


# ── shared with `accuracy_length` ────────────────────────────────────────────────────────────────────────────────────


def cosine_between(tokens: int, max_length: int, right: bool, values: tuple[float, float, float, float]) -> float:
    """A right answer's score falls with length, a wrong one's rises, along half a cosine that ends at `max_length`.

    `values` are the least and the most for a wrong answer, then the same for a right one.
    """
    whole("max_length", max_length, at_least=1)
    min_wrong, max_wrong, min_right, max_right = values
    number("min_value_wrong", min_wrong)
    number("max_value_wrong", max_wrong)
    number("min_value_correct", min_right)
    number("max_value_correct", max_right)
    at_nothing, at_most = (max_right, min_right) if right else (min_wrong, max_wrong)
    progress = min(1.0, tokens / max_length)
    return at_most + (at_nothing - at_most) * (1.0 + math.cos(progress * math.pi)) / 2.0


def within_unit(score: float, low: float, high: float) -> float:
    """`score` as a metric: itself where its range is within [0, 1], else where it stands in its range."""
    if low < 0.0 or high > 1.0:
        score = (score - low) / (high - low) if high > low else 1.0
    return max(0.0, min(1.0, score))
