# SPDX-License-Identifier: Apache-2.0
"""What dialects share whose callers know nothing but numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

from reward_kit.models import EvaluateResult, Verdict
from reward_kit.serving.dialect import Reply, failed_reply

__all__ = ["metrics_of", "results_or_failed"]


def results_or_failed(body: Callable[[Sequence[EvaluateResult]], Any]) -> Callable[[Sequence[Verdict]], Reply]:
    """A reply made of results alone: where one answer could not be judged, it is a 5xx, and the caller tries again."""

    @functools.wraps(body)
    def reply(verdicts: Sequence[Verdict]) -> Reply:
        return failed_reply(verdicts) or Reply(200, body(cast(Sequence[EvaluateResult], verdicts)))

    return reply


def metrics_of(result: EvaluateResult) -> dict[str, float]:
    """The score of each metric, by name."""
    return {name: metric.score for name, metric in result.metrics.items()}
