# SPDX-License-Identifier: Apache-2.0
"""The mock model: a client without a model, for trying a pipeline and for your own tests.

    rules (a regular expression on the last user turn) → function → scripted answers → an echo

The first that applies answers. The same prompt and draw give the same answer in every process, so a run against the
mock can be asserted on:

>>> import asyncio
>>> from reward_kit.config_models import MockConfig, MockRule, Sampling
>>> from reward_kit.models import Message
>>> rule = MockRule(pattern=r"(\\d+) \\+ (\\d+)", response=["It is \\\\1.", "It is \\\\2."])
>>> client = MockModelClient(MockConfig(rules=[rule]))
>>> question = [Message(role="user", content="What is 3 + 4?")]
>>> answers = asyncio.run(client.generate(question, draws=range(3), sampling=Sampling()))
>>> [answer.message.content for answer in answers]
['It is 3.', 'It is 4.', 'It is 3.']

In a config: `generation: {model_name: mock, mock: {responses: ["The answer is 4.", "The answer is 5."]}}`.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from reward_kit.config_models import MockConfig, Sampling
from reward_kit.errors import ConfigError, GenerationError, ProviderError, boundary
from reward_kit.models import Completion, Failure, Message, Usage
from reward_kit.utils.module_loader import load_function, source_digest

__all__ = ["MockModelClient"]

_ECHOED_CHARACTERS = 200
_CAPTURED = re.compile(r"\\(?:(\d{1,2})|g<(\w+)>)")
_WORD = re.compile(r"\S+")

Responder = Callable[[Sequence[Message], int], Any]


class MockModelClient:
    """A model that says what its configuration tells it to.

    Tokens are counted as words; `max_tokens` cuts an answer after that many words. With nothing configured, the answer
    is `mock answer {draw} to: {prompt}`. Every `fail_every`-th answer asked of this client is a retryable failure.
    """

    def __init__(self, config: MockConfig | None = None, model: str = "mock") -> None:
        """Check the configuration: a pattern that does not compile or a path that does not load is a `ConfigError`."""
        self.model = model
        self._config = config or MockConfig()
        self._rules = [(_compiled(rule.pattern), _as_list(rule.response)) for rule in self._config.rules]
        self._function = _loaded(self._config.function_path)
        self._asked = 0
        digest = hashlib.sha256(self._config.model_dump_json(exclude={"latency_ms", "fail_every"}).encode())
        if self._function is not None:
            digest.update(source_digest(self._function).encode())
        self._digest = digest.hexdigest()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model and a digest of what it was told to say; not how long it takes or how often it fails."""
        return {"endpoint": "mock", "model": self.model, "config": self._digest}

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """One answer, or failure, for each draw, in order."""
        if self._config.latency_ms:
            await asyncio.sleep(self._config.latency_ms / 1000)
        results = [await self._answer(messages, draw, sampling) for draw in draws]
        spent = sum(
            result.usage.completion_tokens for result in results if isinstance(result, Completion) and result.usage
        )
        return _with_usage_once(results, Usage(prompt_tokens=sum(map(_words, messages)), completion_tokens=spent))

    async def close(self) -> None:
        """Does nothing: a mock holds no connection."""

    async def _answer(self, messages: Sequence[Message], draw: int, sampling: Sampling) -> Completion | Failure:
        self._asked += 1
        if self._config.fail_every and self._asked % self._config.fail_every == 0:
            planned = ProviderError(f"The mock model fails every {self._config.fail_every}th answer, as configured.")
            return Failure.of(planned, "generate")
        try:
            message = await self._message(messages, draw)
        except GenerationError as error:
            return Failure.of(error, "generate")
        message, cut = _cut(message, sampling.max_tokens)
        reason = "length" if cut else "tool_calls" if message.tool_calls else "stop"
        usage = Usage(completion_tokens=_words(message))
        return Completion(message=message, finish_reason=reason, usage=usage, latency_ms=self._config.latency_ms)

    async def _message(self, messages: Sequence[Message], draw: int) -> Message:
        prompt = _last_user_text(messages)
        for pattern, responses in self._rules:
            if match := pattern.search(prompt):
                return _message(_filled(responses[draw % len(responses)], match))
        if self._function is not None:
            return await self._called(self._function, messages, draw)
        if self._config.responses:
            return _message(self._config.responses[draw % len(self._config.responses)])
        return _message(f"mock answer {draw} to: {prompt[:_ECHOED_CHARACTERS]}")

    async def _called(self, function: Responder, messages: Sequence[Message], draw: int) -> Message:
        with boundary(GenerationError, f"mock function {self._config.function_path!r}"):
            said = function(messages, draw)
            if inspect.isawaitable(said):
                said = await said
        if isinstance(said, Message):
            return said
        if isinstance(said, str):
            return _message(said)
        raise GenerationError(
            f"mock function {self._config.function_path!r} returned a {type(said).__name__}; return a str or a Message."
        )


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"`generation.mock.rules` has the pattern {pattern!r}, not a regular expression: {error}. Correct it."
        ) from None


def _as_list(response: str | list[str]) -> list[str]:
    responses = [response] if isinstance(response, str) else response
    if not responses:
        raise ConfigError("`generation.mock.rules` has a rule with no response. Give it one, or a list of them.")
    return responses


def _loaded(path: str | None) -> Responder | None:
    if path is None:
        return None
    try:
        return load_function(path)
    except ImportError as error:
        raise ConfigError(f"`generation.mock.function_path`: {error}") from error


def _filled(template: str, match: re.Match[str]) -> str:
    r"""`template` with what was captured; other backslashes stay, so that `\boxed{\1}` means what it says."""

    def captured(reference: re.Match[str]) -> str:
        group: int | str = int(reference[1]) if reference[1] else reference[2]
        try:
            return match[group] or ""
        except IndexError:
            raise ConfigError(
                f"`generation.mock.rules`: the response {template!r} refers to {reference[0]!r}, which the pattern "
                f"{match.re.pattern!r} does not capture. Add the group, or take the reference out."
            ) from None

    return _CAPTURED.sub(captured, template)


def _last_user_text(messages: Sequence[Message]) -> str:
    users = [message for message in messages if message.role == "user"] or list(messages)
    return users[-1].text if users else ""


def _message(text: str) -> Message:
    return Message(role="assistant", content=text)


def _words(message: Message) -> int:
    return len(message.text.split())


def _cut(message: Message, most: int | None) -> tuple[Message, bool]:
    """The message, cut after `most` words where it has more, and whether it was."""
    if most is None or _words(message) <= most:
        return message, False
    last = next(islice(_WORD.finditer(message.text), most - 1, None))
    return message.model_copy(update={"content": message.text[: last.end()]}), True


def _with_usage_once(results: list[Completion | Failure], usage: Usage) -> list[Completion | Failure]:
    """The request's usage on the first completion and on no other."""
    told: Usage | None = usage
    shared: list[Completion | Failure] = []
    for result in results:
        if isinstance(result, Completion):
            shared.append(result.model_copy(update={"usage": told}))
            told = None
        else:
            shared.append(result)
    return shared
