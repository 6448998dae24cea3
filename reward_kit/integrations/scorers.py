# SPDX-License-Identifier: Apache-2.0
"""What other people's scorers have in common: they are called by name, and answer with named scores.

messages, ground truth, columns → the scorer's own arguments → scorer → named scores → EvaluateResult
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.typed_interface import OPERATORS, is_async, marks_of, name_of, reward_function, signature_of

__all__ = ["NamedScore", "accepted", "as_reward", "last_text", "result_of"]


class NamedScore(NamedTuple):
    """One score of a foreign scorer."""

    name: str
    score: float | None
    """None: the scorer declined to judge."""
    reason: str = ""


def as_reward(
    scorer: Callable[..., Any],
    ask: Callable[[list[Message], Any, dict[str, Any]], dict[str, Any]],
    read: Callable[[Any], Sequence[NamedScore]],
) -> Callable[..., Any]:
    """A reward that calls `scorer` with what `ask` makes of its own arguments, and answers with what `read` finds."""

    def reward(messages: list[Message], ground_truth: list[Message] | Any = None, **kwargs: Any) -> EvaluateResult:
        return result_of(read(scorer(**ask(messages, ground_truth, kwargs))))

    async def reward_async(
        messages: list[Message], ground_truth: list[Message] | Any = None, **kwargs: Any
    ) -> EvaluateResult:
        return result_of(read(await scorer(**ask(messages, ground_truth, kwargs))))

    chosen: Callable[..., Any] = reward_async if is_async(scorer) else reward
    chosen.__name__ = chosen.__qualname__ = name_of(scorer)
    chosen.__doc__ = inspect.getdoc(scorer)
    vars(chosen)["__signature__"] = _with_marks(scorer, signature_of(chosen))
    return reward_function(chosen)


def _with_marks(scorer: Callable[..., Any], signature: inspect.Signature) -> inspect.Signature:
    """The signature with the scorer's own parameters that no column may fill."""
    *named, others = signature.parameters.values()
    marks = marks_of(scorer)
    own = sorted({*marks.operators, *marks.below})
    kept_back = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=OPERATORS) for n in own]
    return signature.replace(parameters=[*named, *kept_back, others])


def result_of(scores: Sequence[NamedScore]) -> EvaluateResult:
    """The mean of what was judged, each score a metric of its own; no verdict where nothing was."""
    judged = [(each, each.score) for each in scores if each.score is not None]
    reason = "; ".join(each.reason for each in scores if each.reason) or None
    if not judged:
        return EvaluateResult(
            score=0.0, is_score_valid=False, reason=reason, error=reason or "the scorer gave no score"
        )
    metrics = {each.name: MetricResult(score=score, reason=each.reason) for each, score in judged if 0 <= score <= 1}
    return EvaluateResult(score=sum(score for _, score in judged) / len(judged), reason=reason, metrics=metrics)


def last_text(truth: Any) -> Any:
    """What a ground truth says: the last turn's text where it is a conversation, else the value itself."""
    if isinstance(truth, list) and truth and isinstance(truth[-1], Message):
        return truth[-1].text
    return truth


def accepted(func: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the given arguments that `func` takes by name; all of them if it has `**kwargs`."""
    parameters = signature_of(func).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return dict(given)
    return {name: value for name, value in given.items() if name in parameters}
