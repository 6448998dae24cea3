# SPDX-License-Identifier: Apache-2.0
"""Similarity of meaning: how near an answer is to the right text, by a model's embeddings of both."""

from __future__ import annotations

import json
import math
from typing import Any

from reward_kit.answers.reasoning import without_reasoning
from reward_kit.errors import RewardError
from reward_kit.models import EvaluateResult, Failure, Message, MetricResult
from reward_kit.rewards._judging.asking import Asker, as_asker
from reward_kit.rewards._support.references import reference_texts
from reward_kit.rewards._support.verdicts import check, no_verdict, no_verdict_if_unreadable, reply_of, wrong
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["embedding_similarity_reward"]

_SECONDS = 600.0
_LONGEST = 200_000
"""Characters of a text that is sent to a model."""


@reward_function(timeout=_SECONDS)
async def embedding_similarity_reward(
    messages: list[Message], *, judge: Operator[Any], ground_truth: Any = None, **kwargs: Any
) -> EvaluateResult:
    """The cosine of the embeddings of the last message and of the ground truth, from 0.0 to 1.0.

    The model is the run's judge, with `judge.api: embeddings` (OpenAI's `/v1/embeddings`, as most servers have it); in
    code, `judge` may also be its settings. Of several right texts the nearest counts; a negative cosine counts as 0.0.
    The model's reasoning is not part of the answer, and an empty answer gets 0.0. If the ground truth is not text, or
    the model gives no answer, there is no verdict.

    Metrics: `similarity`; `error`.
    Cost: a request for the answer and one for each right text, once: embeddings are cached.
    Does not detect: a "not", swapped roles, wrong numbers: such texts are near each other. Which cosine is good depends
    on the model; unrelated texts often have 0.2 to 0.7.

    >>> import asyncio
    >>> one = {"pattern": "cat", "response": "[1.0, 0.0]"}
    >>> mock = {"model_name": "mock", "api": "embeddings", "mock": {"rules": [one], "responses": ["[0.6, 0.8]"]}}
    >>> reply = [Message(role="assistant", content="a cat")]
    >>> settings = {**mock, "cache": {"enabled": False}}
    >>> asyncio.run(embedding_similarity_reward(reply, judge=settings, ground_truth="a dog")).score
    0.6
    """
    reply = reply_of(messages)
    with no_verdict_if_unreadable():
        right = reference_texts(ground_truth)
    answer = without_reasoning(reply.text).strip()
    if not answer:
        return wrong("There is no answer to compare.", {"similarity": check(False, "the answer is empty")})
    if max(len(text) for text in (answer, *right)) > _LONGEST:
        return no_verdict(f"A text has more than {_LONGEST} characters, too many to send to a model.")
    async with as_asker(judge) as asker:
        given = await _embedding(asker, answer)
        cosines = [_cosine(given, await _embedding(asker, text)) for text in right]
    score = min(1.0, max(0.0, *cosines))
    reason = f"cosine {max(cosines):.4f} with the nearest of {len(right)} right texts"
    return EvaluateResult(score=score, reason=reason, metrics={"similarity": MetricResult(score=score, reason=reason)})


async def _embedding(asker: Asker, text: str) -> list[float]:
    (reply,) = await asker.ask([Message(role="user", content=text)])
    if isinstance(reply, Failure):
        raise RewardError(f"The embedding model could not be asked: {reply.message}", retryable=reply.retryable)
    try:
        vector = json.loads(reply)
        numbers = [float(value) for value in vector]
    except (ValueError, TypeError):
        raise RewardError(
            f"The judge's reply {reply[:80]!r} is not an embedding. Set `judge.api` to 'embeddings' and "
            "`judge.model_name` to an embedding model."
        ) from None
    if not numbers or not 0.0 < math.hypot(*numbers) < math.inf:
        raise RewardError(f"The embedding {reply[:80]!r} holds only zeros. Use another embedding model.")
    return numbers


def _cosine(one: list[float], other: list[float]) -> float:
    if len(one) != len(other):
        raise RewardError(
            f"Embeddings of {len(one)} and {len(other)} numbers cannot be compared. Use one model for both."
        )
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))
