# SPDX-License-Identifier: Apache-2.0
"""The client of Google's own API for Gemini: thinking, signatures, safety and usage as they are there.

    messages, tools, sampling ─▶ contents of parts, declarations, generationConfig ─▶ POST /models/NAME:generateContent
    candidates of parts ─▶ a chat completion, which is read like any other

Retries, limits and what is learned from refusals are those of every endpoint.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from reward_kit.config_models import ApiParamsConfig, Sampling
from reward_kit.errors import BadRequestError, UnreadableReplyError
from reward_kit.generation.http.endpoint import EndpointClient
from reward_kit.generation.usage import usage_of
from reward_kit.generation.wire import Prompt, arguments_of, derived_seed, keeping, read_completions, settings_of
from reward_kit.http.retry import Timing
from reward_kit.models import Completion, Failure, Message, Usage
from reward_kit.utils import exact_json

__all__ = ["GeminiClient"]

_CONFIG = "generationConfig"
_NAMES = {
    "temperature": "temperature", "max_tokens": "maxOutputTokens", "max_completion_tokens": "maxOutputTokens",
    "top_p": "topP", "top_k": "topK", "stop": "stopSequences", "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty", "logprobs": "responseLogprobs", "top_logprobs": "logprobs",
    "seed": "seed",
}  # fmt: skip
"""What this API calls the settings of a request, in its `generationConfig`."""
_ABOVE = frozenset({"safetySettings", "toolConfig", "cachedContent", "labels", "serviceTier"})
"""Fields that stand beside it."""
_NOT_HERE = frozenset({"min_p", "logit_bias", "verbosity"})
_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
"""Tokens to think with, for models that know no levels of thinking."""
_OLDER = re.compile(r"(?:models/)?gemini-[12]")
_PARTS = "parts"
_NO_SIGNATURE = "skip_thought_signature_validator"
"""What Google documents for calls that another model made: this one wants a signature with its own."""
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_DATA_URL = re.compile(r"data:(?P<mimeType>[\w.+/-]+);base64,(?P<data>.*)", re.DOTALL)

Part = dict[str, Any]


class GeminiClient(EndpointClient):
    """The client of `generateContent`."""

    def __init__(
        self,
        model: str,
        *,
        api_base: str,
        api_key: str | None = None,
        api_params: ApiParamsConfig | None = None,
        n_mode: Literal["auto", "native", "fanout"] = "auto",
        timing: Timing | None = None,
    ) -> None:
        """Remember whom to ask; nothing is opened before the first request."""
        place = model if "/" in model else f"models/{model}"
        super().__init__(
            model, api_base=api_base, api_key=api_key, api_params=api_params, n_mode=n_mode, timing=timing,
            route=f"/{place}:generateContent", key_header="x-goog-api-key",
        )  # fmt: skip

    @property
    def identity(self) -> Mapping[str, Any]:
        """The endpoint, its API and the model."""
        return {**super().identity, "api": "gemini"}

    def _prompt(
        self, messages: Sequence[Message], tools: list[dict[str, Any]] | None, sampling: Sampling, sample_id: str
    ) -> Prompt:
        turns = _Turns(self._speaker, signs=_OLDER.match(self.model) is None)
        for message in messages:
            turns.add(message)
        offered = [{"functionDeclarations": [_declaration(tool) for tool in tools]}] if tools else None
        return Prompt(turns.contents, offered, sampling, sample_id, turns.system or None, messages)

    def _parameters(self, body: dict[str, Any]) -> set[str]:
        held = body.get(_CONFIG, {})
        names = {name for name, field in _NAMES.items() if field in held}
        return {*body, *held, *names} | ({"n"} if "candidateCount" in held else set())

    def body(self, prompt: Prompt, draws: Sequence[int]) -> dict[str, Any]:
        """The body of a request for these draws of a prompt."""
        sampling = prompt.sampling
        body = {"contents": prompt.messages, **self._sent_settings(sampling)}
        if prompt.system is not None:
            body["systemInstruction"] = {_PARTS: prompt.system}
        if prompt.tools:
            body["tools"] = prompt.tools
        else:
            body.pop("toolConfig", None)
        config = dict(body.get(_CONFIG, {}))
        if len(draws) > 1:
            config["candidateCount"] = len(draws)
        if sampling.seed is not None and "seed" not in self._refused:
            config["seed"] = derived_seed(sampling.seed, prompt.sample_id, draws[0])
        return {**body, _CONFIG: config} if config else body

    def completions(self, answer: dict[str, Any], most: int, latency_ms: float) -> list[Completion | Failure]:
        """Up to `most` candidates of a reply."""
        candidates = answer.get("candidates")
        blocked = answer.get("promptFeedback")
        if not candidates and isinstance(blocked, dict) and blocked.get("blockReason"):
            candidates = [{"finishReason": "SAFETY"}]
        if not isinstance(candidates, list) or not all(isinstance(each, dict) for each in candidates):
            raise UnreadableReplyError(
                "The endpoint's answer cannot be read: the reply has no candidates. Check `generation.api_base`."
            )
        name = str(answer.get("responseId") or hashlib.blake2b(exact_json.dumps(answer), digest_size=6).hexdigest())
        parts = [_parts_of(each) for each in candidates[:most]]
        choices = [
            _choice(each, said, f"{name}-{place}")
            for place, (each, said) in enumerate(zip(candidates, parts, strict=False))
        ]
        chat = {"model": answer.get("modelVersion"), "usage": _usage(answer), "choices": choices}
        read = read_completions(chat, asked_model=self.model, most=most, latency_ms=latency_ms)
        if len(read) < len(parts):
            return read  # what broke off was left out, and nobody knows any more whose parts are whose
        return [
            each if isinstance(each, Failure) or not _says_more(said) else keeping(each, self._speaker, _PARTS, said)
            for each, said in zip(read, parts, strict=True)
        ]

    def _usage(self, answer: dict[str, Any]) -> Usage | None:
        return usage_of(_usage(answer))

    # ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _accepted_of(self, sampling: Sampling) -> dict[str, Any]:
        accepted: dict[str, Any] = {}
        config: dict[str, Any] = {}
        for name, value in settings_of(sampling).items():
            if name in _NOT_HERE:
                self._record(name, "Gemini's API does not have it, and it is not sent")
            elif name in self._refused:
                continue
            elif name == "reasoning_effort":
                config["thinkingConfig"] = self._thinking(value) | config.get("thinkingConfig", {})
            elif name == "response_format":
                config |= _format(value)
            elif name == "tool_choice":
                accepted["toolConfig"] = {"functionCallingConfig": _choosing(value)}
            elif name in _ABOVE:
                accepted[name] = value
            elif name == _CONFIG:
                config |= value
            elif name == "thinkingConfig":
                config[name] = config.get(name, {}) | value
            else:
                config[_NAMES.get(name, name)] = value
        config = {name: value for name, value in config.items() if name not in self._refused}
        return accepted | ({_CONFIG: config} if config else {})

    def _thinking(self, effort: str) -> dict[str, Any]:
        if _OLDER.match(self.model) and effort in _BUDGETS:
            return {"thinkingBudget": _BUDGETS[effort]}
        return {"thinkingLevel": "minimal" if effort == "none" else effort}


def _format(value: Any) -> dict[str, Any]:
    """The form that an answer is to have, in this API's words."""
    if not isinstance(value, dict) or value.get("type") == "text":
        return {}
    schema = (value.get("json_schema") or {}).get("schema")
    return {"responseMimeType": "application/json", **({"responseJsonSchema": schema} if schema else {})}


