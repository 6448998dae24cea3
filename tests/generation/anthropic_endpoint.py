# SPDX-License-Identifier: Apache-2.0
"""Anthropic's Messages on this machine, as strict as the documented schema: what is not in it is refused.

`react(body, number)` says what a valid request gets; an invalid one is refused in Anthropic's words before that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.generation.loopback import Reaction, Says

FIELDS = {
    "model", "messages", "max_tokens", "system", "temperature", "top_p", "top_k", "stop_sequences", "tools",
    "tool_choice", "thinking", "output_config", "cache_control", "metadata", "service_tier",
}  # fmt: skip
ID = re.compile(r"[a-zA-Z0-9_-]+")
BLOCKS = {
    "text": {"text"},
    "image": {"source"},
    "document": {"source"},
    "tool_use": {"id", "name", "input"},
    "tool_result": {"tool_use_id"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
OPTIONAL = {"cache_control", "is_error", "content", "title", "context", "citations"}


class Refused(Exception):
    """The request is not valid; the words are the endpoint's."""


def needs(truth: object, words: str) -> None:
    if not truth:
        raise Refused(words)


def message(*blocks: dict[str, Any], stop: str = "end_turn", model: str = "m", **usage: int) -> Says:
    """An answer of these blocks."""
    counts = {"input_tokens": 10, "output_tokens": 2, **usage}
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": list(blocks)}
    return Says(200, {**said, "stop_reason": stop, "stop_sequence": None, "usage": counts})


def text(words: str = "yes") -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool_use(name: str, given: dict[str, Any], call: str = "toolu_01") -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def error(status: int, kind: str, words: str, headers: dict[str, str] | None = None) -> Says:
    """An error in Anthropic's shape."""
    return Says(status, {"type": "error", "error": {"type": kind, "message": words}, "request_id": "r"}, headers or {})


def strict(react: Callable[[dict[str, Any], int], Reaction]) -> Callable[[dict[str, Any], int], Reaction]:
    """Refuse what the schema does not have; react to the rest."""

    def checked(body: dict[str, Any], number: int) -> Reaction:
        try:
            check(body)
        except Refused as refusal:
            return error(400, "invalid_request_error", str(refusal))
        return react(body, number)

    return checked


def check(body: dict[str, Any]) -> None:
    for name in body:
        needs(name in FIELDS, f"{name}: Extra inputs are not permitted")
    for name in ("model", "messages", "max_tokens"):
        needs(name in body, f"{name}: Field required")
    needs(type(body["max_tokens"]) is int and body["max_tokens"] >= 1, "max_tokens: must be at least 1")
    temperature = body.get("temperature", 1)
    needs(0 <= temperature <= 1, "temperature: range: 0..1")
    needs(all(word.strip() for word in body.get("stop_sequences", [])), "stop_sequences: must hold non-whitespace")
    check_thinking(body, temperature)
    check_cache_control(body, "")
    for place, block in enumerate(body.get("system", [])):
        needs(block["type"] == "text", f"system.{place}.type: Input should be 'text'")
        check_block(block, f"system.{place}")
    for place, tool in enumerate(body.get("tools", [])):
        unknown = tool.keys() - {"type", "name", "description", "input_schema", "cache_control", "strict"}
        needs(tool.get("type", "custom") == "custom", f"tools.{place}.type: Input should be 'custom'")
        needs(not unknown, f"tools.{place}.custom.{min(unknown, default='')}: Extra inputs are not permitted")
        needs(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]), f"tools.{place}.custom.name: does not match")
        needs(tool["input_schema"].get("type") == "object", f"tools.{place}.custom.input_schema.type: Field required")
        check_cache_control(tool, f"tools.{place}.")
    needs("tools" in body or not has_tool_use(body), "Requests which include `tool_use` blocks must define tools")
    check_turns(body["messages"])


