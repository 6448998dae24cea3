# SPDX-License-Identifier: Apache-2.0
"""The generic dialect: verdicts as they are, one or many at a time.

    POST /evaluate         {messages, ground_truth?, kwargs?, sample_id?, …}        → a result
                           {rollouts_messages: [messages, …], ground_truth?, …}     → {results: […]}, for group rewards
    POST /evaluate/batch   {items: [{messages, …}, …]}                              → {results: […]}, in order
    POST /reward           as /evaluate; without a ground truth, the prompt stands in for it (inherited)

Fields beside these, and those of `kwargs`, reach the reward by name. What could not be judged is a result with
`is_score_valid: false`, `error`, and `null` for its score, so that nobody takes it for a zero; its `failure` says of
which type, whether trying again may help, and what the reward returned, where that is a result that is no verdict.
`/reward`, whose callers expect a number, answers 5xx instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.models import EvaluateResult, Failure, Verdict
from reward_kit.serving.dialect import (
    Asked,
    BadRequest,
    Dialect,
    Exchange,
    Incoming,
    Reply,
    Route,
    failed_reply,
    messages_in,
    object_in,
)

__all__ = ["GENERIC", "INHERITED", "result_body"]

_OWN_FIELDS = frozenset({"messages", "rollouts_messages", "ground_truth", "kwargs", "sample_id"})


def result_body(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON."""
    if isinstance(verdict, Failure):
        failure: dict[str, Any] = {"type": verdict.type, "retryable": verdict.retryable}
        if verdict.invalid_result is not None:
            failure["result"] = verdict.invalid_result.model_dump()
        if verdict.unread_replies:
            failure["unread_replies"] = verdict.unread_replies
        return {
            "score": None, "is_score_valid": False, "reason": verdict.message, "metrics": {}, "step_outputs": None,
            "error": verdict.message, "failure": failure,
        }  # fmt: skip
    if type(verdict) is EvaluateResult and not verdict.metrics and verdict.step_outputs is None:
        return {  # a fraction of what a dump costs
            "score": verdict.score, "is_score_valid": verdict.is_score_valid, "reason": verdict.reason, "metrics": {},
            "step_outputs": None, "error": verdict.error,
        }  # fmt: skip
    return verdict.model_dump()


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _asked(item: Mapping[str, Any], messages: Any, field: str = "messages") -> Asked:
    if len(item) == 2 and "ground_truth" in item:  # as it mostly is
        return Asked(messages_in(messages, field), item["ground_truth"])
    columns = {name: value for name, value in item.items() if name not in _OWN_FIELDS}
    if kwargs := item.get("kwargs"):
        if not isinstance(kwargs, dict):
            raise BadRequest(
                "The field 'kwargs' is not an object. Send an object of names and values, or leave it out."
            )
        columns |= kwargs
    sample_id = item.get("sample_id")
    if sample_id is not None and not isinstance(sample_id, str):
        raise BadRequest("The field 'sample_id' is not a text. Send a text, or leave it out.")
    return Asked(messages_in(messages, field), item.get("ground_truth"), columns, sample_id)


def _one(incoming: Incoming) -> Exchange:
    body = object_in(incoming.json)
    if "rollouts_messages" in body:
        return Exchange(_group(body), _many_results)
    object_in(body, "messages")
    return Exchange([_asked(body, body["messages"])], _one_result)


def _group(body: Mapping[str, Any]) -> list[Asked]:
    conversations = body["rollouts_messages"]
    if not isinstance(conversations, list) or not conversations:
        raise BadRequest(
            "The field 'rollouts_messages' is not a list of conversations. Send one list of messages each."
        )
    return [
        _asked(body, messages, f"rollouts_messages[{number}]") for number, messages in enumerate(conversations)
    ]  # fmt: skip


def _batch(incoming: Incoming) -> Exchange:
    items = object_in(incoming.json, "items")["items"]
    if not isinstance(items, list) or not items:
        raise BadRequest("The field 'items' is not a list of requests. Send a list of objects with messages.")
    asked = []
    for number, item in enumerate(items):
        if not isinstance(item, dict) or "messages" not in item:
            raise BadRequest(f"items[{number}] is not an object with messages. Send messages, and ground_truth if any.")
        asked.append(_asked(item, item["messages"], f"items[{number}].messages"))
    return Exchange(asked, _many_results)


