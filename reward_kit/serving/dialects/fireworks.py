# SPDX-License-Identifier: Apache-2.0
"""Fireworks' remote evaluator: `--remote-url http://host:8000/fireworks`, to which it adds `/evaluate`.

    POST /fireworks/evaluate   {"messages", "ground_truth"?, "tools"?, "kwargs"?}
                               →  {"score", "reason", "is_score_valid", "metrics"}

What could not be judged is `is_score_valid: false`, its word for it, with `error` and the score that its schema asks
for. Failures that may pass are a 503 instead, so that they are tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reward_kit.models import Failure, Verdict
from reward_kit.serving.dialect import Dialect, Exchange, Incoming, Reply, Route, failed_reply
from reward_kit.serving.dialects.generic import GENERIC, result_body

__all__ = ["FIREWORKS"]

_EVALUATE = next(route for route in GENERIC.routes if route.path == "/evaluate")


def _read(incoming: Incoming) -> Exchange:
    return _EVALUATE.read(incoming)._replace(reply=_reply)


def _reply(verdicts: Sequence[Verdict]) -> Reply:
    if all(isinstance(verdict, Failure) and verdict.retryable for verdict in verdicts):
        return failed_reply(verdicts) or Reply(503, {})
    bodies = [_body(verdict) for verdict in verdicts]
    return Reply(200, bodies[0] if len(bodies) == 1 else {"results": bodies})


def _body(verdict: Verdict) -> dict[str, Any]:
    body = result_body(verdict)
    return {**body, "score": 0.0} if isinstance(verdict, Failure) else body  # its schema wants a number there


FIREWORKS = Dialect(
    "fireworks",
    "Fireworks' remote evaluator.",
    [
        Route(
            "/fireworks/evaluate", _read, "Judge one answer; what could not be judged has is_score_valid false.",
            request_schema=_EVALUATE.request_schema, response_schema=_EVALUATE.response_schema,
        )
    ],
    one_answer=True,
)  # fmt: skip
