# SPDX-License-Identifier: Apache-2.0
"""OpenEvals evaluators as rewards. The package is not imported.

An evaluator is called by name with `outputs`, `reference_outputs`, `inputs` and whatever else it takes. It answers with
`{"key", "score", "comment"}` or a list of these; a score is a number, a bool, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reward_kit.integrations.scorers import NamedScore, accepted, as_reward, last_text
from reward_kit.models import Message

__all__ = ["adapt"]


def adapt(openeval_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A reward that asks an OpenEvals evaluator, synchronous or not. Of several scores it takes the mean."""

    def ask(messages: list[Message], ground_truth: Any, columns: dict[str, Any]) -> dict[str, Any]:
        given = {"outputs": messages[-1].text, "reference_outputs": last_text(ground_truth)}
        prompt = messages[-2].text if len(messages) > 1 else ""
        return accepted(openeval_fn, {"inputs": prompt, **columns, **given})

    return as_reward(openeval_fn, ask, _scores)


def _scores(answer: Any) -> list[NamedScore]:
    if isinstance(answer, list):
        return [score for each in answer for score in _scores(each)]
    if not isinstance(answer, Mapping):
        raise TypeError(f"the evaluator answered {answer!r}; expected a dict with a score, or a list of them")
    score = answer.get("score")
    number = None if score is None else float(score)
    return [NamedScore(str(answer.get("key") or "openeval"), number, str(answer.get("comment") or ""))]
