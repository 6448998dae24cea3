# SPDX-License-Identifier: Apache-2.0
"""The response cache: an answer that was paid for is never paid for again.

    CachedClient.generate(messages, draws=[0, 1, 2])
        │  key of each draw = sha256(everything that determines the answer, the draw included)
        ├─ in the cache       → returned, with cached=True
        ├─ already being asked → waited for
        └─ the rest           → one call of the inner client; completions are stored, failures are not

Because the draw is part of the key, n variants stay n different variants at any temperature, and repeat for free.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import orjson

from reward_kit.config_models import CacheConfig, Sampling
from reward_kit.errors import StorageError
from reward_kit.generation.cache.entries import (
    ADVICE,
    CACHE_SCHEMA,
    EntryFile,
    created_at,
    decode_entry,
    encode_entry,
    entries_path,
)
from reward_kit.generation.cache.sharing import asks_who_answers, key_identity
from reward_kit.generation.client import model_facts_of
from reward_kit.generation.commons import commons
from reward_kit.generation.wire import speaker
from reward_kit.models import Completion, Failure, Message
from reward_kit.redaction import without_secrets
from reward_kit.utils.batcher import Batcher

if TYPE_CHECKING:
    from reward_kit.generation.client import ModelClient

__all__ = ["CachedClient", "Earlier", "RequestKeys", "ResponseCache", "cached", "draw_key", "request_key"]

_log = logging.getLogger(__name__)

_Asking: TypeAlias = "Awaitable[list[Completion | Failure]]"
_Awaited: TypeAlias = "asyncio.Future[Completion | Failure | None]"


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class RequestKeys:
    """Keys of requests that differ only in what they ask: the rest is written down once."""

    def __init__(self, identity: Mapping[str, Any], sampling: Sampling) -> None:
        """Take what all requests have in common."""
        self._speaker = speaker(identity)
        self.sampling = sampling
        """With which sampling, the very object."""
        self._before = b'{"identity":%b,"messages":' % _canonical(without_secrets(dict(identity)))
        self._between = b',"sampling":%b,"schema":%d,"tools":' % (
            _canonical(without_secrets(sampling.given())),
            CACHE_SCHEMA,
        )

    def of(self, messages: Sequence[Message], tools: list[dict[str, Any]] | None, sample_id: str = "") -> bytes:
        """The digest of everything the draws of one request have in common.

        A sample's id determines the answer only where there is a seed, because each sample's own is derived from both.
        Without one, the same prompt under another id is the same request.
        """
        prompt = _canonical([message.as_request(self._speaker) for message in messages])
        seeded = b"" if self.sampling.seed is None else b',"sample_id":%b' % _canonical(sample_id)
        offered = b"null" if tools is None else _canonical(tools)
        return hashlib.sha256(b"%b%b%b%b%b}" % (self._before, prompt, seeded, self._between, offered)).digest()


def request_key(
    identity: Mapping[str, Any],
    messages: Sequence[Message],
    tools: list[dict[str, Any]] | None,
    sampling: Sampling,
    sample_id: str = "",
) -> bytes:
    """The key of a single request."""
    return RequestKeys(identity, sampling).of(messages, tools, sample_id)


def draw_key(request: bytes, draw: int) -> str:
    """The cache key of one draw of a request: 64 hex digits."""
    return hashlib.sha256(b"%b%d" % (request, draw)).hexdigest()


_is_digest = re.compile("[0-9a-f]{64}").fullmatch


def _as_digest(key: str) -> str:
    """A key as the file has it: 64 hex digits, which ours are already. Any other text is hashed."""
    return key if _is_digest(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # what orjson refuses and JSON allows: huge integers, unpaired surrogates, keys that are numbers
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()


# ── the store ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Earlier(NamedTuple):
    """Answers that somebody else had asked for, or this run in an earlier entry."""

    answers: int
    oldest: int
    """When the oldest was made, in Unix seconds."""
    newest: int


class ResponseCache:
    """Completions by key, in a file that several processes may use at once and that survives `kill -9`.

    What is put during one turn of the event loop is written together at its end, and found at once meanwhile. Only a
    compact index is kept in memory. Entries of other running processes are seen within a hundredth of a second. Meant
    for one thread; other threads and forked children open their own.
    """

    def __init__(self, cache_dir: Path | str, *, read_only: bool = False) -> None:
        """Open the cache in `cache_dir`, creating it. Raises StorageError when it cannot be written.

        With `read_only` nothing is created, and a cache that is not there reads as empty.
        """
        self.cache_dir = Path(cache_dir)
        path = entries_path(self.cache_dir.absolute())  # a reward may change the working directory
        self._file = EntryFile(path, read_only=read_only)
        self._unwritten: dict[str, tuple[Completion, str]] = {}
        self._writing = Batcher[str](self._write)
        self._read_only = read_only
        self._warned = False
        self._opened_at = int(time.time())
        self.earlier: Earlier | None = None
        """The answers that were found here and are older than this; None where there were none."""
        if read_only:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file.open()
        except OSError as error:
            raise StorageError(
                f"The cache directory {str(cache_dir)!r} cannot be written ({error.strerror}). {ADVICE}"
            ) from error

    def get(self, key: str) -> Completion | None:
        """The completion stored under `key`, any text, marked as cached; None when there is none that can be read."""
        key = _as_digest(key)
        if key in self._unwritten:
            return self._unwritten[key][0].model_copy(update={"cached": True})
        try:
            line = self._file.find(key)
        except (StorageError, OSError) as error:
            if not (self._read_only and isinstance(error.__cause__, FileNotFoundError)):  # nobody has written to it yet
                self._warn("read", error)
            return None
        found = None if line is None else decode_entry(line, key)
        if found is not None and line is not None and (created := created_at(line)) < self._opened_at:
            known = self.earlier or Earlier(0, created, created)
            self.earlier = Earlier(known.answers + 1, min(known.oldest, created), max(known.newest, created))
        return found

    def put(self, key: str, completion: Completion, *, model: str = "") -> None:
        """Store a completion; `model` is for `upkeep.info`. Where that fails, warn once: whoever asked has it."""
        key = _as_digest(key)
        self._unwritten[key] = (completion, model)
        self._writing.add(key)

    def flush(self) -> None:
        """Write what was put and is not written yet."""
        self._writing.flush()

    def _write(self, _: list[str]) -> None:
        put, self._unwritten = self._unwritten, {}
        now = int(time.time())
        lines: dict[str, bytes] = {}
        for key, (completion, model) in put.items():
            try:
                lines[key] = encode_entry(key, completion, model=model, created=now)
            except (ValueError, TypeError) as error:  # text that JSON cannot hold
                self._warn("written", error)
        try:
            if lines:
                self._file.append(lines)
        except (StorageError, OSError) as error:
            self._warn("written", error)

    def close(self) -> None:
        """Write what is left, and close the file."""
        self.flush()
        try:
            self._file.close()
        except StorageError as error:
            self._warn("written", error)

    def __enter__(self) -> Self:
        """Use the cache in a `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left, and close the file."""
        self.close()

    def _warn(self, what: str, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(
                "An answer could not be %s in the cache %r, and the run goes on without: %s",
                what,
                str(self.cache_dir),
                error,
            )


# ── the client ───────────────────────────────────────────────────────────────────────────────────────────────────────


class CachedClient:
    """A client that asks another one only for the draws nobody has paid for yet."""

    def __init__(self, inner: ModelClient, cache: ResponseCache, settings: CacheConfig | None = None) -> None:
        """Put `cache` before `inner`. Closing this client closes `inner`; the cache is its opener's to close.

        The settings say for whom answers are; without any, for everybody.
        """
        self.inner = inner
        self.cache = cache
        self._sharing = settings or CacheConfig(enabled=False)
        self._asks = asks_who_answers(inner.identity, self._sharing)
        self._key_identity = key_identity(inner.identity, self._sharing)
        self._asked: asyncio.Task[Mapping[str, Any]] | None = None
        self._keys: RequestKeys | None = None
        self._in_flight: dict[str, _Awaited | None] = {}
        """By key, what is being asked for now, with a future once somebody else waits for it too."""

    @property
    def model(self) -> str:
        """The name of the model that the inner client asks."""
        return self.inner.model

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the inner client's answers depend on: it is part of every cache key."""
        return self.inner.identity

    async def know_who_answers(self) -> None:
        """Where answers of a server of one's own are shared: ask it once which model it has, for the keys."""
        if not self._asks:
            return
        self._asked = self._asked or asyncio.create_task(model_facts_of(self.inner))
        told = await asyncio.shield(self._asked)
        if self._asks:
            self._key_identity = key_identity(self.inner.identity, self._sharing, told)
            self._keys, self._asks = None, False

    async def close(self) -> None:
        """Close the inner client."""
        await self.inner.close()

    def peek(
        self,
        messages: Sequence[Message],
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[bool]:
        """For each draw, whether it would come from the cache."""
        request = self._keys_for(sampling).of(messages, tools, sample_id)
        return [self.cache.get(draw_key(request, draw)) is not None for draw in draws]

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """One answer or failure per draw, in the order of `draws`; only what the cache lacks is asked for."""
        if self._asks:
            await self.know_who_answers()
        request = self._keys_for(sampling).of(messages, tools, sample_id)
        keys = {draw: draw_key(request, draw) for draw in draws}
        answers: dict[int, Completion | Failure] = {}
        while missing := self._look_up(keys, answers):
            awaited = {draw: self._awaited(key) for draw, key in missing.items() if key in self._in_flight}
            mine = {draw: key for draw, key in missing.items() if draw not in awaited} if awaited else missing
            if mine:
                await self._ask(
                    self.inner.generate(messages, draws=[*mine], sampling=sampling, tools=tools, sample_id=sample_id),
                    mine,
                    answers,
                )
            if not awaited:
                break
            await asyncio.wait(awaited.values())  # leaves the futures alone when this task is cancelled
            answers.update(_shared(awaited))
        return [answers[draw] for draw in draws]

    def _keys_for(self, sampling: Sampling) -> RequestKeys:
        if self._keys is None or self._keys.sampling is not sampling:
            self._keys = RequestKeys(self._key_identity, sampling)
        return self._keys

    def _look_up(self, keys: Mapping[int, str], answers: dict[int, Completion | Failure]) -> dict[int, str]:
        """Answer what the cache can answer; the draws that are left, with their keys."""
        missing = {}
        for draw, key in keys.items():
            if draw in answers:
                continue
            hit = self.cache.get(key)
            if hit is None:
                missing[draw] = key
            else:
                answers[draw] = hit
        return missing

    def _awaited(self, key: str) -> _Awaited:
        """What comes to the answer that another is asking for; to None when the asking was given up."""
        future = self._in_flight[key]
        if future is None:
            future = self._in_flight[key] = asyncio.get_running_loop().create_future()
        return future

    async def _ask(self, asking: _Asking, keys: Mapping[int, str], answers: dict[int, Completion | Failure]) -> None:
        """Have the inner client answer while whoever wants the same draws waits, and store the completions."""
        self._in_flight.update(dict.fromkeys(keys.values()))
        try:
            outcomes = await asking
            model = self.model
            for (draw, key), answer in zip(keys.items(), outcomes, strict=True):
                answers[draw] = answer
                if isinstance(answer, Completion):
                    self.cache.put(key, answer, model=model)
        finally:
            for draw, key in keys.items():
                waiting = self._in_flight.pop(key)
                if waiting is not None:
                    waiting.set_result(answers.get(draw))


@contextmanager
def cached(client: ModelClient, settings: CacheConfig) -> Iterator[ModelClient]:
    """The client behind the cache that the settings name; the client itself where they want none."""
    shared = commons()
    if settings.enabled is False:
        yield client
    elif shared is not None:
        with shared.cached(client, settings) as behind:
            yield behind
    else:
        with ResponseCache(settings.cache_dir) as cache:
            yield CachedClient(client, cache, settings)


def _shared(awaited: Mapping[int, _Awaited]) -> dict[int, Completion | Failure]:
    """What others asked for and got. A completion is marked as cached, and a failure is free: they paid for it."""
    answers = {draw: answer for draw, future in awaited.items() if (answer := future.result()) is not None}
    return {
        draw: answer.model_copy(update={"cached": True} if isinstance(answer, Completion) else {"spent": None})
        for draw, answer in answers.items()
    }
