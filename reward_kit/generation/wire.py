# SPDX-License-Identifier: Apache-2.0
"""The shapes on the wire: a prompt into a chat-completions request body, a reply's body into completions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from pydantic import ValidationError

from reward_kit.config_models import Sampling
from reward_kit.errors import (
    BadRequestError,
    ConfigError,
    FilteredError,
    GenerationError,
    KeyInAnswerError,
    ProviderError,
    UnreadableReplyError,
)
from reward_kit.generation.endings import Unserved, is_about_the_answer, reason_of
from reward_kit.generation.token_data import tokens_of
from reward_kit.generation.usage import usage_of
from reward_kit.models import (
    ChatCompletionMessageToolCall,
    Completion,
    Failure,
    FunctionCall,
    Message,
    SentBack,
    is_text,
)
from reward_kit.redaction import echoes, mask
from reward_kit.utils import exact_json
from reward_kit.utils.trusted import text_message, trusted

__all__ = [
    "PROTECTED_FIELDS",
    "Prompt",
    "arguments_of",
    "derived_seed",
    "encode",
    "ended_by",
    "holding_key",
    "keeping",
    "names_sent_back",
    "read_completions",
    "read_json",
    "readable",
    "settings_of",
    "speaker",
    "unserved",
    "without_sent_back",
]

PROTECTED_FIELDS = frozenset({"model", "messages", "input", "tools", "tool_choice", "n", "stream"})
"""Fields of the body that no refusal makes us drop: without them, something else would be asked."""
_OURS = PROTECTED_FIELDS - {"tool_choice"}
"""Those that `extra_body` may not set."""

_SENT_AS_THEY_ARE = tuple(name for name in Sampling.model_fields if name not in {"seed", "tokens", "extra_body"})

_THOUGHTS = ("reasoning_content", "reasoning")
"""What endpoints call what a model thought."""
_USUAL = frozenset({"role", "content", "refusal"})
_ASKED = frozenset({"role", "content", "name", "tool_call_id", "tool_calls", "function_call"})
_CALLED = frozenset({"id", "type", "function"})
"""The fields of a message, and of a call, that are sent to anybody."""

_WOULD_COME_AGAIN = frozenset({400, 404, 413, 422})
"""Statuses in a choice that say that the request itself is refused."""
_MOST_SHOWN = 64 << 10
"""Bytes of a reply that are read for a message."""

_completion = trusted(Completion)


class Prompt(NamedTuple):
    """What one sample asks, in the shape of the wire; every request for its draws is made from it."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    sampling: Sampling
    sample_id: str
    system: list[dict[str, Any]] | None = None
    """What the system says, where that is no message."""
    given: Sequence[Message] = ()
    """The messages that it was made of."""


def settings_of(sampling: Sampling) -> dict[str, Any]:
    """The body's sampling fields: what was set, then `extra_body` as it is."""
    if taken := _OURS.intersection(sampling.extra_body):
        raise ConfigError(f"`generation.extra_body` sets {min(taken)!r}, which reward-kit sets itself. Remove it.")
    values = {name: getattr(sampling, name) for name in _SENT_AS_THEY_ARE}
    return {name: value for name, value in values.items() if value is not None} | sampling.extra_body


