# SPDX-License-Identifier: Apache-2.0
"""DeepEval metrics as rewards. The package is imported when a metric is adapted.

A metric measures a test case and keeps its score and reason on itself; each call therefore measures with a copy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from typing import Any

from reward_kit.integrations.scorers import NamedScore, as_reward, last_text
from reward_kit.models import Message

__all__ = ["adapt_metric"]

_CASE_COLUMNS = ("context", "retrieval_context", "tools_called", "expected_tools")
"""What a test case may hold beside input and outputs; taken from the columns of the same names."""


def adapt_metric(metric: Any) -> Callable[..., Any]:
    """A reward that measures with a DeepEval metric, of single answers or of whole conversations."""
    try:
        cases = import_module("deepeval.test_case")
        metrics = import_module("deepeval.metrics")
    except ImportError as error:
        raise ImportError("adapt_metric needs the package deepeval. Install it with: pip install deepeval") from error
    conversational = isinstance(metric, metrics.BaseConversationalMetric)

    def ask(messages: list[Message], ground_truth: Any, columns: dict[str, Any]) -> dict[str, Any]:
        if conversational:
            turns = [cases.Turn(role=m.role, content=m.text) for m in messages if m.role in {"user", "assistant"}]
            return {"case": cases.ConversationalTestCase(turns=turns)}
        return {"case": cases.LLMTestCase(**_case(messages, ground_truth, columns))}

    def measure(case: Any) -> Any:
        fresh = copy.copy(metric)
        fresh.measure(case)
        return fresh

    measure.__name__ = _name(metric)
    return as_reward(measure, ask, _scores)


def _case(messages: list[Message], ground_truth: Any, columns: dict[str, Any]) -> dict[str, Any]:
    case: dict[str, Any] = {
        "input": messages[-2].text if len(messages) > 1 else "",
        "actual_output": messages[-1].text,
        **{name: columns[name] for name in _CASE_COLUMNS if columns.get(name) is not None},
    }
    if ground_truth is not None:
        case["expected_output"] = last_text(ground_truth)
    return case


def _scores(measured: Any) -> list[NamedScore]:
    score = measured.score
    reason = str(getattr(measured, "reason", None) or getattr(measured, "error", None) or "")
    return [NamedScore(_name(measured), None if score is None else float(score), reason)]


def _name(metric: Any) -> str:
    """The metric's own name: `name` where it was given one, else `__name__`, which DeepEval defines for display."""
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", None) or type(metric).__name__)
