# SPDX-License-Identifier: Apache-2.0
r"""What a mock says, written down: answers by pattern, by order or by function, and the faults of an endpoint.

    in_order (each once, as requests come) → rules (pattern, model) → function → responses → an echo

The first that applies answers. The model `mock` and the server of `reward-kit mock serve` read the same script; faults
are the server's.

>>> script = read_script({"rules": [{"pattern": r"(\d+) \+ (\d+)", "response": ["\\1", {"content": "\\2"}]}]})
>>> question = [Message(role="user", content="3 + 4?")]
>>> [script.scripted(question, draw, "m").content for draw in range(3)]
['3', '4', '3']
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from reward_kit.config_models import StrictPart, validated
from reward_kit.errors import ConfigError, GenerationError, boundary
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message
from reward_kit.utils import exact_json
from reward_kit.utils.module_loader import load_function
from reward_kit.utils.strict_yaml import load_yaml, read_yaml_text

__all__ = [
    "Fault", "MockScript", "Responder", "Rule", "Script", "ScriptLike", "ScriptedAnswer", "ScriptedCall",
    "called", "compiled_rule", "cut_after", "echo_of", "ended_before", "last_user_text", "read_script", "responder_at",
    "with_faults", "words_of",
]  # fmt: skip

_ECHOED_CHARACTERS = 200
_CAPTURED = re.compile(r"\\(?:(\d{1,2})|g<(\w+)>)")
_WORD = re.compile(r"\S+")

Responder = Callable[[Sequence[Message], int], Any]
"""A function of the messages and the draw that returns an answer, a `Message` or text."""


class _ScriptPart(StrictPart, defer_build=True):
    """A part of a script. Its checks are built when the first script is read: most runs with the mock have none."""


class ScriptedCall(_ScriptPart):
    """A tool call of a scripted answer."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    """An object, or text that is sent as it is, also where it is no JSON."""
    id: str | None = None


class ScriptedAnswer(_ScriptPart):
    """One answer. You may write a plain text instead, which becomes its content."""

    content: str | None = None
    reasoning_content: str | None = None
    """What the model thought before it answered."""
    tool_calls: list[ScriptedCall] = Field(default_factory=list)
    refusal: str | None = None
    """What a model says that declines to answer."""
    finish_reason: str | None = None
    """Left out: `tool_calls` where there are any, `length` where `max_tokens` cut the answer, else `stop`."""
    usage: dict[str, Any] | None = None
    """Such as {prompt_tokens: 10, completion_tokens: 2}, sent as it is. Left out: words are counted."""
    logprobs: list[float] | None = None
    """The log-probability of each word. Sent where the request asks for log-probabilities."""
    model: str | None = None
    """The model that the reply names. Left out: the one that was asked."""
    delay: float = Field(default=0.0, ge=0)
    """Seconds to wait before it is sent."""

    def message(self) -> Message:
        """The answer as a message."""
        calls = [
            ChatCompletionMessageToolCall(
                id=call.id or f"call_{number}",
                function=FunctionCall(name=call.name, arguments=_as_text(call.arguments)),
            )
            for number, call in enumerate(self.tool_calls)
        ]
        content = self.content if self.content is not None or calls else (self.refusal or "")
        return Message(
            role="assistant", content=content, tool_calls=calls or None, reasoning_content=self.reasoning_content
        )


Given = str | ScriptedAnswer
"""An answer as a script gives it."""


class ScriptRule(_ScriptPart):
    """Answer with `response` where `pattern` is found in the last user turn."""

    pattern: str = ""
    """A regular expression. Left out: any prompt."""
    model: str | None = None
    """Only for models of this name; * and ? stand for anything."""
    response: Given | list[Given]
    """One answer, or several: each prompt gets them in turn. `\\1` and `\\g<name>` stand for what was captured."""


class Fault(_ScriptPart):
    """Something that goes wrong, and when. `at`, `every` and `rate` say when; without any of them, always."""

    at: list[int] = Field(default_factory=list)
    """At these requests, counted from 1."""
    every: int | None = Field(default=None, ge=1)
    """At every so many-th request."""
    rate: float | None = Field(default=None, ge=0, le=1)
    """At this share of the requests. The script's seed decides which: the same ones each time."""
    pattern: str | None = None
    """Only for prompts in which this regular expression is found."""
    model: str | None = None
    """Only for models of this name; * and ? stand for anything."""
    times: int | None = Field(default=None, ge=1)
    """At most so often."""
    status: int | None = Field(default=None, ge=200, le=599)
    """Answer with this HTTP status and an error in OpenAI's shape."""
    message: str | None = None
    """What that error says."""
    retry_after: float | None = Field(default=None, ge=0)
    """Seconds that the header Retry-After asks for."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers of the reply."""
    cut: Literal["before", "within"] | None = None
    """Close the connection: before a byte was sent, or in the middle of the answer."""
    malformed: Literal["half", "empty", "html", "no_choices"] | None = None
    """A 200 whose body is half of the answer, nothing, a web page, or an answer without choices."""
    delay: float = Field(default=0.0, ge=0)
    """Seconds to wait first. Alone, it makes a right answer late."""

    @model_validator(mode="before")
    @classmethod
    def _one_number_is_a_list(cls, given: object) -> object:
        if isinstance(given, Mapping) and isinstance(given.get("at"), int):
            return {**given, "at": [given["at"]]}
        return given

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.pattern is not None:
            _compiled(self.pattern, "The fault")
        if sum(what is not None for what in (self.status, self.cut, self.malformed)) > 1:
            raise ValueError("a fault is one of `status`, `cut` and `malformed`; write several faults")
        if self.name == "delay" and not self.delay:
            raise ValueError("a fault needs one of `status`, `cut`, `malformed` and `delay`")
        return self

    @property
    def name(self) -> str:
        """What it is, in a word."""
        if self.status is not None:
            return f"status {self.status}"
        return f"cut {self.cut}" if self.cut else f"malformed {self.malformed}" if self.malformed else "delay"


