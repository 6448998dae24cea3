# SPDX-License-Identifier: Apache-2.0
"""`chat`: ask a model once, from a script, a notebook or a reward; `chat_async` for code that awaits.

    from reward_kit import chat

    print(chat("What is the capital of France?", "gpt-4o-mini").text)

Requests are made on an event loop of their own, in a thread. So `chat` works where a loop is running already, and
connections stay open from one call to the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from pydantic import ValidationError

from reward_kit.config_models import ModelConfig, validated
from reward_kit.errors import ConfigError, GenerationError
from reward_kit.generation.cache.responses import CachedClient, ResponseCache
from reward_kit.generation.client import ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.models import Completion, Failure, Message
from reward_kit.utils.event_loop import new_loop
from reward_kit.utils.per_process import PerProcess

__all__ = ["Prompted", "chat", "chat_async"]

_MOST_CLIENTS = 16
"""Kept open at a time, by their settings."""
_END_SECONDS = 5.0

Prompted: TypeAlias = str | Sequence[Message | Mapping[str, Any]]
"""A question, or a conversation."""


def chat(
    prompt: Prompted, model: str, *, tools: list[dict[str, Any]] | None = None, draw: int = 0, **settings: Any
) -> Completion:
    """The model's answer to a question, or to a conversation.

    `model` is named as in a config: a model of the endpoint, `local`, or `mock`. `settings` are further keys of the
    config's `generation`, such as `api_base`, `temperature` or `max_tokens`. With `cache={"enabled": True}` an answer
    that was paid for is not paid for again; another `draw` is another answer. If there is no answer, a
    `GenerationError` is raised.

    >>> chat("2 + 2?", "mock", mock={"responses": ["It is 4."]}).text
    'It is 4.'
    """
    future = _started(prompt, model, tools, draw, settings)
    try:
        return future.result()
    except BaseException:  # such as Ctrl-C: the request is of no use any more
        future.cancel()
        raise


async def chat_async(
    prompt: Prompted, model: str, *, tools: list[dict[str, Any]] | None = None, draw: int = 0, **settings: Any
) -> Completion:
    """`chat` for callers that are asynchronous themselves: other tasks of their loop go on meanwhile."""
    return await asyncio.wrap_future(_started(prompt, model, tools, draw, settings))


def _started(
    prompt: Prompted, model: str, tools: list[dict[str, Any]] | None, draw: int, settings: Mapping[str, Any]
) -> Future[Completion]:
    """The request under way. What is wrong with what was given is raised here."""
    config = validated(ModelConfig, {"model_name": model, **settings}, "The call of chat", section="generation")
    messages = _messages(prompt)
    return _desks.get().submit(config, messages, tools, draw)


def _messages(prompt: Prompted) -> list[Message]:
    turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    try:
        messages = [Message.model_validate(turn) for turn in turns]
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"]
        raise ConfigError(f"The prompt is not a conversation: {said}. Give a text, or messages.") from None
    if not messages:
        raise ConfigError("The prompt has no messages. Give a text, or messages.")
    return messages


class _Desk:
    """The loop that requests are made on, and the clients that are open on it."""

    def __init__(self) -> None:
        self._loop = new_loop()
        self._clients: dict[str, ModelClient] = {}
        self._in_use: Counter[str] = Counter()
        self._caches: dict[str, ResponseCache] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="reward-kit chat", daemon=True)
        self._thread.start()

    def submit(
        self, config: ModelConfig, messages: list[Message], tools: list[dict[str, Any]] | None, draw: int
    ) -> Future[Completion]:
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "`chat` was called on the event loop that it has to wait for. Use `await chat_async(…)` here."
            )
        return self._run(self._ask(config, messages, tools, draw))

    def close(self) -> None:
        with contextlib.suppress(TimeoutError):
            self._run(self._close_all()).result(_END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _ask(
        self, config: ModelConfig, messages: list[Message], tools: list[dict[str, Any]] | None, draw: int
    ) -> Completion:
        async with self._client_for(config) as client:
            (answer,) = await client.generate(messages, draws=[draw], sampling=config.sampling(), tools=tools)
        if isinstance(answer, Failure):
            raise GenerationError(f"{client.model!r} gave no answer: {answer.message}", retryable=answer.retryable)
        return answer

    @contextlib.asynccontextmanager
    async def _client_for(self, config: ModelConfig) -> AsyncIterator[ModelClient]:
        """The client with these settings. It stays open afterwards; those that nobody used lately are closed."""
        given = config.api_key.get_secret_value() if config.api_key is not None else ""
        key = f"{config.model_dump_json(exclude={'api_key'})}\0{given}"
        client = self._clients.pop(key, None)
        if client is None:
            client = make_client(config)
            if "cache" in config.model_fields_set and config.cache.enabled is not False:
                client = CachedClient(client, self._cache(config.cache.cache_dir), config.cache)
        self._clients[key] = client  # the latest is last
        self._in_use[key] += 1
        try:
            yield client
        finally:
            self._in_use[key] -= 1
        idle = [each for each in self._clients if not self._in_use[each]]
        for each in idle[: max(0, len(self._clients) - _MOST_CLIENTS)]:
            await self._clients.pop(each).close()

    def _cache(self, directory: str) -> ResponseCache:
        if directory not in self._caches:
            self._caches[directory] = ResponseCache(directory)
        return self._caches[directory]

    async def _close_all(self) -> None:
        for client in self._clients.values():
            await client.close()
        for cache in self._caches.values():
            cache.close()


_desks = PerProcess(_Desk, _Desk.close)