def _one_or_error(incoming: Incoming) -> Exchange:
    exchange = _one(incoming)
    return exchange._replace(reply=lambda verdicts: failed_reply(verdicts) or exchange.reply(verdicts))


def _inherited(incoming: Incoming) -> Exchange:
    body = object_in(incoming.json, "messages")
    asked = _asked(body, body["messages"])
    if asked.ground_truth is None:
        asked = asked._replace(ground_truth=asked.messages[:-1])
    return Exchange([asked], _one_result_or_error)


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _one_result(verdicts: Sequence[Verdict]) -> Reply:
    return Reply(200, result_body(verdicts[0]))


def _many_results(verdicts: Sequence[Verdict]) -> Reply:
    return Reply(200, {"results": [result_body(verdict) for verdict in verdicts]})


def _one_result_or_error(verdicts: Sequence[Verdict]) -> Reply:
    return failed_reply(verdicts) or _one_result(verdicts)


# ── for the OpenAPI document ─────────────────────────────────────────────────────────────────────────────────────────

_MESSAGES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["role"],
        "properties": {"role": {"type": "string"}, "content": {"type": ["string", "array", "null"]}},
    },
}
_REST = {
    "ground_truth": {"description": "What a right answer looks like: a text, or any JSON value."},
    "kwargs": {"type": "object", "description": "Further arguments of the reward, by name."},
    "sample_id": {"type": ["string", "null"], "description": "Answers with the same one belong to one prompt."},
}
_ITEM = {
    "type": "object",
    "required": ["messages"],
    "properties": {"messages": _MESSAGES, **_REST},
    "additionalProperties": True,
}
_GROUP = {
    "type": "object",
    "required": ["rollouts_messages"],
    "properties": {"rollouts_messages": {"type": "array", "items": _MESSAGES}, **_REST},
    "additionalProperties": True,
}
_RESULT = {
    "type": "object",
    "required": ["score", "is_score_valid"],
    "properties": {
        "score": {"type": ["number", "null"], "description": "Null where it could not be judged."},
        "is_score_valid": {"type": "boolean"},
        "reason": {"type": ["string", "null"]},
        "metrics": {"type": "object"},
        "step_outputs": {"type": ["array", "null"]},
        "error": {"type": ["string", "null"]},
        "failure": {
            "type": "object",
            "properties": {
                "type": {"type": "string"},
                "retryable": {"type": "boolean"},
                "result": {"type": "object", "description": "What the reward returned, where it is no verdict."},
                "unread_replies": {"type": "array", "description": "What a judge replied that could not be read."},
            },
        },
    },
}
_RESULTS = {"type": "object", "required": ["results"], "properties": {"results": {"type": "array", "items": _RESULT}}}

GENERIC = Dialect(
    "generic",
    "Verdicts as they are, one or many at a time.",
    [
        Route(
            "/evaluate", _one, "Judge one answer, or all answers to one prompt.",
            request_schema={"anyOf": [_ITEM, _GROUP]}, response_schema={"anyOf": [_RESULT, _RESULTS]},
        ),
        Route(
            "/evaluate/batch", _batch, "Judge many answers.",
            request_schema={
                "type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items": _ITEM}},
            },
            response_schema=_RESULTS,
        ),
        Route(
            "/reward", _inherited, "Judge one answer; what cannot be judged is an error.",
            request_schema=_ITEM, response_schema=_RESULT,
        ),
    ],
)  # fmt: skip

INHERITED = Dialect(
    "inherited",
    "As `reward_kit.generic_server` has answered: what cannot be judged is an error.",
    [
        Route(
            "/evaluate",
            _one_or_error,
            "Judge one answer; what cannot be judged is an error.",
            request_schema={"anyOf": [_ITEM, _GROUP]},
            response_schema={"anyOf": [_RESULT, _RESULTS]},
        )
    ],
)
