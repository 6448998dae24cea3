# SPDX-License-Identifier: Apache-2.0
"""The client of OpenAI's Responses: the API that some models have only, and that hands a model its reasoning back.

    messages, tools, sampling ─▶ items, tools, settings in this API's words ─▶ POST /responses
    items of text, reasoning and calls ─▶ a chat completion, which is read like any other

Nothing is kept at the endpoint (`store: false`): a conversation is sent whole each time, and its reasoning, which only
the endpoint can read, goes back with it. Retries, limits and what is learned from refusals are those of every endpoint.
One request gives one answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reward_kit.config_models import ApiParamsConfig, Sampling
from reward_kit.errors import BadRequestError, UnreadableReplyError
from reward_kit.generation.http.endpoint import EndpointClient
from reward_kit.generation.wire import Prompt, keeping, read_completions, settings_of
from reward_kit.http.retry import Timing
from reward_kit.models import Completion, Failure, Message

__all__ = ["RESPONSES_ROUTE", "ResponsesClient"]

RESPONSES_ROUTE = "/responses"
_ITEMS = "items"
_LEAST_ANSWER_TOKENS = 16
"""A smaller `max_output_tokens` is refused."""
_NOT_IN_RESPONSES = frozenset(
    {"stop", "seed", "min_p", "top_k", "logit_bias", "presence_penalty", "frequency_penalty", "logprobs"}
)
_REASONING = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"
_OF_NO_USE = frozenset({"id", "status", "type", "role"})
"""Fields of a message or call that say nothing of what was said."""
_SAYS_MORE = frozenset({"annotations", "logprobs"})
"""Fields of a text that are about it, and are not sent back."""

Item = dict[str, Any]


class ResponsesClient(EndpointClient):
    """The client of an endpoint that speaks OpenAI's Responses."""

    def __init__(
        self,
        model: str,
        *,
        api_base: str,
        api_key: str | None = None,
        api_params: ApiParamsConfig | None = None,
        timing: Timing | None = None,
    ) -> None:
        """Remember whom to ask; nothing is opened before the first request."""
        super().__init__(
            model, api_base=api_base, api_key=api_key, api_params=api_params, n_mode="fanout", timing=timing,
            route=RESPONSES_ROUTE,
        )  # fmt: skip

    @property
    def identity(self) -> Mapping[str, Any]:
        """The endpoint, its API and the model."""
        return {**super().identity, "api": "responses"}

    def _parameters(self, body: dict[str, Any]) -> set[str]:
        parts = {f"{field}.{part}" for field, held in body.items() if isinstance(held, dict) for part in held}
        return super()._parameters(body) | parts

    def _prompt(
        self, messages: Sequence[Message], tools: list[dict[str, Any]] | None, sampling: Sampling, sample_id: str
    ) -> Prompt:
        items = [item for message in messages for item in _items(message, self._speaker)]
        offered = [_flat(tool, "function") for tool in tools] if tools else None
        return Prompt(items, offered, sampling, sample_id, given=messages)

    def body(self, prompt: Prompt, draws: Sequence[int]) -> dict[str, Any]:
        """The body of a request for one draw of a prompt."""
        body = {"model": self.model, "input": prompt.messages, **self._sent_settings(prompt.sampling)}
        if prompt.tools:
            body["tools"] = prompt.tools
        else:
            body.pop("tool_choice", None)  # refused where there is nothing to choose from
        return body

    def completions(self, answer: dict[str, Any], most: int, latency_ms: float) -> list[Completion | Failure]:
        """Up to `most` answers of a reply."""
        items = answer.get("output")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise UnreadableReplyError(
                "The endpoint's answer cannot be read: the reply has no output. Check `generation.api_base`, and "
                "whether that endpoint has OpenAI's Responses."
            )
        chat = {"model": answer.get("model"), "choices": [_choice(items, answer)], "usage": answer.get("usage")}
        (read,) = read_completions(chat, asked_model=self.model, most=1, latency_ms=latency_ms)
        if isinstance(read, Failure) or [_said_in(item) for item in items] == [
            _said_in(item) for item in _anew(read.message, "")
        ]:
            return [read]
        return [keeping(read, self._speaker, _ITEMS, items)]

    # ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _accepted_of(self, sampling: Sampling) -> dict[str, Any]:
        asked = settings_of(sampling) | ({} if sampling.seed is None else {"seed": sampling.seed})
        wants_logprobs = bool(asked.get("logprobs") or asked.get("top_logprobs"))
        accepted: dict[str, Any] = {"store": False, "include": [_REASONING, *([_LOGPROBS] if wants_logprobs else [])]}
        for name, value in asked.items():
            if name in _NOT_IN_RESPONSES:
                if name != "logprobs":
                    self._record(name, "OpenAI's Responses do not have it, and it is not sent")
                continue
            field, sent = self._field(name, value)
            both = isinstance(sent, dict) and isinstance(accepted.get(field), dict)
            accepted[field] = accepted[field] | sent if both else sent
        return {
            field: kept
            for field, sent in accepted.items()
            if field not in self._refused and (kept := self._without_refused(field, sent)) != {}
        }

    def _without_refused(self, field: str, sent: Any) -> Any:
        if not isinstance(sent, dict):
            return sent
        return {part: held for part, held in sent.items() if f"{field}.{part}" not in self._refused}

    def _field(self, name: str, value: Any) -> tuple[str, Any]:
        """What this API calls a setting, and the value that it takes."""
        if name in {"max_tokens", "max_completion_tokens"}:
            if value < _LEAST_ANSWER_TOKENS:
                self._record(name, f"it takes at least {_LEAST_ANSWER_TOKENS}, so that is sent in the place of {value}")
            return "max_output_tokens", max(value, _LEAST_ANSWER_TOKENS)
        if name == "reasoning_effort":
            return "reasoning", {"effort": value}
        if name == "verbosity":
            return "text", {"verbosity": value}
        if name == "response_format":
            return "text", {"format": _flat(value, "json_schema")}
        if name == "tool_choice":
            return name, _flat(value, "function")
        return name, value


