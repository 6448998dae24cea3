# SPDX-License-Identifier: Apache-2.0
"""The client of Anthropic's own API, the Messages: system, tools, thinking and prompt caching as they are there.

    messages, tools, sampling ─▶ system, turns of blocks, tools with schemas, thinking ─▶ POST /messages
    blocks of text, thinking and tool use ─▶ a chat completion, which is read like any other

Retries, limits and what is learned from refusals are those of every endpoint. One request gives one answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reward_kit.config_models import ApiParamsConfig, Sampling
from reward_kit.errors import BadRequestError, UnreadableReplyError
from reward_kit.generation.http.endpoint import EndpointClient
from reward_kit.generation.presets import PLAIN, RequestRules
from reward_kit.generation.usage import usage_of
from reward_kit.generation.wire import Prompt, arguments_of, keeping, read_completions, settings_of
from reward_kit.http.retry import Timing
from reward_kit.models import Completion, Failure, Message, Usage

__all__ = ["ANSWER_TOKENS", "ANTHROPIC_VERSION", "MessagesClient"]

ANTHROPIC_VERSION = "2023-06-01"
"""The version of the API that is spoken."""
ANSWER_TOKENS = 4096
"""What is sent as `max_tokens` where none is set: this API has no default for it."""
_HIGHEST_TEMPERATURE = 1.0
_NOT_WHILE_THINKING = frozenset({"temperature", "top_k"})
_BLOCKS = "blocks"
_ITS_OWN_PARTS = frozenset(
    {"image", "document", "search_result", "tool_result", "tool_use", "thinking", "redacted_thinking"}
)
_DATA_URL = re.compile(r"data:(?P<media_type>[\w.+/-]+);base64,(?P<data>.*)", re.DOTALL)
_NO_ID_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")

Block = dict[str, Any]


class MessagesClient(EndpointClient):
    """The client of Anthropic's Messages API."""

    def __init__(
        self,
        model: str,
        *,
        api_base: str,
        api_key: str | None = None,
        api_params: ApiParamsConfig | None = None,
        timing: Timing | None = None,
        rules: RequestRules = PLAIN,
    ) -> None:
        """Remember whom to ask; nothing is opened before the first request."""
        super().__init__(
            model, api_base=api_base, api_key=api_key, api_params=api_params, n_mode="fanout", timing=timing,
            headers={"anthropic-version": ANTHROPIC_VERSION}, route="/messages", key_header="x-api-key",
        )  # fmt: skip
        self._rules = rules

    @property
    def identity(self) -> Mapping[str, Any]:
        """The endpoint, its API and the model."""
        return {**super().identity, "api": "messages"}

    def _prompt(
        self, messages: Sequence[Message], tools: list[dict[str, Any]] | None, sampling: Sampling, sample_id: str
    ) -> Prompt:
        turns = _Turns(self._speaker)
        for message in messages:
            turns.add(message)
        offered = [_tool(tool) for tool in tools] if tools else None
        return Prompt(turns.turns, offered, sampling, sample_id, turns.system or None, messages)

    def body(self, prompt: Prompt, draws: Sequence[int]) -> dict[str, Any]:
        """The body of a request for one draw of a prompt."""
        body = {"model": self.model, "messages": prompt.messages, **self._sent_settings(prompt.sampling)}
        if prompt.system is not None:
            body["system"] = prompt.system
        if prompt.tools:
            body["tools"] = prompt.tools
        else:
            body.pop("tool_choice", None)  # refused where there is nothing to choose from
        return body

    def completions(self, answer: dict[str, Any], most: int, latency_ms: float) -> list[Completion | Failure]:
        """Up to `most` answers of a reply."""
        blocks = answer.get("content")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise UnreadableReplyError(
                "The endpoint's answer cannot be read: the reply has no content. Check `generation.api_base`."
            )
        chat = {"model": answer.get("model"), "choices": [_choice(blocks, answer)], "usage": _usage(answer)}
        (read,) = read_completions(chat, asked_model=self.model, most=1, latency_ms=latency_ms)
        said = [block for block in blocks if block.get("type") != "text" or block.get("text")]
        if isinstance(read, Failure) or [_without_nulls(block) for block in said] == _rebuilt(read.message):
            return [read]
        return [keeping(read, self._speaker, _BLOCKS, said)]

    def _usage(self, answer: dict[str, Any]) -> Usage | None:
        return usage_of(_usage(answer))

    # ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _accepted_of(self, sampling: Sampling) -> dict[str, Any]:
        asked = settings_of(sampling) | ({} if sampling.seed is None else {"seed": sampling.seed})
        thinks = _is_on(asked.get("thinking")) and "thinking" not in self._refused
        accepted: dict[str, Any] = {}
        for name, value in asked.items():
            field, sent = self._field(name, value)
            if name in self._rules.refuses:
                self._record(name, self._rules.refuses[name])
            elif thinks and name in _NOT_WHILE_THINKING:
                self._record(name, "it cannot be set while the model thinks, and is not sent")
            elif field not in self._refused:
                both = isinstance(sent, dict) and isinstance(accepted.get(field), dict)
                accepted[field] = accepted[field] | sent if both else sent
        if "max_tokens" not in accepted:
            self._record("max_tokens", f"Anthropic wants one for each request, so {ANSWER_TOKENS} is sent")
            accepted["max_tokens"] = ANSWER_TOKENS
        return accepted

    def _field(self, name: str, value: Any) -> tuple[str, Any]:
        """What this API calls a setting, and the value that it takes."""
        if name == "stop":
            return "stop_sequences", value
        if name == "reasoning_effort":
            return "output_config", {"effort": value}
        if name == "tool_choice":
            return name, _tool_choice(value)
        if name == "temperature" and value > _HIGHEST_TEMPERATURE:
            self._record(name, f"Anthropic's scale ends at 1, so 1 is sent in the place of {value:g}")
            return name, _HIGHEST_TEMPERATURE
        return name, value