class MockScript(_ScriptPart):
    """A script as a YAML file holds it."""

    in_order: list[Given] = Field(default_factory=list)
    """Each is given once, to the requests in the order in which they come."""
    rules: list[ScriptRule] = Field(default_factory=list)
    """Tried after these, in order."""
    function_path: str | None = None
    """Import path of `f(messages, draw) -> str | Message`; used when no rule matches."""
    responses: list[Given] = Field(default_factory=list)
    """For every other prompt: each prompt gets them in turn."""
    models: list[str] = Field(default_factory=list)
    """The models there are: any other is a 404. Empty: whatever is asked for is there."""
    api_key: str | None = None
    """The key to ask for: without it, a 401."""
    refuse_parameters: list[str] = Field(default_factory=list)
    """Parameters that are refused with a 400, such as `seed`."""
    most_choices: int | None = Field(default=None, ge=1)
    """The largest `n` that is taken: a request for more is refused with a 400."""
    faults: list[Fault] = Field(default_factory=list)
    """What goes wrong. The first that applies to a request happens."""
    seed: int = 0
    """Decides which requests a fault's `rate` picks."""


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Rule(NamedTuple):
    """A rule, ready to be tried."""

    pattern: re.Pattern[str]
    model: str | None
    answers: Sequence[Given]
    where: str

    def answer(self, prompt: str, draw: int, model: str) -> ScriptedAnswer | None:
        """The answer to the prompt's draw; None where the rule does not apply."""
        if self.model is not None and not fnmatchcase(model, self.model):
            return None
        match = self.pattern.search(prompt)
        return None if match is None else _filled(_as_answer(self.answers[draw % len(self.answers)]), match, self.where)


def compiled_rule(pattern: str, response: Given | Sequence[Given], where: str, model: str | None = None) -> Rule:
    """The rule, checked; `where` is what a message calls its place."""
    answers = [response] if isinstance(response, str | ScriptedAnswer) else list(response)
    if not answers:
        raise ConfigError(f"{where} has a rule with no response. Give it one, or a list of them.")
    return Rule(_compiled(pattern, where), model, answers, where)


class Script:
    """What is answered, and what goes wrong."""

    def __init__(self, settings: MockScript, function: Responder | None = None) -> None:
        """`function` answers where no rule does, in the place of `function_path`."""
        self.settings = settings
        self._rules = [compiled_rule(rule.pattern, rule.response, "`rules`", rule.model) for rule in settings.rules]
        self._waiting = list(reversed(settings.in_order))
        self.function = function or responder_at(settings.function_path, "function_path")
        """Asked where no answer is scripted: see `scripted`."""

    @property
    def waiting(self) -> int:
        """How many of the answers in order were not given yet."""
        return len(self._waiting)

    def scripted(self, messages: Sequence[Message], draw: int, model: str) -> ScriptedAnswer | None:
        """The answer that is written down for this draw of a prompt; None where there is none."""
        if self._waiting:
            return _as_answer(self._waiting.pop())
        prompt = last_user_text(messages)
        found = (rule.answer(prompt, draw, model) for rule in self._rules)
        by_rule = next((answer for answer in found if answer is not None), None)
        if by_rule is not None or self.function is not None:
            return by_rule
        others = self.settings.responses
        return _as_answer(others[draw % len(others)]) if others else None


def _as_answer(given: Given) -> ScriptedAnswer:
    return ScriptedAnswer(content=given) if isinstance(given, str) else given