def _choosing(value: Any) -> Any:
    """OpenAI's way to say which tools may or must be called, in this API's; what is in it already is left as it is."""
    if isinstance(value, str):
        return {"mode": _MODES.get(value, value)}
    function = value.get("function") if isinstance(value, dict) else None
    return {"mode": "ANY", "allowedFunctionNames": [function.get("name")]} if isinstance(function, dict) else value


def _declaration(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    if not isinstance(function, dict):
        return tool
    described = {"description": function["description"]} if function.get("description") else {}
    schema = {"parametersJsonSchema": function["parameters"]} if function.get("parameters") else {}
    return {"name": function.get("name"), **described, **schema}


# ── a conversation as contents ───────────────────────────────────────────────────────────────────────────────────────


class _Turns:
    """A conversation as this API wants it: the system apart, turns that alternate, results by the names of tools."""

    def __init__(self, speaker: str = "", *, signs: bool = False) -> None:
        self._speaker, self._signs = speaker, signs
        self.system: list[Part] = []
        self.contents: list[dict[str, Any]] = []
        self._called: dict[str, str] = {}
        self._unanswered: list[str] = []

    def add(self, message: Message) -> None:
        """The next message."""
        if message.role in {"system", "developer"}:
            self.system += _content(message.content)
        elif message.role in {"tool", "function"}:
            self._say("user", [self._result(message)])
        elif message.role == "assistant":
            calls = [*_calls(message)]
            self._called |= {name: call["name"] for name, call in calls}
            self._unanswered = [name for name, _ in calls]
            self._say("model", self._as_it_came(message) or [*self._anew(message, calls)])
        else:
            self._say("user", _content(message.content))

    def _say(self, role: str, parts: list[Part]) -> None:
        if not parts:
            return
        if self.contents and self.contents[-1]["role"] == role:
            self.contents[-1][_PARTS] += parts
        else:
            self.contents.append({"role": role, _PARTS: [*parts]})

    def _as_it_came(self, message: Message) -> list[Part] | None:
        """The very parts of a turn that this model said here, and that nobody has changed since."""
        kept = message.sent_back
        if kept is None or kept.by != self._speaker:
            return None
        parts: list[Part] = kept.fields[_PARTS]
        same = _text_of(parts) == message.text and _named(_calls_in(parts)) == _named(
            call for _, call in _calls(message)
        )
        return parts if same else None

    def _anew(self, message: Message, calls: Sequence[tuple[str, Part]]) -> Iterator[Part]:
        yield from _content(message.content_for(self._speaker))
        for place, (name, call) in enumerate(calls):
            signed = {"thoughtSignature": _NO_SIGNATURE} if self._signs and place == 0 else {}
            yield {"functionCall": {"id": name, **call}, **signed}

    def _result(self, message: Message) -> Part:
        name = message.tool_call_id or next(iter(self._unanswered), "")
        if name in self._unanswered:
            self._unanswered.remove(name)
        tool = message.name or self._called.get(name)
        if not tool:
            raise BadRequestError(
                "The sample has a message of the role 'tool' that belongs to no tool call. Correct the sample's "
                "messages."
            )
        identity = {"id": name} if name else {}
        shown = [part for part in _content(message.content) if "text" not in part]
        more = {_PARTS: shown} if shown else {}
        return {"functionResponse": {**identity, "name": tool, "response": {"result": message.text}, **more}}


def _calls(message: Message) -> Iterator[tuple[str, Part]]:
    for call in message.tool_calls or ():
        yield call.id, {"name": call.function.name, "args": arguments_of(call.function)}
    if (function := message.function_call) is not None:
        yield function.name, {"name": function.name, "args": arguments_of(function)}


def _calls_in(parts: Iterable[Part]) -> Iterator[Part]:
    return (part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict))