def _flat(given: Any, kind: str) -> Any:
    """A tool, choice or format without the object that chat completions put around it.

    >>> _flat({"type": "function", "function": {"name": "add"}}, "function")
    {'type': 'function', 'name': 'add'}
    """
    inner = given.get(kind) if isinstance(given, dict) else None
    return {"type": kind, **inner} if isinstance(inner, dict) else given


# ── a conversation as items ──────────────────────────────────────────────────────────────────────────────────────────


def _items(message: Message, speaker: str) -> list[Item]:
    """The items of a message: as they came where this model said them here, and nobody has changed them since."""
    if message.role in {"tool", "function"}:
        return [_result(message)]
    if message.role != "assistant":
        return [{"role": message.role, "content": _content(message.content)}]
    anew = [*_anew(message, speaker)]
    kept = message.sent_back
    if kept is None or kept.by != speaker:
        return anew
    came: list[Item] = kept.fields[_ITEMS]
    is_same = _text_of(came) == message.text and _calls_in(came) == _calls_in(anew)
    return [_without_nulls(item) for item in came if _can_go_back(item)] if is_same else anew


def _anew(message: Message, speaker: str) -> Iterator[Item]:
    """The items of what a model said, by its text and its calls."""
    if said := message.content_for(speaker):
        yield {"role": "assistant", "content": said if isinstance(said, str) else message.text}
    calls = [(call.id, call.function) for call in message.tool_calls or ()]
    if message.function_call is not None:
        calls.append((message.function_call.name, message.function_call))
    for name, function in calls:
        yield {
            "type": "function_call", "call_id": name or function.name, "name": function.name,
            "arguments": function.arguments,
        }  # fmt: skip


def _result(message: Message) -> Item:
    call = message.tool_call_id or message.name
    if not call:
        raise BadRequestError(
            "The sample has a message of the role 'tool' that belongs to no tool call. Correct the sample's messages."
        )
    return {"type": "function_call_output", "call_id": call, "output": _content(message.content)}