def _is_on(thinking: Any) -> bool:
    return isinstance(thinking, dict) and thinking.get("type") != "disabled"


# ── a conversation as turns of blocks ────────────────────────────────────────────────────────────────────────────────


class _Turns:
    """A conversation as this API wants it: the system apart, turns that alternate, results in the turn after the call.

    What every system message says is said at the beginning, as Anthropic's own OpenAI-compatible endpoint does it.
    """

    def __init__(self, speaker: str = "") -> None:
        self._speaker = speaker
        self.system: list[Block] = []
        self.turns: list[dict[str, Any]] = []
        self._unanswered: list[str] = []
        self._calls = 0

    def add(self, message: Message) -> None:
        """The next message."""
        if message.role in {"system", "developer"}:
            self.system += _parts(message.content)
        elif message.role in {"tool", "function"}:
            self._say("user", [self._result(message)])
        elif message.role == "assistant":
            self._unanswered = []
            said = _parts(message.content_for(self._speaker))
            self._say("assistant", self._as_it_came(message) or [*said, *self._uses(message)])
        else:
            self._say("user", _parts(message.content))

    def _say(self, role: str, blocks: list[Block]) -> None:
        if not blocks:
            return  # an empty text is refused
        if self.turns and self.turns[-1]["role"] == role:
            self.turns[-1]["content"] += blocks
        else:
            self.turns.append({"role": role, "content": blocks})

    def _as_it_came(self, message: Message) -> list[Block] | None:
        """The very blocks, in their order, of a turn that this model said here, and that nobody has changed since."""
        kept = message.sent_back
        if kept is None or kept.by != self._speaker:
            return None
        blocks: list[Block] = kept.fields[_BLOCKS]
        if _text_of(blocks) != message.text or _ids_of(blocks) != [call.id for call in message.tool_calls or ()]:
            return None
        self._unanswered += _ids_of(blocks)
        return [*blocks]

    def _uses(self, message: Message) -> Iterator[Block]:
        calls = [(call.id, call.function) for call in message.tool_calls or ()]
        if message.function_call is not None:
            calls.append(("", message.function_call))
        for given, function in calls:
            self._calls += 1
            name = _NO_ID_CHARACTER.sub("_", given) or f"call_{self._calls}"
            self._unanswered.append(name)
            yield {"type": "tool_use", "id": name, "name": function.name, "input": arguments_of(function)}

    def _result(self, message: Message) -> Block:
        name = _NO_ID_CHARACTER.sub("_", message.tool_call_id or "") or next(iter(self._unanswered), "")
        if not name:
            raise BadRequestError(
                "The sample has a message of the role 'tool' that belongs to no tool call. Correct the sample's "
                "messages."
            )
        if name in self._unanswered:
            self._unanswered.remove(name)
        return {"type": "tool_result", "tool_use_id": name, "content": _parts(message.content)}


