# SPDX-License-Identifier: Apache-2.0
"""What every reward of the library says in the same words: a check, a wrong answer, no verdict, no answer at all.

A *wrong answer* is a score of 0.0. *No verdict* is `is_score_valid=False`: a failure in a run and `None` in a trainer,
never a zero. In the library's metrics, `is_score_valid` says whether that check passed. A reason quotes what it is
about, however long that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from reward_kit.answers.reasoning import without_reasoning
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.typed_interface import EarlyVerdict

__all__ = [
    "check",
    "last_reply",
    "no_reply",
    "no_verdict",
    "no_verdict_if_unreadable",
    "quoted",
    "reply_of",
    "shortened",
    "wrong",
]


Metrics = Mapping[str, MetricResult]

_NOBODY: Final = (
    "The last message is not the assistant's, so there is no answer to judge. Append the answer to the messages."
)


def last_reply(messages: Sequence[Message], ends_at: str | None = None) -> Message | None:
    """The last message, if it is the assistant's; up to the end of the first line in which `ends_at` is found."""
    reply = messages[-1] if messages and messages[-1].role == "assistant" else None
    if reply is None or ends_at is None:
        return reply
    spoken = without_reasoning(reply.text)
    if (found := re.search(ends_at, spoken)) is None:
        return reply
    return Message(role="assistant", content=spoken[: found.end()] + spoken[found.end() :].partition("\n")[0])


def check(passed: bool, reason: str) -> MetricResult:
    """A metric that passed (1.0) or did not (0.0)."""
    return MetricResult(score=float(passed), reason=reason, is_score_valid=passed)


def wrong(reason: str, metrics: Metrics | None = None) -> EvaluateResult:
    """0.0, because the answer is wrong."""
    return EvaluateResult(score=0.0, reason=reason, metrics=dict(metrics or {}))


def no_verdict(reason: str, metrics: Metrics | None = None) -> EvaluateResult:
    """No score: what is needed to judge the answer is missing or broken. The metric `error` says so."""
    return EvaluateResult(
        score=0.0, is_score_valid=False, reason=reason, metrics={**(metrics or {}), "error": check(False, reason)}
    )


def no_reply(*metrics: str) -> EvaluateResult:
    """No verdict, with these metrics of the reward, because the last message is not the assistant's.

    An assistant's message without a text is an answer, and a wrong one; here nobody has answered.
    """
    return no_verdict(_NOBODY, {name: check(False, _NOBODY) for name in metrics})


def reply_of(messages: Sequence[Message], *metrics: str, ends_at: str | None = None) -> Message:
    """The assistant's last message, as `last_reply` has it. Without one, the reward ends with `no_reply`."""
    reply = last_reply(messages, ends_at)
    if reply is None:
        raise EarlyVerdict(no_reply(*metrics))
    return reply


@contextmanager
def no_verdict_if_unreadable(before: str = "") -> Iterator[None]:
    """What raises a `ValueError` in the block cannot be read, and the reward ends: no verdict, which says why."""
    try:
        yield
    except ValueError as error:
        raise EarlyVerdict(no_verdict(f"{before}{error}")) from error


# ── quoting in reasons ───────────────────────────────────────────────────────────────────────────────────────────────


_SHOWN: Final = 200


def shortened(text: str) -> str:
    """The beginning of a text, and a sign where more follows."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def quoted(value: object) -> str:
    """The value as Python writes it; a text is shortened before, anything else after."""
    return repr(shortened(value)) if isinstance(value, str) else shortened(repr(value))
