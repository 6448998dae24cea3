# SPDX-License-Identifier: Apache-2.0
"""The generic dialect: verdicts as they are, one or many at a time.

    POST /evaluate         {messages, ground_truth?, kwargs?, sample_id?, rollout?, …}    → a result
                           {rollouts_messages: [messages, …], ground_truth?, …}     → {results: […]}, for group rewards
    POST /evaluate/batch   {items: [{messages, …}, …]}                              → {results: […]}, in order
    POST /reward           as /evaluate; without a ground truth, the prompt stands in for it (inherited)

Fields beside these, and those of `kwargs`, are the columns of a row: they are read as the rows of a dataset are, and
reach the reward by name. What is known of the attempt itself (`model`, `finish_reason`, `steps` …) stands in `rollout`,
and nothing else can say it; of a group, a list of them in `rollouts`. What could not be judged is a result with
`is_score_valid: false`, `error`, and `null` for its score, so that nobody takes it for a zero; its `failure` says of
which type, whether trying again may help, and what the reward returned, where that is a result that is no verdict.
`/reward`, whose callers expect a number, answers 5xx instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from reward_kit.models import EvaluateResult, Failure, Rollout, Verdict
from reward_kit.serving.dialect import (
    BadRequest,
    Dialect,
    Exchange,
    Incoming,
    Reply,
    Route,
    failed_reply,
    object_in,
    rollout_in,
)

__all__ = ["GENERIC", "INHERITED", "result_body"]

_OWN_FIELDS = frozenset({"messages", "rollouts_messages", "kwargs", "sample_id", "rollout", "rollouts"})


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


def _asked(
    item: Mapping[str, Any], turns: Any, told: Any, incoming: Incoming, field: str = "messages",
    sample_id: str | None = None,
) -> Rollout:  # fmt: skip
    if len(item) == 2 and "ground_truth" in item:  # as it mostly is
        return rollout_in(incoming, {"ground_truth": item["ground_truth"]}, turns, field)
    row = {name: value for name, value in item.items() if name not in _OWN_FIELDS}
    if kwargs := item.get("kwargs"):
        if not isinstance(kwargs, dict):
            raise BadRequest(
                "The field 'kwargs' is not an object. Send an object of names and values, or leave it out."
            )
        row = {**kwargs, **row} if "ground_truth" in row else {**row, **kwargs}
    sample_id = item.get("sample_id") or sample_id
    if sample_id is not None and not isinstance(sample_id, str):
        raise BadRequest("The field 'sample_id' is not a text. Send a text, or leave it out.")
    rollout = rollout_in(incoming, row, turns, field, sample_id=sample_id)
    return rollout if told is None else _as_told(rollout, told)


def _as_told(rollout: Rollout, told: Any) -> Rollout:
    """The rollout with what the caller knows of the attempt: model, finish reason, steps, facts …"""
    if not isinstance(told, dict):
        raise BadRequest("What is known of a rollout is not an object. Send an object such as {'model': 'm'}.")
    sample = rollout.sample.model_copy(update={name: told[name] for name in ("split", "tools") if name in told})
    fields = {"response_index": rollout.response_index, **told, "sample": sample, "turns": rollout.turns}
    try:
        return Rollout.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadRequest(f"rollout.{place}: {first['msg']}. Send what the API document says.") from None


def _one(incoming: Incoming) -> Exchange:
    body = object_in(incoming.json)
    if "rollouts_messages" in body:
        return Exchange(_group(body, incoming), _many_results)
    object_in(body, "messages")
    return Exchange([_asked(body, body["messages"], body.get("rollout"), incoming)], _one_result)


def _group(body: Mapping[str, Any], incoming: Incoming) -> list[Rollout]:
    conversations, told = body["rollouts_messages"], body.get("rollouts")
    if not isinstance(conversations, list) or not conversations:
        raise BadRequest(
            "The field 'rollouts_messages' is not a list of conversations. Send one list of messages each."
        )
    if told is not None and (not isinstance(told, list) or len(told) != len(conversations)):
        raise BadRequest("The field 'rollouts' is not a list of one object per conversation. Send one each.")
    asked: list[Rollout] = []
    for number, messages in enumerate(conversations):
        known = asked[0].sample.id if asked else None  # whatever their prompts look like, they are of one sample
        field = f"rollouts_messages[{number}]"
        asked.append(_asked(body, messages, None if told is None else told[number], incoming, field, known))
    return asked


def _batch(incoming: Incoming) -> Exchange:
    items = object_in(incoming.json, "items")["items"]
    if not isinstance(items, list) or not items:
        raise BadRequest("The field 'items' is not a list of requests. Send a list of objects with messages.")
    asked = []
    for number, item in enumerate(items):
        if not isinstance(item, dict) or "messages" not in item:
            raise BadRequest(f"items[{number}] is not an object with messages. Send messages, and ground_truth if any.")
        asked.append(_asked(item, item["messages"], item.get("rollout"), incoming, f"items[{number}].messages"))
    return Exchange(asked, _many_results)


def _one_or_error(incoming: Incoming) -> Exchange:
    exchange = _one(incoming)
    return exchange._replace(reply=lambda verdicts: failed_reply(verdicts) or exchange.reply(verdicts))


def _inherited(incoming: Incoming) -> Exchange:
    body = object_in(incoming.json, "messages")
    turns = body["messages"]
    rollout = _asked(body, turns, body.get("rollout"), incoming)
    if rollout.sample.ground_truth is None:  # as the older server had it: what came before the answer
        sample = rollout.sample.model_copy(update={"ground_truth": turns[:-1]})
        rollout = rollout.model_copy(update={"sample": sample})
    return Exchange([rollout], _one_result_or_error)


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
    "rollout": {"type": "object", "description": "What is known of the attempt: model, finish_reason, steps, facts …"},
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