def derived_seed(seed: int, sample_id: str, draw: int) -> int:
    """The 31-bit seed of one request: the same in every process and on every machine."""
    digest = hashlib.blake2b(f"{seed}\x00{sample_id}\x00{draw}".encode(errors="surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFF_FFFF


def encode(body: Mapping[str, Any]) -> bytes:
    """The body as JSON; what JSON cannot hold is an error of this one prompt."""
    try:
        return exact_json.dumps(body)
    except TypeError as error:
        raise BadRequestError(
            f"The request cannot be written as JSON: {error}. Correct the sample's messages or tools."
        ) from None


def readable(data: bytes) -> str:
    """A body as text that may be shown: a key, should it be echoed, is blotted out."""
    return mask(data[:_MOST_SHOWN].decode(errors="replace"))


def read_json(data: bytes) -> dict[str, Any]:
    """A reply's body as an object."""
    try:
        reply = _loads(data)
    except (ValueError, RecursionError):
        raise ProviderError(
            f"The answer is not JSON, or only a part of it: {_start_of(readable(data))}. Try again."
        ) from None
    if not isinstance(reply, dict):
        raise ProviderError(f"The answer is not a JSON object: {_start_of(readable(data))}. Try again.")
    return reply


def _loads(data: bytes) -> Any:
    """Parse a reply, also one that is whole but no strict JSON: it was paid for, and would come the same way again.

    Servers write NaN for a log-probability, or half of a character where an answer was cut off.
    """
    try:
        return exact_json.loads(data)
    except exact_json.JSONDecodeError:
        value = json.loads(data.decode(errors="replace"), parse_constant=lambda _: None, parse_float=_finite)
        return exact_json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def _finite(number: str) -> float | None:
    value = float(number)
    return value if isfinite(value) else None


def speaker(identity: Mapping[str, Any]) -> str:
    """Whom a client asks, as its answers name who said them."""
    return f"{identity.get('model')} at {identity.get('endpoint')}"


def read_completions(
    reply: dict[str, Any], *, asked_model: str, most: int, latency_ms: float, by: str | None = None
) -> list[Completion | Failure]:
    """Up to `most` choices of a reply, read by the one table of endings; its usage stands on the first answer.

    What broke off is left out, so that it is asked for again. Where no choice is an answer, why is raised. What else
    the reply says is kept for whoever said it (`by`), to be sent back.
    """
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices:
        raise UnreadableReplyError(_unreadable("the reply has no choices"))
    used = reply.get("model")
    model = used if isinstance(used, str) and used != asked_model else None
    usage = usage_of(reply.get("usage"))
    outcomes: list[Completion | Failure] = []
    errors: list[GenerationError] = []
    broken = reply.get("error")
    for choice in choices[:most]:
        try:
            message, reason = _answer_of(_with_error(choice, broken) if broken else choice, by)
        except GenerationError as error:
            errors.append(error)
            if not error.retryable:
                outcomes.append(Failure.of(error, "generate"))
            continue
        made = _completion(message=message, finish_reason=reason, usage=usage, latency_ms=latency_ms, model=model)
        tokens = tokens_of(choice, reply)
        outcomes.append(made if tokens is None else made.model_copy(update={"tokens": tokens}))
        usage = None
    if len(errors) == len(choices[:most]):
        raise next((error for error in errors if error.retryable), errors[0])
    return outcomes


def keeping(answer: Completion, by: str, field: str, parts: list[dict[str, Any]]) -> Completion:
    """The answer with its parts as they came, for an API that wants them back so."""
    kept = SentBack(by=by, fields={field: parts})
    return answer.model_copy(update={"message": answer.message.model_copy(update={"sent_back": kept})})


def arguments_of(call: FunctionCall) -> dict[str, Any]:
    """A call's arguments as an object; what a model wrote instead of one is shown to it as it was."""
    try:
        arguments = exact_json.loads(call.arguments or "{}")
    except exact_json.JSONDecodeError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"INVALID_JSON": call.arguments}


def unserved(answer: Unserved, latency_ms: float) -> Completion:
    """The answer of a model that its endpoint did not serve: what was written, as far as is told."""
    message = text_message("assistant", answer.written)
    return Completion(message=message, finish_reason=answer.reason, latency_ms=latency_ms)


def holding_key(completion: Completion, what: str) -> KeyInAnswerError | None:
    """The error of an answer that holds a credential which was sent, and where it holds it."""
    message = completion.message
    parts = {
        "its text": message.content, "its reasoning": message.reasoning_content, "a tool call": message.tool_calls,
        "a function call": message.function_call, "its metadata": (message, completion.finish_reason, completion.model),
    }  # fmt: skip
    where = next((name for name, part in parts.items() if echoes(repr(part).encode(errors="surrogatepass"))), None)
    if where is None:
        return None
    return KeyInAnswerError(
        f"{what} holds a key that was sent with a request, in {where}. Nothing of it is kept or judged, and it is not "
        "asked for again. Ask whoever runs the endpoint to mend that, then run with `--retry-failed`."
    )


def _with_error(choice: Any, error: Any) -> Any:
    """A choice with the error that stands beside all choices, where it ended by that."""
    ended = isinstance(choice, dict) and not choice.get("error") and reason_of(choice) == "error"
    return {**choice, "error": error} if ended else choice


def _answer_of(choice: Any, by: str | None) -> tuple[Message, str | None]:
    """The message of a choice, and why it ended. A choice that is no answer is an error, by the table of endings."""
    raw = choice.get("message") if isinstance(choice, dict) else None
    reason = ended_by(choice) if isinstance(choice, dict) else None
    if raw is None and is_about_the_answer(reason):
        raw = {}  # nothing was written before that
    if not isinstance(raw, dict):
        raise UnreadableReplyError(_unreadable("a choice of the reply has no message"))
    content = raw.get("content")
    if (
        isinstance(content, str)
        and not raw.get("refusal")
        and not any(_says_something(raw[name]) for name in raw.keys() - _USUAL)
    ):
        return text_message("assistant", content), reason
    try:
        message = _rare_message(raw, content)
    except (ValidationError, TypeError, AttributeError, KeyError) as error:
        raise UnreadableReplyError(
            _unreadable(f"the message is malformed, {mask(str(error).splitlines()[0])}")
        ) from None
    kept = None if by is None else _sent_back(raw, message, by)
    if kept is not None:
        message = message.model_copy(update={"sent_back": kept})
    return message, _reason_by_content(raw, message, reason)


def ended_by(choice: dict[str, Any]) -> str | None:
    """Why a choice ended, by our name for it. What is no answer, whatever came with it, is raised."""
    reason = reason_of(choice)
    if reason == "error":
        error = choice.get("error")
        said = _start_of(mask(_as_text(error or choice.get("finish_reason"))))
        if isinstance(error, dict) and error.get("code") in _WOULD_COME_AGAIN:
            raise BadRequestError(f"The provider behind the endpoint does not take the request: {said}. Correct it.")
        raise ProviderError(f"The endpoint stopped in the middle of its answer: {said}. Try again.")
    if reason == "content_filter":
        raise FilteredError(
            f"The provider's filter withheld the answer ({_shown_word(choice)}). It would do so again: change the "
            "prompt, or the filter's settings at the provider."
        )
    return reason


def _reason_by_content(raw: dict[str, Any], message: Message, reason: str | None) -> str | None:
    """Why an answer ended, where its parts say more than the endpoint does."""
    if _refusal_in(raw) and reason in (None, "stop"):
        return "refusal"
    calls = [call.function for call in message.tool_calls or ()]
    if any(not call.name for call in (*calls, *filter(None, [message.function_call]))):
        return "malformed_call"
    return reason


def _refusal_in(raw: dict[str, Any]) -> str | None:
    """What a model said that declined, apart from its text: OpenAI's ways, and where litellm puts it."""
    beside, content = raw.get("provider_specific_fields"), raw.get("content")
    said = [raw.get("refusal"), beside.get("refusal") if isinstance(beside, dict) else None]
    said += [part.get("refusal") for part in content if _declines(part)] if isinstance(content, list) else []
    return next(filter(None, map(_text_or_none, said)), None)


def _declines(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "refusal"


def _unreadable(what: str) -> str:
    return (
        f"The endpoint's answer cannot be read: {what}. Check `generation.api_base`, and what serves the model there."
    )


def _shown_word(choice: dict[str, Any]) -> str:
    if error := choice.get("error"):
        return _start_of(mask(_as_text(error)))
    words = [choice.get("native_finish_reason"), choice.get("finish_reason")]
    shown = next((word for word in words if reason_of({"finish_reason": word}) == "content_filter"), words[-1])
    return _start_of(mask(str(shown)))


def _rare_message(raw: dict[str, Any], content: Any) -> Message:
    calls, function = _tool_calls(raw.get("tool_calls")), raw.get("function_call")
    if not (calls or function) and (
        content in (None, "") or (isinstance(content, list) and all(map(_declines, content)))
    ):
        content = _refusal_in(raw) or ""  # it said nothing, or declined: an answer like any other
    return Message(
        role="assistant",
        content=content,
        tool_calls=calls,
        function_call=_function(function) if function else None,
        reasoning_content=raw.get("reasoning_content") or _text_or_none(raw.get("reasoning")),
    )


def _sent_back(raw: dict[str, Any], message: Message, by: str) -> SentBack | None:
    """What a message says that its request would not; None where there is nothing."""
    thought = message.reasoning_content
    thoughts = [name for name in _THOUGHTS if thought is not None and raw.get(name) == thought]
    left = _beyond({name: held for name, held in raw.items() if name not in thoughts}, message.as_request())
    fields = {name: held for name, held in (left or {}).items() if name != "refusal"}
    parts = message.content if isinstance(message.content, list) else ()
    is_more = bool(thoughts or fields) or not all(is_text(part) and len(part) == 2 for part in parts)
    return SentBack(by=by, thoughts=thoughts, fields=fields) if is_more else None


def names_sent_back(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """The fields that are in a request only because the endpoint itself had said them."""
    answers = [message for message in messages if message.get("role") == "assistant"]
    calls = [call for message in answers for call in message.get("tool_calls") or ()]
    return {name for held in answers for name in held.keys() - _ASKED} | {
        name for call in calls for name in call.keys() - _CALLED
    }


def without_sent_back(messages: Sequence[dict[str, Any]], names: Collection[str]) -> list[dict[str, Any]]:
    """The messages of a request without fields that the endpoint said, and refuses."""
    refused = names_sent_back(messages).intersection(names)
    return [_without(message, refused) for message in messages] if refused else [*messages]


def _without(message: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    kept = {name: held for name, held in message.items() if name not in names}
    if calls := kept.get("tool_calls"):
        kept["tool_calls"] = [{name: held for name, held in call.items() if name not in names} for call in calls]
    return kept


def _beyond(raw: Any, known: Any) -> Any:
    """What the one has that the other does not, at its places; None where that says nothing."""
    if isinstance(raw, dict) and isinstance(known, dict):
        left = {name: _beyond(held, known[name]) if name in known else held for name, held in raw.items()}
        return {name: held for name, held in left.items() if _says_something(held)} or None
    if isinstance(raw, list) and isinstance(known, list):
        parts = [_beyond(one, other) for one, other in zip(raw, known, strict=False)]
        return parts if any(part is not None for part in parts) else None
    return None


def _says_something(held: Any) -> bool:
    if isinstance(held, dict | list):
        return any(map(_says_something, held.values() if isinstance(held, dict) else held))
    return held is not None


def _tool_calls(raw: list[dict[str, Any]] | None) -> list[ChatCompletionMessageToolCall] | None:
    if not raw:
        return None
    return [
        ChatCompletionMessageToolCall(id=call.get("id") or "", function=_function(call["function"])) for call in raw
    ]


def _function(raw: dict[str, Any]) -> FunctionCall:
    arguments = raw.get("arguments") or ""
    # Some servers send the arguments as an object, not as the text the model wrote.
    told = arguments if isinstance(arguments, str) else _as_text(arguments)
    return FunctionCall(name=raw.get("name") or "", arguments=told)


def _as_text(value: Any) -> str:
    return exact_json.dumps(value).decode()


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _start_of(text: str) -> str:
    return repr(text[:120]) if text else "it is empty"
