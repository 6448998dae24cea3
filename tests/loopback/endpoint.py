# SPDX-License-Identifier: Apache-2.0
"""The endpoint of `tests.generation.loopback` in a thread of its own, for tests that block or start processes."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.generation.loopback import Loopback, Reaction, Says, answer, loopback

React = Callable[[dict[str, Any], int], Reaction]


@contextmanager
def serving(react: React) -> Iterator[Loopback]:
    """Serve until the block ends, whatever the calling thread does meanwhile."""
    started = threading.Event()
    served: list[Loopback] = []
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        leave = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(leave.set))
        async with loopback(react) as endpoint:
            served.append(endpoint)
            started.set()
            await leave.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="loopback", daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield served[0]
    finally:
        stop[0]()
        thread.join(10)


def prompt_of(body: dict[str, Any]) -> str:
    """The last user turn of a request."""
    return str(
        next(turn["content"] for turn in reversed(body.get("messages") or body["input"]) if turn["role"] == "user")
    )


def text_for(body: dict[str, Any], choice: int = 0) -> str:
    """What the honest model answers: something else for every prompt, seed and choice, and always the same for each."""
    asked = f"{prompt_of(body)}|{body.get('seed')}|{choice}"
    return f"{prompt_of(body)} → {hashlib.sha256(asked.encode()).hexdigest()[:8]}"


def honest(body: dict[str, Any], _: int) -> Says:
    """An endpoint that does what it is asked, `n` included."""
    return answer(*[text_for(body, choice) for choice in range(body.get("n", 1))])


def asked_twice(requests: list[dict[str, Any]]) -> dict[tuple[str, Any], int]:
    """Prompts and seeds that were paid for more than once, with how often."""
    counts = Counter((prompt_of(body), body.get("seed")) for body in requests)
    return {key: count for key, count in counts.items() if count > 1}
