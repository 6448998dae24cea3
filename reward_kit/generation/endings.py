# SPDX-License-Identifier: Apache-2.0
"""How a reply ended, and what follows. One table for every API, model and door.

    ending            what happened                                          what follows
    answered          the model wrote a text, or called tools                judged
    cut off           the room for its answer was used up                    judged as it is
    refused           the model declined to answer                           judged as it is
    malformed call    it wrote a call, or JSON, that the endpoint            judged as it is
                      could not read
    empty             it said nothing                                        judged as it is
    filtered          the provider withheld the answer, or took no prompt    a failure, not asked again
                      of that content
    unreadable        the endpoint answered, and no answer can be read       a failure, not asked again
    broken off        the endpoint stopped in the middle, by its own fault   asked again

A model is judged by what it did, wherever it was asked. What the provider did says nothing of the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import orjson

from reward_kit.models import Message

__all__ = ["Ending", "ending_of", "reason_of", "written_unread"]

Ending: TypeAlias = Literal[
    "answered", "cut off", "refused", "malformed call", "empty", "filtered", "unreadable", "broken off"
]

_WORDS: Mapping[str, str] = MappingProxyType({
    "stop": "stop end_turn stop_sequence eos eos_token complete completed",
    "tool_calls": "tool_calls tool_use",
    "length": "length max_tokens max_output_tokens max_length model_length model_context_window_exceeded",
    "refusal": "refusal",
    "malformed_call":
        "malformed_call malformed_function_call malformed_response unexpected_tool_call too_many_tool_calls",
    "content_filter":
        "content_filter content_filtered safety recitation language blocklist prohibited_content spii sensitive "
        "image_safety image_prohibited_content image_recitation model_armor guardrail_intervened error_toxic",
    "error": "error abort aborted insufficient_system_resource network_error",
})  # fmt: skip
"""Our reasons to end, each with what providers call it."""
_REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split()}
_ENDINGS: Mapping[str, Ending] = MappingProxyType({
    "length": "cut off", "refusal": "refused", "malformed_call": "malformed call", "content_filter": "filtered",
    "error": "broken off",
})  # fmt: skip


_UNREAD_CALLS = ("tool_use_failed", "json_validate_failed", "output_parse_failed")
"""Groq's codes for what the model wrote and Groq could not read; `failed_generation` has it."""
_UNREAD_CALL = re.compile(
    r"error parsing tool call: raw='(?P<raw>.*)', err=|\AFailed to parse input at pos \d+: (?P<rest>.*)", re.DOTALL
)
"""The same by Ollama and by llama.cpp, both with status 500."""


def reason_of(choice: Mapping[str, Any]) -> str | None:
    """Why a choice ended, by one name for all providers; a word that nobody knows stays as it is.

    >>> reason_of({"finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"})
    'malformed_call'

    Gateways translate the provider's own word, and some keep it beside theirs: then it counts.
    >>> reason_of({"finish_reason": "content_filter", "native_finish_reason": "refusal"})
    'refusal'
    """
    if choice.get("error"):
        return "error"
    beside = choice.get("provider_specific_fields")
    kept = beside.get("native_finish_reason") if isinstance(beside, Mapping) else None
    native = choice.get("native_finish_reason") or kept
    told = choice.get("finish_reason")
    return _known(native) or _known(told) or (told if isinstance(told, str) and told else None)


def ending_of(reason: str | None, message: Message) -> Ending:
    """How a reply ended that could be read: by the reason, else by what is in it."""
    if (ending := _ENDINGS.get(reason or "")) is not None:
        return ending
    return "answered" if message.content or message.tool_calls or message.function_call else "empty"


def written_unread(error: Mapping[str, Any], message: str) -> str | None:
    """What the model wrote, where an error says that the endpoint could not read it; None for any other error."""
    if error.get("code") in _UNREAD_CALLS:
        written = error.get("failed_generation")
        return written if isinstance(written, str) else "" if written is None else orjson.dumps(written).decode()
    found = _UNREAD_CALL.search(message)
    return None if found is None else found["raw"] or found["rest"] or ""


def _known(word: object) -> str | None:
    if not isinstance(word, str):
        return None
    if (reason := _REASONS.get(word)) is not None:
        return reason
    parts = [part.strip().lower().replace("-", "_") for part in reversed(word.split(":"))]
    return next((_REASONS[part] for part in parts if part in _REASONS), None)
