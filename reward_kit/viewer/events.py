# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: changes of a run as long as a page listens, and a search until it is done or nobody listens."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream

from reward_kit.viewer.json_answers import as_json
from reward_kit.viewer.opened import OpenedRun, Progress
from reward_kit.viewer.problems import ViewerError
from reward_kit.viewer.queries import Database, Interrupted, Query
from reward_kit.viewer.wire import Change

__all__ = ["change_of", "changes", "from_thread"]

_LOOK_EVERY, _LIFE_EVERY = 0.5, 5.0
"""Seconds between two looks at the file, and between two signs of life."""
_AHEAD = 16
"""Events that may wait for a slow page."""


def event(value: Any, name: str = "message") -> bytes:
    """One event. A line break inside JSON is escaped, so the data is one line."""
    return b"event: " + name.encode() + b"\ndata: " + as_json(value) + b"\n\n"


def problem(error: ViewerError) -> bytes:
    """A problem as the last event."""
    return event({"error": {"code": error.code, "message": str(error)}}, "problem")


def change_of(progress: Progress) -> Change:
    """What a page is told of a run."""
    return Change(
        version=progress.version,
        records=progress.records,
        judged=progress.judged,
        failed=progress.records - progress.judged,
        mean=progress.mean,
        expected=progress.expected,
        live=progress.live,
        gone=progress.gone,
    )


async def changes(run: OpenedRun, threads: anyio.CapacityLimiter) -> AsyncIterator[bytes]:
    """What becomes of a run, for as long as somebody listens."""
    last: Progress | None = None
    told_at = 0.0
    while True:
        try:
            found = await anyio.to_thread.run_sync(run.progress, limiter=threads)
        except ViewerError as error:
            yield problem(error)
            return
        now = time.monotonic()
        if found != last or now - told_at >= _LIFE_EVERY:
            yield event(change_of(found))
            last, told_at = found, now
        await anyio.sleep(_LOOK_EVERY)


async def from_thread(
    database: Database, work: Callable[[Query], Iterator[Any]], threads: anyio.CapacityLimiter
) -> AsyncIterator[bytes]:
    """The events that a thread makes; it is ended when nobody listens any more."""
    send, receive = anyio.create_memory_object_stream[bytes](_AHEAD)
    with database.query() as query:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_work, query, work, send, threads)
            try:
                async with receive:
                    async for made in receive:
                        yield made
            finally:
                query.end()
                tasks.cancel_scope.cancel()


async def _work(
    query: Query,
    work: Callable[[Query], Iterator[Any]],
    send: MemoryObjectSendStream[bytes],
    threads: anyio.CapacityLimiter,
) -> None:
    """Step through the work on threads, one event at a time: between two of them it can be ended."""
    steps = work(query)
    lock = threading.Lock()

    def step() -> bytes | None:
        with lock:
            found = next(steps, None)
            return None if found is None else event(found)

    async with send:
        with contextlib.suppress(anyio.BrokenResourceError):
            try:
                while (made := await anyio.to_thread.run_sync(step, limiter=threads)) is not None:
                    await send.send(made)
            except Interrupted:
                return
            except ViewerError as error:
                await send.send(problem(error))