def _parts(content: str | list[dict[str, Any]] | None) -> list[Block]:
    """A message's content as blocks; texts that are empty are left out."""
    if not content:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_part(part) for part in content if part.get("type") != "text" or part.get("text")]


def _part(part: dict[str, Any]) -> Block:
    kind = part.get("type")
    if kind == "text" or kind in _ITS_OWN_PARTS:
        return part
    if kind == "image_url":
        given = part.get("image_url")
        url = str(given.get("url", "") if isinstance(given, dict) else given or "")
        inline = _DATA_URL.fullmatch(url)
        source = {"type": "url", "url": url} if inline is None else {"type": "base64", **inline.groupdict()}
        cached = {"cache_control": part["cache_control"]} if "cache_control" in part else {}
        return {"type": "image", "source": source, **cached}
    raise BadRequestError(
        f"Anthropic takes no content part of the type {kind!r}. Use parts of the types text, image_url and document."
    )


def _tool(tool: dict[str, Any]) -> Block:
    """A tool in this API's shape; one that is in it already is left as it is."""
    function = tool.get("function")
    if not isinstance(function, dict):
        return tool
    schema = function.get("parameters") or {}
    made: Block = {"name": function.get("name"), "input_schema": {"type": "object", **schema}}
    if function.get("description"):
        made["description"] = function["description"]
    if function.get("strict"):
        made["strict"] = True
    cached = tool.get("cache_control") or function.get("cache_control")
    return made | {"cache_control": cached} if cached else made


def _tool_choice(value: Any) -> Any:
    """OpenAI's way to say which tools may or must be called, in this API's; what is in it already is left as it is."""
    if isinstance(value, str):
        return {"type": {"required": "any"}.get(value, value)}
    function = value.get("function") if isinstance(value, dict) else None
    return {"type": "tool", "name": function.get("name")} if isinstance(function, dict) else value


# ── an answer as a chat completion ───────────────────────────────────────────────────────────────────────────────────


def _text_of(blocks: Sequence[Block]) -> str:
    return "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")


def _ids_of(blocks: Sequence[Block]) -> list[Any]:
    return [block.get("id") for block in blocks if block.get("type") == "tool_use"]


def _without_nulls(block: Block) -> Block:
    return {name: held for name, held in block.items() if held is not None}


def _rebuilt(message: Message) -> list[Block]:
    """The blocks that a turn would be sent as without those that came."""
    turns = _Turns()
    turns.add(message)
    return turns.turns[0]["content"] if turns.turns else []


def _choice(blocks: list[Block], answer: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        {"id": block.get("id"), "function": {"name": block.get("name"), "arguments": block.get("input") or {}}}
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    text = _text_of(blocks)
    message: dict[str, Any] = {"content": text or None, "tool_calls": calls}
    if thought := "".join(str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking"):
        message["reasoning_content"] = thought
    return {"message": message, "finish_reason": answer.get("stop_reason")}


def _usage(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """The counts of tokens: here the prompt's leave out what was read from the cache, or written to it."""
    told = answer.get("usage")
    if not isinstance(told, dict):
        return None
    details = {
        "cached_tokens": told.get("cache_read_input_tokens"),
        "cache_write_tokens": told.get("cache_creation_input_tokens"),
    }
    prompt = told.get("input_tokens")
    if type(prompt) is int:
        prompt += sum(count for count in details.values() if type(count) is int)
    return {"prompt_tokens": prompt, "completion_tokens": told.get("output_tokens"), "prompt_tokens_details": details}