def _named(calls: Iterable[Part]) -> list[tuple[Any, Any]]:
    return [(call.get("name"), call.get("args") or {}) for call in calls]


def _content(content: str | list[dict[str, Any]] | None) -> list[Part]:
    """A message's content as parts; texts that are empty are left out."""
    if not content:
        return []
    if isinstance(content, str):
        return [{"text": content}]
    return [_part(part) for part in content if part.get("type") != "text" or part.get("text")]


def _part(part: dict[str, Any]) -> Part:
    """A part of a content in this API's words; one that is in them already is left as it is."""
    kind = part.get("type")
    if kind is None:
        return part
    if kind == "text":
        return {"text": part["text"]}
    held = part.get(kind)
    if kind == "input_audio" and isinstance(held, dict):
        return {"inlineData": {"mimeType": f"audio/{held.get('format')}", "data": held.get("data")}}
    url = held.get("url") or held.get("file_data") if isinstance(held, dict) else held
    if kind not in {"image_url", "file"} or not isinstance(url, str):
        raise BadRequestError(
            f"Gemini takes no content part of the type {kind!r}. Use parts of the types text, image_url, input_audio "
            "and file."
        )
    inline = _DATA_URL.fullmatch(url)
    if inline is not None:
        return {"inlineData": inline.groupdict()}
    guessed = mimetypes.guess_type(url)[0]
    return {"fileData": {"fileUri": url, **({"mimeType": guessed} if guessed else {})}}


# ── an answer as a chat completion ───────────────────────────────────────────────────────────────────────────────────


def _parts_of(candidate: Mapping[str, Any]) -> list[Part]:
    content = candidate.get("content")
    parts = content.get(_PARTS) if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _text_of(parts: Iterable[Part], *, thought: bool = False) -> str:
    return "".join(str(part.get("text") or "") for part in parts if bool(part.get("thought")) is thought)


def _choice(candidate: Mapping[str, Any], parts: list[Part], name: str) -> dict[str, Any]:
    calls = [
        {
            "id": call.get("id") or f"call-{name}-{place}",
            "function": {"name": call.get("name"), "arguments": call.get("args") or {}},
        }
        for place, call in enumerate(_calls_in(parts))
    ]
    message: dict[str, Any] = {"content": _text_of(parts) or None, "tool_calls": calls}
    if thought := _text_of(parts, thought=True):
        message["reasoning_content"] = thought
    ended = candidate.get("finishReason")
    choice: dict[str, Any] = {"message": message, "finish_reason": "tool_calls" if calls and ended == "STOP" else ended}
    chosen = candidate.get("logprobsResult")
    tokens = chosen.get("chosenCandidates") if isinstance(chosen, dict) else None
    if tokens and all(isinstance(token, dict) for token in tokens):
        choice["logprobs"] = {"content": [{"logprob": token.get("logProbability")} for token in tokens]}
        if all(type(token.get("tokenId")) is int for token in tokens):
            choice["token_ids"] = [token["tokenId"] for token in tokens]
    return choice


def _says_more(parts: list[Part]) -> bool:
    """Whether parts say more than their text and their calls."""
    return any(part.keys() not in ({"text"}, {"functionCall"}) for part in parts)


def _usage(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """The counts of tokens: here thoughts are beside the answer's, and what tools brought beside the prompt's."""
    told = answer.get("usageMetadata")
    if not isinstance(told, dict):
        return None
    thought = told.get("thoughtsTokenCount")
    return {
        "prompt_tokens": _together(told, "promptTokenCount", "toolUsePromptTokenCount"),
        "completion_tokens": _together(told, "candidatesTokenCount", "thoughtsTokenCount", default=0),
        "total_tokens": told.get("totalTokenCount"),
        "prompt_tokens_details": {"cached_tokens": told.get("cachedContentTokenCount")},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def _together(told: Mapping[str, Any], *names: str, default: int | None = None) -> Any:
    counts = [told[name] for name in names if name in told]
    return sum(counts) if counts and all(type(count) is int for count in counts) else default