def _as_text(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else exact_json.dumps(arguments).decode()


def responder_at(path: str | None, setting: str) -> Responder | None:
    """The function that a setting names, if it names one."""
    if path is None:
        return None
    try:
        return load_function(path)
    except ImportError as error:
        raise ConfigError(f"`{setting}`: {error}") from error


def _compiled(pattern: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"{where} has the pattern {pattern!r}, not a regular expression: {error}. Correct it."
        ) from None


def _filled(answer: ScriptedAnswer, match: re.Match[str], where: str) -> ScriptedAnswer:
    """The answer with what was captured put into its content and into the texts among its arguments."""
    calls = [
        call.model_copy(
            update={
                "arguments": _fill(call.arguments, match, where)
                if isinstance(call.arguments, str)
                else {
                    name: _fill(value, match, where) if isinstance(value, str) else value
                    for name, value in call.arguments.items()
                }
            }
        )
        for call in answer.tool_calls
    ]
    content = None if answer.content is None else _fill(answer.content, match, where)
    return answer.model_copy(update={"content": content, "tool_calls": calls})


def _fill(template: str, match: re.Match[str], where: str) -> str:
    r"""`template` with what was captured; other backslashes stay, so that `\boxed{\1}` means what it says."""

    def captured(reference: re.Match[str]) -> str:
        group: int | str = int(reference[1]) if reference[1] else reference[2]
        try:
            return match[group] or ""
        except IndexError:
            raise ConfigError(
                f"{where}: the response {template!r} refers to {reference[0]!r}, which the pattern "
                f"{match.re.pattern!r} does not capture. Add the group, or take the reference out."
            ) from None

    return _CAPTURED.sub(captured, template)


async def called(function: Responder, messages: Sequence[Message], draw: int, name: str) -> Message | ScriptedAnswer:
    """What the function answers. One that raises, or returns something else, is a `GenerationError`."""
    with boundary(GenerationError, name):
        said = function(messages, draw)
        if inspect.isawaitable(said):
            said = await said
    if isinstance(said, Message | ScriptedAnswer):
        return said
    if isinstance(said, str):
        return Message(role="assistant", content=said)
    raise GenerationError(f"{name} returned a {type(said).__name__}; return a str or a Message.")


def last_user_text(messages: Sequence[Message]) -> str:
    """The last user turn's text; of the last turn, where nobody is the user."""
    users = [message for message in messages if message.role == "user"] or list(messages)
    return users[-1].text if users else ""


def echo_of(messages: Sequence[Message], draw: int) -> str:
    """What is answered where nothing is scripted."""
    return f"mock answer {draw} to: {last_user_text(messages)[:_ECHOED_CHARACTERS]}"


def words_of(message: Message) -> int:
    """How many words a message has: a mock's tokens."""
    return len(message.text.split())


def cut_after(message: Message, most: int | None) -> tuple[Message, bool]:
    """The message, cut after `most` words where it has more, and whether it was."""
    if most is None or words_of(message) <= most:
        return message, False
    last = next(islice(_WORD.finditer(message.text), most - 1, None))
    return message.model_copy(update={"content": message.text[: last.end()]}), True


def ended_before(message: Message, stop: object) -> tuple[Message, bool]:
    """The message up to the first of the `stop` texts that it holds, and whether it holds one."""
    texts = [stop] if isinstance(stop, str) else stop if isinstance(stop, list | tuple) else []
    found = [at for text in texts if isinstance(text, str) and text and (at := message.text.find(text)) >= 0]
    if not found:
        return message, False
    return message.model_copy(update={"content": message.text[: min(found)]}), True


# ── reading a script ─────────────────────────────────────────────────────────────────────────────────────────────────

ScriptLike = Script | str | Path | Mapping[str, Any] | Sequence[Any] | Responder | None
"""What a script is read from."""


def read_script(source: ScriptLike, *, where: str = "") -> Script:
    """The script in a file (YAML, or JSON lines), in a mapping, in a list of answers in order, or in a function."""
    if isinstance(source, Script):
        return source
    if source is None or callable(source):
        return Script(MockScript.model_construct(), source)  # nothing was written, so there is nothing to check
    if isinstance(source, str | Path):
        path = Path(source)
        name = where or f"The script {str(path)!r}"
        text = read_yaml_text(path, f"the script {str(path)!r}", "Name a YAML or JSONL file.")
        found = _from_lines(text, name) if path.suffix == ".jsonl" else load_yaml(text, name)
        return Script(validated(MockScript, found if found is not None else {}, name))
    given = source if isinstance(source, Mapping) else {"in_order": list(source)}
    return Script(validated(MockScript, given, where or "The script"))


def with_faults(script: MockScript, faults: Sequence[Mapping[str, Any]]) -> MockScript:
    """The script with further faults before its own."""
    more = [validated(Fault, fault, "The fault") for fault in faults]
    return script.model_copy(update={"faults": [*more, *script.faults]})


def _from_lines(text: str, name: str) -> dict[str, Any]:
    """A script of JSON lines: a rule where there is a `response`, a fault where there is a `fault`, else an answer."""
    found: dict[str, Any] = {"in_order": [], "rules": [], "faults": []}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = exact_json.loads(line)
        except ValueError as error:
            raise ConfigError(f"{name}, line {number}, is not JSON: {error}. Correct it.") from None
        if isinstance(value, dict) and "response" in value:
            found["rules"].append(value)
        elif isinstance(value, dict) and value.keys() == {"fault"}:
            found["faults"].append(value["fault"])
        else:
            found["in_order"].append(value)
    return found
