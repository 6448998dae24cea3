# SPDX-License-Identifier: Apache-2.0
"""The mock model: a client without a model, for trying a pipeline and for your own tests.

    rules (a regular expression on the last user turn) → script → function → scripted answers → an echo

The first that applies answers. `script` is a file as `reward-kit mock serve` takes it. The same prompt and draw give
the same answer in every process, so a run against the mock can be asserted on:

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_kit.config_models import MockConfig, Sampling
from reward_kit.errors import GenerationError, ProviderError
from reward_kit.generation.mock_script import (
    ScriptedAnswer,
    called,
    compiled_rule,
    cut_after,
    echo_of,
    ended_before,
    last_user_text,
    read_script,
    responder_at,
    words_of,
)
from reward_kit.generation.wire import ended_by
from reward_kit.models import Completion, Failure, Message, Usage
from reward_kit.utils.module_loader import source_digest

__all__ = ["MockModelClient"]

_RULES = "`generation.mock.rules`"


class MockModelClient:
    """A model that says what its configuration tells it to.

    Tokens are counted as words; `max_tokens` cuts an answer after that many words. With nothing configured, the answer
    is `mock answer {draw} to: {prompt}`. Every `fail_every`-th answer asked of this client is a retryable failure.
    """

    def __init__(self, config: MockConfig | None = None, model: str = "mock") -> None:
        """Check the configuration: a pattern that does not compile or a path that does not load is a `ConfigError`."""
        self.model = model
        self._config = config or MockConfig()
        self._rules = [compiled_rule(rule.pattern, rule.response, _RULES) for rule in self._config.rules]
        self._script = read_script(self._config.script)
        self._function = responder_at(self._config.function_path, "generation.mock.function_path")
        self._asked = 0
        told = self._config.model_dump_json(exclude={"latency_ms", "fail_every", "script"})
        digest = hashlib.sha256(told.encode())
        if self._config.script is not None:
            digest.update(Path(self._config.script).read_bytes())
        for function in (self._function, self._script.function):
            if function is not None:
                digest.update(source_digest(function).encode())
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
        return _with_usage_once(results, Usage(prompt_tokens=sum(map(words_of, messages)), completion_tokens=spent))

    async def close(self) -> None:
        """Does nothing: a mock holds no connection."""

    async def _answer(self, messages: Sequence[Message], draw: int, sampling: Sampling) -> Completion | Failure:
        self._asked += 1
        if self._config.fail_every and self._asked % self._config.fail_every == 0:
            planned = ProviderError(f"The mock model fails every {self._config.fail_every}th answer, as configured.")
            return Failure.of(planned, "generate")
        try:
            said = await self._find_answer(messages, draw)
            message, given = (said.message(), said.finish_reason) if isinstance(said, ScriptedAnswer) else (said, None)
            given = ended_by({"finish_reason": given}) if given is not None else None
        except GenerationError as error:
            return Failure.of(error, "generate")
        message, _ = ended_before(message, sampling.stop)
        message, cut = cut_after(message, sampling.max_tokens)
        reason = given or ("length" if cut else "tool_calls" if message.tool_calls else "stop")
        usage = Usage(completion_tokens=words_of(message))
        return Completion(message=message, finish_reason=reason, usage=usage, latency_ms=self._config.latency_ms)

    async def _find_answer(self, messages: Sequence[Message], draw: int) -> Message | ScriptedAnswer:
        prompt = last_user_text(messages)
        by_rule = (rule.answer(prompt, draw, self.model) for rule in self._rules)
        found = next((answer for answer in by_rule if answer is not None), None)
        if found is None and self._config.script is not None:
            found = self._script.scripted(messages, draw, self.model)
        if found is not None:
            return found
        for function in (self._script.function, self._function):
            if function is not None:
                return await called(function, messages, draw, f"mock function {self._config.function_path!r}")
        if self._config.responses:
            return ScriptedAnswer(content=self._config.responses[draw % len(self._config.responses)])
        return Message(role="assistant", content=echo_of(messages, draw))


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
