"""Event loops for code that is not asynchronous.

run_sync           one coroutine to its end, also where a loop is already running (a notebook)
background_loop    a loop that stays, in a thread of its own, for callers that come again and again

`asyncio` is imported where it is used: a worker process, which has no loop, is ready sooner without it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = ["background_loop", "new_loop", "run_sync"]

T = TypeVar("T")


def run_sync(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main()` to its end on a fresh event loop (uvloop where there is one) and return what it returns."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_here(main)
    return _run_in_a_thread(main)


def _run_here(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    import asyncio

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main())


def _run_in_a_thread(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    outcome: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(_run_here(main))
        except BaseException as error:  # noqa: BLE001 - handed over to the calling thread, whatever it is
            errors.append(error)

    thread = threading.Thread(target=target, name="reward-kit")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]


def new_loop() -> asyncio.AbstractEventLoop:
    """A fresh event loop, of the kind that `run_sync` uses."""
    import asyncio

    factory = _loop_factory()
    return asyncio.new_event_loop() if factory is None else factory()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # twice the requests a second of the loop in the standard library

    return uvloop.new_event_loop


# ── the loop in the background ───────────────────────────────────────────────────────────────────────────────────────


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
