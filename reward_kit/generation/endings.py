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
from typing import Any, Literal, NamedTuple, TypeAlias

import orjson

from reward_kit.models import Message

__all__ = ["Ending", "Unserved", "ending_of", "is_about_the_answer", "reason_of", "unserved_answer"]

Ending: TypeAlias = Literal[
    "answered", "cut off", "refused", "malformed call", "empty", "filtered", "unreadable", "broken off"
]

_WORDS: Mapping[str, str] = MappingProxyType({
    "stop": "stop end_turn stop_sequence eos eos_token complete completed",
    "tool_calls": "tool_calls tool_use",
    "length": "length max_tokens max_output_tokens max_length model_length model_context_window_exceeded "
        "error_limit max_tokens_exceeded token_limit_exceeded context_length_exceeded",
    "refusal": "refusal",
    "malformed_call":
        "malformed_call malformed_function_call malformed_response malformed_tool_use malformed_model_output "
        "unexpected_tool_call too_many_tool_calls",
    "content_filter":
        "content_filter content_filtered safety recitation language blocklist prohibited_content spii sensitive "
        "image_safety image_prohibited_content image_recitation model_armor guardrail_intervened error_toxic "
        "content_policy_violation",
    "error": "error abort aborted insufficient_system_resource network_error",
})  # fmt: skip
"""Our reasons to end, each with what providers call it."""
_REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split()}
_ENDINGS: Mapping[str, Ending] = MappingProxyType({
    "length": "cut off", "refusal": "refused", "malformed_call": "malformed call", "content_filter": "filtered",
    "error": "broken off",
})  # fmt: skip

_PLAIN = frozenset({"index", "message", "finish_reason", "logprobs", "stop_reason", "token_ids"})
"""The fields of a choice of which only one tells why it ended."""
_FORBIDDEN = 403
"""Of an answer that was begun, so that it is not the key that is refused: moderation, or a guardrail."""
_OF_THE_ANSWER = frozenset({"refusal", "max_tokens_exceeded"})
"""What OpenRouter calls an error, though it tells only how the model's answer ended."""
_NOTHING_ELSE = frozenset({"text", "thinking", "reasoning"})
"""Parts of a content that say nothing beside its text."""

_UNREAD_CALLS = ("tool_use_failed", "json_validate_failed", "output_parse_failed")
"""Groq's codes for what the model wrote and Groq could not read; `failed_generation` has it."""
_BEGINS = r"(?:\A|\A[\w.]+: \w+ (?:\w+ )?- )"
"""Of an error's own words, perhaps behind litellm's; what it repeats of a request stands further in."""
_UNREAD_CALL = re.compile(
    _BEGINS + r"(?:error parsing tool call: raw='(?P<raw>.*)', err=|Failed to parse input at pos \d+: (?P<rest>.*)"
    r"|\d+ validation errors? for list\[(?:function-wrap\[|FunctionDefinition\]).*Invalid JSON:)",
    re.DOTALL,
)
"""The same by Ollama and by llama.cpp, both with status 500; and by vLLM, of a call that it was told to ask for."""
_NO_ROOM_LEFT = re.compile(rf"{_BEGINS}Could not finish the message because max_tokens or model output limit was")
"""By OpenAI and Azure, with status 400: all the room went into the reasoning."""


class Unserved(NamedTuple):
    """An answer that an endpoint did not serve: its error tells how it ended, and perhaps what was written."""

    reason: str
    written: str


def reason_of(choice: Mapping[str, Any]) -> str | None:
    """Why a choice ended, by one name for all providers; a word that nobody knows stays as it is.

    >>> reason_of({"finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"})
    'malformed_call'

    Gateways translate the provider's own word, and some keep it beside theirs: then it counts, unless it only says that
    the answer ended, and theirs says more.
    >>> reason_of({"finish_reason": "content_filter", "native_finish_reason": "refusal"})
    'refusal'
    >>> reason_of({"finish_reason": "length", "native_finish_reason": "completed"})
    'length'
    """
    told = choice.get("finish_reason")
    if type(told) is str and told in _REASONS and choice.keys() <= _PLAIN:
        return _REASONS[told]  # as of most choices
    if error := choice.get("error"):
        return _reason_of_error(error)
    beside = choice.get("provider_specific_fields")
    kept = beside.get("native_finish_reason") if isinstance(beside, dict) else None  # asking for a Mapping is slow
    native = choice.get("native_finish_reason") or kept
    known = [reason for word in (native, told) if (reason := _known(word)) is not None]
    said = next((reason for reason in known if reason != "stop"), "stop" if known else None)
    return said or (told if isinstance(told, str) and told else None)


def ending_of(reason: str | None, message: Message) -> Ending:
    """How a reply ended that could be read: by the reason, else by what is in it."""
    if (ending := _ENDINGS.get(reason or "")) is not None:
        return ending
    parts = message.content if isinstance(message.content, list) else ()
    says = message.text or any(part.get("type") not in _NOTHING_ELSE for part in parts)
    return "answered" if says or message.tool_calls or message.function_call else "empty"


def is_about_the_answer(reason: str | None) -> bool:
    """Whether a reason alone says what became of an answer, so that there may be no message beside it."""
    return reason in _ENDINGS


def unserved_answer(error: Mapping[str, Any], message: str) -> Unserved | None:
    """The answer of the model, where an error is about that and nothing else; None for any other error."""
    if (kind := _kind_of(error)) in _OF_THE_ANSWER:
        return Unserved(_REASONS[kind], "")
    if error.get("code") in _UNREAD_CALLS:
        told = error.get("failed_generation")
        written = told if isinstance(told, str) else "" if told is None else orjson.dumps(told).decode()
        return Unserved("malformed_call", written)
    if _NO_ROOM_LEFT.search(message):
        return Unserved("length", "")
    found = _UNREAD_CALL.search(message)
    return None if found is None else Unserved("malformed_call", found["raw"] or found["rest"] or "")


def _reason_of_error(error: object) -> str:
    """Why an answer ended that has an error beside it, or in its place.

    >>> _reason_of_error({"code": 400, "message": "No.", "metadata": {"error_type": "refusal"}})
    'refusal'
    """
    if not isinstance(error, dict):
        return "error"
    known = _REASONS.get(_kind_of(error) or str(error.get("code")), "")
    if known in _ENDINGS:
        return known
    return "content_filter" if error.get("code") == _FORBIDDEN else "error"


def _kind_of(error: Mapping[str, Any]) -> str:
    """OpenRouter's name for what went wrong, whatever status it has."""
    beside = error.get("metadata")
    kind = beside.get("error_type") if isinstance(beside, dict) else error.get("error_type")
    return kind if isinstance(kind, str) else ""


def _known(word: object) -> str | None:
    if not isinstance(word, str):
        return None
    if (reason := _REASONS.get(word)) is not None:
        return reason
    parts = [part.strip().lower().replace("-", "_") for part in reversed(word.split(":"))]
    return next((_REASONS[part] for part in parts if part in _REASONS), None)
