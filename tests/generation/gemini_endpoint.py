# SPDX-License-Identifier: Apache-2.0
"""Google's `generateContent` on this machine, as strict as the documented schema: what is not in it is refused.

`react(body, number)` says what a valid request gets; an invalid one is refused in Google's words before that. `as_chat`
lets a test that speaks of chat completions be one of this API too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from reward_kit.generation.http.gemini import _NAMES
from tests.generation.loopback import Reaction, Says

FIELDS = {"contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig", "cachedContent"}
CONFIG = {
    "temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "seed", "presencePenalty",
    "frequencyPenalty", "responseLogprobs", "logprobs", "responseMimeType", "responseJsonSchema", "thinkingConfig",
}  # fmt: skip
PARTS = {
    "text": {"thought", "thoughtSignature"}, "functionCall": {"thoughtSignature"}, "functionResponse": set(),
    "inlineData": set(), "fileData": set(),
}  # fmt: skip
React = Callable[[dict[str, Any], int], Reaction]


def google(status: int, message: str, kind: str = "INVALID_ARGUMENT") -> Says:
    return Says(status, {"error": {"code": status, "message": message, "status": kind}})


def candidate(*parts: dict[str, Any], ended: str = "STOP", **more: Any) -> dict[str, Any]:
    return {"content": {"parts": list(parts), "role": "model"}, "finishReason": ended, "index": 0, **more}


def reply(*candidates: dict[str, Any], **usage: int) -> Says:
    """An answer of these candidates."""
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 2, **usage}
    counts["totalTokenCount"] = counts["promptTokenCount"] + counts["candidatesTokenCount"]
    counts["totalTokenCount"] += counts.get("thoughtsTokenCount", 0)
    body = {"candidates": list(candidates), "usageMetadata": counts, "modelVersion": "m", "responseId": "r1"}
    return Says(200, body)


def said(text: str, **more: Any) -> dict[str, Any]:
    return candidate({"text": text}, **more)


def strict(react: React) -> React:
    """Refuse what the schema does not have; react to the rest."""

    def checked(body: dict[str, Any], number: int) -> Reaction:
        complaint = problem(body)
        return react(body, number) if complaint is None else google(400, complaint)

    return checked


def problem(body: dict[str, Any]) -> str | None:
    config = body.get("generationConfig", {})
    unknown = [*(body.keys() - FIELDS), *(config.keys() - CONFIG)]
    if unknown:
        return f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.'
    roles = [content["role"] for content in body["contents"]]
    if set(roles) - {"user", "model"} or any(one == two for one, two in pairwise(roles)):
        return f"Please ensure that the roles alternate: {roles}."
    calls: list[str] = []
    complaints = [problem_of_part(part, calls) for content in body["contents"] for part in content["parts"]]
    for function in (function for tool in body.get("tools", ()) for function in tool["functionDeclarations"]):
        if function.keys() - {"name", "description", "parametersJsonSchema"}:
            complaints.append(f"Unknown name in 'tools': {sorted(function)}.")
    return next(filter(None, complaints), None)


def problem_of_part(part: dict[str, Any], calls: list[str]) -> str | None:
    kinds = part.keys() & PARTS.keys()
    if len(kinds) != 1 or part.keys() - kinds - PARTS[min(kinds)] or part.get("text") == "":
        return f"Invalid value at 'contents.parts': {part}."
    if called := part.get("functionCall"):
        calls.append(called["name"])
        return None if isinstance(called["args"], dict) else "Invalid value at 'function_call.args' (Struct)."
    answered = part.get("functionResponse")
    if answered and (answered["name"] not in calls or not isinstance(answered["response"], dict)):
        return "Please ensure that function response turn comes immediately after a function call turn."
    return None


def as_chat(react: React) -> React:
    """Show a request of this API as one of chat completions, where it is noted too, and answer it in this API."""

    def shown(body: dict[str, Any], number: int) -> Reaction:
        if "contents" not in body:
            return react(body, number)
        config = body.pop("generationConfig", {})
        names = {field: name for name, field in reversed(_NAMES.items())} | {"candidateCount": "n"}
        turns = [{"role": "system"}] * ("systemInstruction" in body) + body.pop("contents")
        body.pop("systemInstruction", None)
        body |= {"model": "m", "messages": turns, **{names.get(name, name): held for name, held in config.items()}}
        answered = react(body, number)
        if not isinstance(answered, Says) or answered.status != 200:
            return answered
        return reply(*[said(choice["message"]["content"]) for choice in answered.body["choices"]])

    return shown
