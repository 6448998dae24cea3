# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Responses on this machine, as strict as the documented schema: what is not in it is refused.

`react(body, number)` says what a valid request gets; an invalid one is refused in OpenAI's words before that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reward_kit.generation.http.responses import _items
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message
from tests.generation.asking import QUESTION
from tests.generation.loopback import Reaction, Says, complains

FIELDS = {
    "model", "input", "instructions", "include", "store", "max_output_tokens", "temperature", "top_p", "top_logprobs",
    "reasoning", "text", "tools", "tool_choice", "parallel_tool_calls", "truncation", "metadata", "service_tier",
    "user", "safety_identifier", "prompt_cache_key", "max_tool_calls",
}  # fmt: skip
ITEMS: dict[str, tuple[set[str], set[str]]] = {
    "message": ({"role", "content"}, {"id", "status", "phase", "type"}),
    "function_call": ({"type", "call_id", "name", "arguments"}, {"id", "status"}),
    "function_call_output": ({"type", "call_id", "output"}, {"id", "status"}),
    "reasoning": ({"type", "id", "summary"}, {"encrypted_content", "content", "status"}),
}
PARTS = {
    "input_text": {"text"}, "input_image": {"image_url", "detail", "file_id"}, "output_text": {"text", "annotations"},
    "input_file": {"file_id", "filename", "file_data", "file_url"}, "refusal": {"refusal"},
}  # fmt: skip

ADD: dict[str, Any] = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}


def call(identity: str, name: str, arguments: str) -> ChatCompletionMessageToolCall:
    return ChatCompletionMessageToolCall(id=identity, function=FunctionCall(name=name, arguments=arguments))


CONVERSATIONS: list[list[Message]] = [
    QUESTION,
    [Message(role="developer", content="Be brief."), Message(role="user", content="")],
    [*QUESTION, Message(role="assistant", content="Yes."), Message(role="user", content="Sure?")],
    [
        *QUESTION,
        Message(role="assistant", content=None, tool_calls=[call("c1", "add", "{bad"), call("c2", "add", "{}")]),
        Message(role="tool", content="2", tool_call_id="c1"),
        Message(role="tool", content=[{"type": "text", "text": "3"}], tool_call_id="c2"),
    ],
    [
        Message(role="user", content=[
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        ]),
        Message(role="assistant", content=[{"type": "text", "text": "A cat."}]),
        Message(role="user", content="Sure?"),
    ],
]  # fmt: skip


class Refused(Exception):
    """The request is not valid; the words are the endpoint's."""


def needs(truth: object, words: str) -> None:
    if not truth:
        raise Refused(words)


def response(*items: dict[str, Any], status: str = "completed", model: str = "m", **more: Any) -> Says:
    """An answer of these items."""
    names = ("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details")
    usage = {"input_tokens": 10, "output_tokens": 2, **{name: more.pop(name) for name in names if name in more}}
    usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": model, "status": status, "error": None}
    return Says(200, {**head, "incomplete_details": None, "output": list(items), "usage": usage, **more})


def said(text: str = "", *, refusal: str = "", logprobs: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs or []}
    parts = [{"type": "refusal", "refusal": refusal}] if refusal else [part]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts, **more}


def reasoning(summary: str, encrypted: str | None = "gAAA") -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": summary}]
    return {"type": "reasoning", "id": "rs_1", "summary": parts, "content": None, "encrypted_content": encrypted}


def called(name: str, arguments: str, identity: str) -> dict[str, Any]:
    fields = {"id": "fc_1", "call_id": identity, "name": name, "arguments": arguments, "status": "completed"}
    return {"type": "function_call", **fields}


def thoughts_that_go_back(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: held for name, held in item.items() if held is not None} for item in items]


def calls(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """The ids of the calls of a conversation beside the ids of their results."""
    items = [item for message in messages for item in _items(message, "")]
    made = [item["call_id"] for item in items if item.get("type") == "function_call"]
    return list(
        zip(made, [item["call_id"] for item in items if item.get("type") == "function_call_output"], strict=True)
    )


def strict(react: Callable[[dict[str, Any], int], Reaction]) -> Callable[[dict[str, Any], int], Reaction]:
    """Refuse what the schema does not have; react to the rest."""

    def checked(body: dict[str, Any], number: int) -> Reaction:
        try:
            check(body)
        except Refused as refusal:
            return complains(400, str(refusal), type="invalid_request_error", code="unknown_parameter")
        return react(body, number)

    return checked


def check(body: dict[str, Any]) -> None:
    for name in body:
        needs(name in FIELDS, f"Unknown parameter: '{name}'.")
    needs(body.get("max_output_tokens", 16) >= 16, "Invalid 'max_output_tokens': integer below minimum value.")
    for tool in body.get("tools", ()):
        needs(tool.keys() <= {"type", "name", "description", "parameters", "strict"}, "Unknown parameter: 'tools[0]'.")
    open_calls: set[str] = set()
    for place, item in enumerate(body["input"]):
        kind = item.get("type", "message")
        needs(kind in ITEMS, f"Invalid value: '{kind}'. input[{place}].type")
        required, optional = ITEMS[kind]
        needs(required <= item.keys() <= required | optional, f"input[{place}] has {sorted(item)}")
        needs(None not in item.values(), f"input[{place}] has null")
        if kind == "reasoning":
            needs(item.get("encrypted_content") or item.get("content"), f"Item with id '{item['id']}' not found.")
        if kind == "function_call":
            open_calls.add(item["call_id"])
        if kind == "function_call_output":
            needs(item["call_id"] in open_calls, "No tool call found for function call output.")
        held = item.get("content", item.get("output"))
        for part in held if isinstance(held, list) and kind != "reasoning" else ():
            needs(part.get("type") in PARTS, f"Invalid value: '{part.get('type')}'.")
            needs(part.keys() - {"type", "logprobs"} <= PARTS[part["type"]], f"input[{place}] has {sorted(part)}")