def check_thinking(body: dict[str, Any], temperature: float) -> None:
    thinking = body.get("thinking", {"type": "disabled"})
    needs(thinking["type"] in {"enabled", "adaptive", "disabled"}, "thinking.type: Input should be 'enabled'")
    if thinking["type"] == "disabled":
        return
    needs(temperature == 1, "`temperature` may only be set to 1 when thinking is enabled.")
    needs("top_k" not in body, "`top_k` must be unset when thinking is enabled.")
    if thinking["type"] == "enabled":
        budget = thinking.get("budget_tokens", 0)
        needs(budget >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        needs(body["max_tokens"] > budget, "`max_tokens` must be greater than `thinking.budget_tokens`.")
        called = [turn for turn in body["messages"] if turn["role"] == "assistant"]
        if called and any(block["type"] == "tool_use" for block in called[-1]["content"]):
            first = called[-1]["content"][0]["type"]
            needs(first in {"thinking", "redacted_thinking"}, f"Expected `thinking`, but found `{first}`.")


def check_turns(turns: list[dict[str, Any]]) -> None:
    needs(turns, "messages: at least one message is required")
    needs(turns[0]["role"] == "user", 'messages: first message must use the "user" role')
    open_calls: list[str] = []
    for place, turn in enumerate(turns):
        needs(turn.keys() == {"role", "content"}, f"messages.{place}: Extra inputs are not permitted")
        needs(turn["role"] in {"user", "assistant"}, f"messages.{place}.role: Input should be 'user' or 'assistant'")
        needs(place == 0 or turns[place - 1]["role"] != turn["role"], "messages: roles must alternate")
        needs(turn["content"], f"messages.{place}: content must not be empty")
        for number, block in enumerate(turn["content"]):
            check_block(block, f"messages.{place}.content.{number}")
        kinds = [block["type"] for block in turn["content"]]
        results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
        needs(sorted(results) == sorted(open_calls), "`tool_use` ids were found without `tool_result` blocks")
        needs(kinds[: len(results)] == ["tool_result"] * len(results), "`tool_result` blocks must come first")
        open_calls = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        needs(turn["role"] == "assistant" or not open_calls, "`tool_use` blocks can only be in `assistant` messages")


def check_block(block: dict[str, Any], place: str) -> None:
    kind = block.get("type", "")
    needs(kind in BLOCKS, f"{place}.type: Input tag '{kind}' found using 'type' does not match any of the expected")
    unknown = block.keys() - BLOCKS[kind] - OPTIONAL - {"type"}
    needs(not unknown, f"{place}.{kind}.{min(unknown, default='')}: Extra inputs are not permitted")
    missing = BLOCKS[kind] - block.keys()
    needs(not missing, f"{place}.{kind}.{min(missing, default='')}: Field required")
    check_cache_control(block, f"{place}.")
    if kind == "text":
        needs(block["text"], f"{place}: text content blocks must be non-empty")
    if kind in {"tool_use", "tool_result"}:
        needs(ID.fullmatch(block.get("id") or block["tool_use_id"]), f"{place}: id does not match the pattern")
    if kind == "tool_use":
        needs(isinstance(block["input"], dict), f"{place}.tool_use.input: Input should be a valid dictionary")
    if kind == "image":
        wanted = {"base64": {"type", "media_type", "data"}, "url": {"type", "url"}}
        needs(block["source"].keys() == wanted[block["source"]["type"]], f"{place}.image.source: Field required")
    for number, part in enumerate(block.get("content") or []):
        check_block(part, f"{place}.content.{number}")


def check_cache_control(holder: dict[str, Any], place: str) -> None:
    given = holder.get("cache_control")
    needs(given is None or given.get("type") == "ephemeral", f"{place}cache_control.type: Input should be 'ephemeral'")


def has_tool_use(body: dict[str, Any]) -> bool:
    return any(block["type"] == "tool_use" for turn in body["messages"] for block in turn["content"])