def _content(content: str | list[dict[str, Any]] | None) -> str | list[dict[str, Any]]:
    return [_part(part) for part in content] if isinstance(content, list) else content or ""


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A part of a content in this API's words; one that is in them already is left as it is."""
    kind = part.get("type")
    if kind == "text":
        return {"type": "input_text", "text": part.get("text")}
    if kind == "image_url":
        given = part.get("image_url")
        image = given if isinstance(given, dict) else {"url": given}
        return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail") or "auto"}
    if kind == "file":
        file: dict[str, Any] = part.get("file") or {}
        return {"type": "input_file", **file}
    return part


def _can_go_back(item: Item) -> bool:
    """Whether the endpoint can read an item that it did not keep: reasoning only where it was told what it was."""
    return item.get("type") != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))


def _without_nulls(item: Item) -> Item:
    return {name: held for name, held in item.items() if held is not None}


# ── an answer as a chat completion ───────────────────────────────────────────────────────────────────────────────────


def _choice(items: list[Item], answer: Mapping[str, Any]) -> dict[str, Any]:
    refusal = "".join(_of_parts(items, "refusal", "refusal"))
    calls = [
        {"id": item.get("call_id"), "function": {"name": item.get("name"), "arguments": item.get("arguments")}}
        for item in items
        if item.get("type") == "function_call"
    ]
    message: dict[str, Any] = {"content": _text_of(items) or None, "tool_calls": calls}
    if refusal:
        message["refusal"] = refusal
    if thought := "\n\n".join(_thoughts(items)):
        message["reasoning_content"] = thought
    ended = _ended_by(answer)
    reason = "tool_calls" if calls and ended == "completed" else ended
    choice = {"message": message, "finish_reason": reason, "error": answer.get("error")}
    told = [entry for logprobs in _of_parts(items, "output_text", "logprobs") for entry in logprobs]
    return choice | {"logprobs": {"content": told}} if told else choice


def _ended_by(answer: Mapping[str, Any]) -> Any:
    """Why an answer ended: `incomplete` says it beside its status."""
    details = answer.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    status = answer.get("status")
    return reason or {"failed": "error", "cancelled": "error"}.get(str(status), status)


def _of_parts(items: Sequence[Item], kind: str, field: str) -> Iterator[Any]:
    """A field of each part of a kind, in the messages among the items."""
    for item in items:
        parts = item.get("content") if item.get("type", "message") == "message" else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == kind and part.get(field):
                yield part[field]


def _text_of(items: Sequence[Item]) -> str:
    return "".join(map(str, _of_parts(items, "output_text", "text")))


def _thoughts(items: Sequence[Item]) -> Iterator[str]:
    """What a model thought, as far as it is told: in its own words, else their summary."""
    for item in items:
        if item.get("type") == "reasoning":
            parts = item.get("content") or item.get("summary")
            for part in parts if isinstance(parts, list) else ():
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    yield part["text"]


def _calls_in(items: Sequence[Item]) -> list[tuple[Any, ...]]:
    fields = ("call_id", "name", "arguments")
    return [tuple(map(item.get, fields)) for item in items if item.get("type") == "function_call"]


def _said_in(item: Item) -> Item:
    """What an item says, without what only the endpoint needs to know of it."""
    kind = item.get("type", "message")
    kept = {name: held for name, held in item.items() if name not in _OF_NO_USE and held is not None}
    if kind == "message" and isinstance(parts := item.get("content"), list):
        texts = [part.get("text") for part in parts if _is_plain_text(part)]
        kept["content"] = "".join(map(str, texts)) if len(texts) == len(parts) else parts
    return kept | {"type": kind}


def _is_plain_text(part: Any) -> bool:
    if not isinstance(part, dict) or part.get("type") != "output_text":
        return False
    return not any(held for name, held in part.items() if name not in {"type", "text"} | _SAYS_MORE)
