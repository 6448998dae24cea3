# SPDX-License-Identifier: Apache-2.0
"""What has happened in an episode so far, and when and how it ends."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from reward_kit.agent.calls import BAD_CALLS
from reward_kit.agent.environment import Answer
from reward_kit.config_models import AgentConfig, Price
from reward_kit.generation.prices import cost_of, spending
from reward_kit.generation.usage import summed, used_by
from reward_kit.models import Completion, Ended, Message, Sample, Step, Tokens, ToolUse
from reward_kit.utils.trusted import trusted

__all__ = ["Limits", "Transcript", "digest_of", "was_cut_off"]

_step = trusted(Step)


class Transcript:
    """The turns and steps of one episode. It only ever grows, and each message is in it once."""

    def __init__(self, sample: Sample, price: Price | None) -> None:
        """Nothing has happened yet."""
        self.conversation: list[Message] = [*sample.messages]
        """What the model is sent: the sample's messages, then the turns."""
        self._asked = len(self.conversation)
        self.steps: list[Step] = []
        self._price = price
        self._state: str | None = None
        self._shown: Sequence[Message] = self.conversation[:]
        self.model: str | None = None
        self.bad_calls = 0
        """Wrong calls of the model, one after another, up to now."""
        self.tool_calls = 0
        self.answer_tokens = 0
        self.context_tokens = 0
        """What the last request had, prompt and answer together, by the endpoint's own count."""
        self.worth = 0.0
        """What the answers would cost if none came from the cache."""
        self.seconds_before = 0.0
        self.began = time.monotonic()
        self._pending: Completion | None = None
        self.tools: list[dict[str, Any]] = []
        """The tools that the model was offered last."""
        self._new_tools: list[dict[str, Any]] | None = None
        self._token_ids: list[int] = []
        self.opening: dict[str, Any] | None = None
        """What the world began with, beside messages."""

    @property
    def turns(self) -> list[Message]:
        """What the episode added to the sample's messages."""
        return self.conversation[self._asked :]

    @property
    def seconds(self) -> float:
        """How long the episode has taken, in this entry and those before."""
        return self.seconds_before + time.monotonic() - self.began

    def open(self, answer: Answer) -> None:
        """What the world showed before the first turn."""
        if answer.messages:
            self.conversation += answer.messages
            self._shown = [*self._shown, *answer.messages]
        self._state = answer.state
        told = {"state": answer.state, "reward": answer.reward, "noted": answer.noted}
        self.opening = {name: value for name, value in told.items() if value is not None} or None

    def reply(self, completion: Completion, tools: list[dict[str, Any]] | None = None) -> None:
        """The model has spoken, having been offered other `tools` than before, where some are given."""
        self._pending, self._new_tools = completion, tools
        self.tools = self.tools if tools is None else tools
        self.conversation.append(completion.message)
        self.model = completion.model or self.model
        usage = completion.usage
        if usage is not None and not usage.at_most:
            self.answer_tokens += usage.completion_tokens
            self.context_tokens = usage.prompt_tokens + usage.completion_tokens
        if usage is not None and self._price is not None:
            self.worth += cost_of(usage, self._price)

    def answer(self, answer: Answer, uses: Sequence[ToolUse]) -> None:
        """The world has answered what the model said last: that makes a step."""
        completion = self._pending
        if completion is None:
            raise AssertionError("the world answers what the model said")
        self.steps.append(
            _step(
                turn=len(self.conversation) - 1 - self._asked,
                reward=answer.reward,
                state=self._state or digest_of(self._shown),
                calls=[*uses],
                usage=completion.usage if completion.retried is None else summed(used_by(completion)),
                cost=self._cost(completion, answer.cost),
                latency_ms=completion.latency_ms,
                finish_reason=completion.finish_reason,
                cached=completion.cached,
                tokens=self._new_tokens(completion.tokens),
                tools=self._new_tools,
                noted=answer.noted,
            )
        )
        self._pending = None
        self._shown, self._state = answer.messages, answer.state
        self.conversation += answer.messages
        self.tool_calls += len(uses)
        for use in uses:
            self.bad_calls = self.bad_calls + 1 if use.error in BAD_CALLS else 0

    def _new_tokens(self, tokens: Tokens | None) -> Tokens | None:
        """The tokens of a step without those of the prompt that earlier steps hold: each is written down once.

        Where a prompt does not go on from what came before (an endpoint that renders it anew), it is whole, and says
        so. `recorded.with_whole_prompts` is the way back.
        """
        if tokens is None or tokens.prompt_ids is None:
            return tokens
        known, prompt = len(self._token_ids), tokens.prompt_ids
        continues = prompt[:known] == self._token_ids
        self._token_ids = [*prompt, *(tokens.ids or ())]
        return tokens.model_copy(update={"prompt_ids": prompt[known:]} if continues else {"whole_prompt": True})

    def _cost(self, completion: Completion, of_the_world: float) -> float | None:
        if completion.cached:
            return of_the_world
        used = used_by(completion)
        cost = spending(used, self._price)
        return None if cost is None else of_the_world + cost


