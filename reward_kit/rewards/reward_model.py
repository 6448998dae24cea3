# SPDX-License-Identifier: Apache-2.0
"""Reward models: a model trained to score answers, behind an HTTP endpoint."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Literal

from reward_kit.answers.reasoning import without_reasoning
from reward_kit.errors import RewardError
from reward_kit.models import EvaluateResult, Failure, Message, MetricResult
from reward_kit.rewards._judging.asking import as_asker
from reward_kit.rewards._support.parameters import one_of
from reward_kit.rewards._support.verdicts import no_verdict, reply_of
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["reward_model_reward"]

_SECONDS = 600.0
_LONGEST = 200_000
"""Characters of a conversation that is sent to a model."""
_NUMBER = re.compile(r"(?:[\w ]{1,30}[:=])?\s*(-?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?)\s*")


@reward_function(timeout=_SECONDS)
async def reward_model_reward(
    messages: list[Message], *, judge: Operator[Any], transform: Literal["none", "sigmoid"] = "none", **kwargs: Any
) -> EvaluateResult:
    """The score that a reward model gives the conversation, as it is, or its sigmoid.

    The model is the run's judge. `judge.api` says how it is asked: `pooling` or `classify` (vLLM, which applies the
    model's chat template), `score` (vLLM: the turns before the answer as the first text, the answer as the second), or
    `chat` for endpoints that answer a conversation with a number ("reward:-3.2"). The score is the model's own number,
    which may be negative; with `transform="sigmoid"` it is between 0 and 1. The model's reasoning is not sent. If the
    model does not answer, or answers with anything but one number, there is no verdict.

    Metrics: `reward_model`, the sigmoid of the model's number; `error`.
    Cost: one request, once: scores are cached.
    Does not detect: what the model was not trained to see; a policy that is trained on it long enough finds its faults.

    >>> import asyncio
    >>> settings = {"model_name": "mock", "mock": {"responses": ["reward: -2.5"]}, "cache": {"enabled": False}}
    >>> talk = [Message(role="user", content="2 + 2?"), Message(role="assistant", content="4")]
    >>> asyncio.run(reward_model_reward(talk, judge=settings)).score
    -2.5
    """
    reply = reply_of(messages)
    one_of("transform", transform, ("none", "sigmoid"))
    answer = reply.model_copy(update={"content": without_reasoning(reply.text).strip(), "reasoning_content": None})
    conversation = [*messages[:-1], answer]
    if sum(len(message.text) for message in conversation) > _LONGEST:
        return no_verdict(f"The conversation has more than {_LONGEST} characters, too many to send to a model.")
    async with as_asker(judge) as asker:
        (response,) = await asker.ask(conversation)
    if isinstance(response, Failure):
        raise RewardError(f"The reward model could not be asked: {response.message}", retryable=response.retryable)
    number = _number(response)
    squashed = 0.5 * (1.0 + math.tanh(number / 2))
    reason = f"the reward model says {number:g}"
    metrics = {"reward_model": MetricResult(score=squashed, reason=reason)}
    return EvaluateResult(score=squashed if transform == "sigmoid" else number, reason=reason, metrics=metrics)


def _number(reply: str) -> float:
    """The number in a reply, which must be nothing else."""
    number: Any = None
    try:
        read = json.loads(reply)
        (number,) = read if isinstance(read, list) else [read]
    except ValueError:  # no JSON, or not one entry
        if written := _NUMBER.fullmatch(reply):
            number = float(written[1])
    if isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number):
        return float(number)
    raise RewardError(
        f"The reward model's reply {reply[:80]!r} is not one number. Check `judge.model_name` and `judge.api`: "
        "the model must have a single output."
    )
