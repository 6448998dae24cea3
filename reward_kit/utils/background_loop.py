"""One event loop a process, in a daemon thread of its own, for synchronous callers that come again and again.

What lives on a loop (a worker pool, an HTTP session) outlives the call that made it, which a loop made for that call
would not allow. A forked child has no such thread, and is given a loop of its own when it asks.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import NamedTuple

from reward_kit.utils.event_loop import new_loop

__all__ = ["background_loop"]


class _Running(NamedTuple):
    loop: asyncio.AbstractEventLoop
    process: int


_lock = threading.Lock()
_running: _Running | None = None


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop that runs in the background of this process."""
    global _running  # noqa: PLW0603 - one a process is what it is
    with _lock:
        if _running is None or _running.process != os.getpid():
            loop = new_loop()
            threading.Thread(target=loop.run_forever, name="reward-kit loop", daemon=True).start()
            _running = _Running(loop, os.getpid())
        return _running.loop


def _forget_after_fork() -> None:
    """Whoever held the lock is not in the child."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
