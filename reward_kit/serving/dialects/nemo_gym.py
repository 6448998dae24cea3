# SPDX-License-Identifier: Apache-2.0
"""NeMo-Gym's resources server, for answers of one turn.

    POST /seed_session        {…}                                                    →  {}
    POST /verify              {"responses_create_params", "response", columns …}     →  the same, with "reward"
    POST /aggregate_metrics   {"verify_responses": [...]}                            →  {"group_level_metrics", …}

`response` is an object of OpenAI's Responses API: its messages and tool calls are the answer. Every other column of the
row reaches the reward by name, and comes back unchanged. It has no word for "not judged": the reply is a 5xx then, and
NeMo-Gym raises the error of the request.
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
    failed_reply,
    object_in,
    rollout_in,
)
from reward_kit.serving.dialects.numbers import metrics_of

__all__ = ["NEMO_GYM", "turns_of_responses"]

_TEXTS = frozenset({"input_text", "output_text", "text"})


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _seed(incoming: Incoming) -> Exchange:
    return Exchange([], lambda _: Reply(200, {}))


def _aggregate(incoming: Incoming) -> Exchange:
    """The mean reward of what was verified: NeMo-Gym asks for it when a batch is done."""
    body = object_in(incoming.json)
    given = body.get("verify_responses") or []
    if not isinstance(given, list):
        raise BadRequest("The field 'verify_responses' is not a list. Send what /verify replied.")
    rewards = [
        each["reward"] for each in given if isinstance(each, dict) and isinstance(each.get("reward"), int | float)
    ]
    mean = {"mean/reward": sum(rewards) / len(rewards)} if rewards else {}
    return Exchange([], lambda _: Reply(200, {"group_level_metrics": [], "agent_metrics": mean, "key_metrics": mean}))


# ── verify ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _verify(incoming: Incoming) -> Exchange:
    body = object_in(incoming.json, "response")
    asked_for = body.get("responses_create_params") or {}
    response = body["response"]
    if not isinstance(asked_for, dict) or not isinstance(response, dict):
        raise BadRequest(
            "'responses_create_params' and 'response' are objects of the Responses API. Send both as such."
        )
    prompt = turns_of_responses(asked_for.get("input") or [], "user")
    if instructions := asked_for.get("instructions"):
        prompt = [{"role": "system", "content": str(instructions)}, *prompt]
    answer = turns_of_responses(response.get("output") or [], "assistant")
    if not answer or answer[-1]["role"] != "assistant":
        answer = [*answer, {"role": "assistant", "content": ""}]  # a model that said nothing is judged as that
    row = {name: value for name, value in body.items() if name not in {"responses_create_params", "response"}}
    if tools := asked_for.get("tools"):
        row = {"tools": tools, **row}
    asked = rollout_in(incoming, row, [*prompt, *answer], "response")
    return Exchange([asked], lambda verdicts: failed_reply(verdicts) or Reply(200, _verified(body, verdicts)))


def _verified(body: Mapping[str, Any], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    (result,) = (each for each in verdicts if isinstance(each, EvaluateResult))
    return {**body, "reward": result.score, "reward_components": metrics_of(result), "reason": result.reason}


def turns_of_responses(items: Any, role: str) -> list[dict[str, Any]]:
    """The turns of a conversation in the words of the Responses API: a text, or a list of items.

    Reasoning is left out. Tool calls belong to the assistant's turn before them.
    """
    if isinstance(items, str):
        return [{"role": role, "content": items}]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadRequest("A conversation is neither a text nor a list of items. Send items of the Responses API.")
    turns: list[dict[str, Any]] = []
    for item in items:
        kind = item.get("type") or "message"
        if kind == "message":
            turns.append({"role": str(item.get("role") or role), "content": _text(item.get("content"))})
        elif kind == "function_call":
            _add_call(turns, item)
        elif kind == "function_call_output":
            turns.append(
                {"role": "tool", "tool_call_id": str(item.get("call_id", "")), "content": _text(item.get("output"))}
            )
    return turns


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    if not isinstance(content, list):
        return str(content)
    parts = [part for part in content if isinstance(part, dict) and part.get("type", "text") in _TEXTS]
    return "".join(str(part.get("text") or "") for part in parts)


def _add_call(turns: list[dict[str, Any]], item: Mapping[str, Any]) -> None:
    function = {"name": str(item.get("name", "")), "arguments": str(item.get("arguments", ""))}
    call = {"id": str(item.get("call_id", "")), "type": "function", "function": function}
    if not turns or turns[-1]["role"] != "assistant":
        turns.append({"role": "assistant", "content": None})
    turns[-1].setdefault("tool_calls", []).append(call)


_ANY = {"type": "object", "additionalProperties": True}
_VERIFY = {
    "type": "object",
    "required": ["response"],
    "properties": {"responses_create_params": _ANY, "response": _ANY},
    "additionalProperties": True,
}

NEMO_GYM = Dialect(
    "nemo-gym",
    "NeMo-Gym's resources server.",
    [
        Route("/seed_session", _seed, "Begin a session: nothing is kept.", request_schema=_ANY, response_schema=_ANY),
        Route("/verify", _verify, "Judge a response.", request_schema=_VERIFY, response_schema=_ANY),
        Route("/aggregate_metrics", _aggregate, "The mean of rewards.", request_schema=_ANY, response_schema=_ANY),
    ],
    one_answer=True,
)  # fmt: skip