def digest_of(shown: Sequence[Message]) -> str:
    """What the world showed, in sixteen digits: the state's name where the world gives none."""
    digest = hashlib.blake2b(digest_size=8)
    for message in shown:
        content = message.content
        digest.update(message.role.encode())
        digest.update((content if isinstance(content, str) else repr(content)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class _Limit(NamedTuple):
    """A limit of episodes: how an episode is said to have ended by it, how far one has come, and how far it may."""

    name: Ended
    reached: Callable[[Transcript], float]
    allowed: Callable[[AgentConfig], float | None]


_LIMITS = (
    _Limit("max_turns", lambda episode: len(episode.steps), lambda config: config.max_turns),
    _Limit("max_tool_calls", lambda episode: episode.tool_calls, lambda config: config.max_tool_calls),
    _Limit("bad_calls", lambda episode: episode.bad_calls, lambda config: config.max_bad_calls),
    _Limit("max_tokens", lambda episode: episode.answer_tokens, lambda config: config.max_tokens),
    _Limit("context", lambda episode: episode.context_tokens, lambda config: config.max_context_tokens),
    _Limit("money", lambda episode: episode.worth, lambda config: config.max_cost),
    _Limit("timeout", lambda episode: episode.seconds, lambda config: config.max_seconds),
)
_BY_A_LIMIT = frozenset(limit.name for limit in _LIMITS)


class Limits:
    """When and how an episode ends: by the model's own word, by the world's, or because it has gone on long enough."""

    def __init__(self, config: AgentConfig) -> None:
        """By the settings of the run."""
        self._stop = re.compile(config.stop_pattern) if config.stop_pattern else None
        self._stop_tools = frozenset(config.stop_tools)
        bounds = ((limit, limit.allowed(config)) for limit in _LIMITS)
        self._bounds = [(limit.name, limit.reached, most) for limit, most in bounds if most is not None]

    def reached(self, transcript: Transcript) -> Ended | None:
        """Which limit keeps the model from acting again, if any does."""
        return next((name for name, reached, most in self._bounds if reached(transcript) >= most), None)

    def end_of(self, message: Message, answer: Answer) -> Ended | None:
        """How the turn in which the world gave this answer to the message ended the episode, if it did."""
        if self._stops(message):
            return "stopped"
        if not answer.done:
            return None
        return "done" if message.tool_calls or answer.messages or answer.reward is not None else "answered"

    def _stops(self, message: Message) -> bool:
        """Whether the model itself ended the episode, by a text or a tool that means so."""
        if self._stop is not None and self._stop.search(message.text):
            return True
        tools = self._stop_tools
        return bool(tools and message.tool_calls and any(call.function.name in tools for call in message.tool_calls))


def was_cut_off(ended: Ended | None, transcript: Transcript) -> bool:
    """Whether an episode was kept from going on: by a limit, in the middle of its last answer, or by nobody's word."""
    last = transcript.steps[-1].finish_reason if transcript.steps else None
    return ended is None or ended in _BY_A_LIMIT or last == "length"
