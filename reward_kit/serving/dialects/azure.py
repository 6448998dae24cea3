# SPDX-License-Identifier: Apache-2.0
"""Azure AI Foundry's endpoint-based evaluator, and graders that post an item and a sample.

    POST /azure   {"data": {"item": {…}, "sample": {…}}}  or  {"item": {…}, "sample": {…}}
                  →  {"schema_version", "status": "Completed", "score", "reason", "passed", "threshold", "properties"}

The sample is what the model said (`output_text`, `output_tools`). The item is its row, and is read as a row of a
dataset is: it says what was asked and what a right answer looks like, and the rest reaches the reward by name. An
answer has passed from the request's own threshold on, else the reward's. What could not be judged has the status
`Error` and no score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.models import EvaluateResult, Verdict
from reward_kit.serving.dialect import (
    BadRequest,
    Dialect,
    Exchange,
    Incoming,
    Reply,
    Route,
    object_in,
    rollout_of_row,
)
from reward_kit.serving.dialects.numbers import metrics_of

__all__ = ["AZURE"]

_VERSION = "0.0.1"
_ANSWERS = ("output_text", "response", "output")


def _read(incoming: Incoming) -> Exchange:
    body = object_in(incoming.json)
    data = _object(body.get("data", body), "data")
    item, sample = _object(data.get("item") or {}, "item"), _object(data.get("sample") or {}, "sample")
    answer = _first(sample, _ANSWERS) if _first(sample, _ANSWERS) is not None else item.get("response")
    calls = sample.get("output_tools") or []
    if not isinstance(answer, str) and not calls:
        raise BadRequest("There is no answer: neither 'sample.output_text' nor 'item.response' is a text. Send one.")
    turn: dict[str, Any] = {"role": "assistant", "content": answer if isinstance(answer, str) else None}
    if calls:
        turn["tool_calls"] = calls
    settings = body.get("initialization_parameters") or {}
    given = settings.get("threshold") if isinstance(settings, dict) else None
    line = float(given) if isinstance(given, int | float) else incoming.pass_threshold
    row = {name: value for name, value in item.items() if name != "response"}
    return Exchange([rollout_of_row(incoming, row, turn)], lambda verdicts: _reply(verdicts, line))


def _object(value: Any, field: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRequest(f"The field {field!r} is not an object. Send {{'item': …, 'sample': …}}.")
    return value


def _first(given: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _reply(verdicts: Sequence[Verdict], line: float) -> Reply:
    (verdict,) = verdicts
    if not isinstance(verdict, EvaluateResult):
        error = {"code": verdict.type, "message": verdict.message}
        return Reply(200, {"schema_version": _VERSION, "status": "Error", "error": error})
    body = {
        "schema_version": _VERSION, "status": "Completed", "score": verdict.score, "reason": verdict.reason or "",
        "threshold": line, "passed": verdict.score >= line, "properties": metrics_of(verdict),
    }  # fmt: skip
    return Reply(200, body)


_ANY = {"type": "object", "additionalProperties": True}

AZURE = Dialect(
    "azure",
    "Azure AI Foundry's endpoint-based evaluator.",
    [
        Route(
            "/azure", _read, "Judge the sample of an item.",
            request_schema={
                "type": "object",
                "properties": {"data": {"type": "object", "properties": {"item": _ANY, "sample": _ANY}}, "item": _ANY},
            },
            response_schema={
                "type": "object", "required": ["schema_version", "status"],
                "properties": {
                    "status": {"enum": ["Completed", "Error", "Skipped"]}, "score": {"type": "number"},
                    "reason": {"type": "string"}, "passed": {"type": "boolean"}, "error": _ANY,
                },
            },
        )
    ],
    one_answer=True,
)  # fmt: skip
