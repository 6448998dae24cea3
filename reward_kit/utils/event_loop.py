# SPDX-License-Identifier: Apache-2.0
"""Event loops for code that is not asynchronous.

run_sync           one coroutine to its end, also where a loop is already running (a notebook)
background_loop    a loop that stays, in a thread of its own, for callers that come again and again

Nobody ends such a loop, or a part of it, but who made it: CODE_OF_OTHERS says whose code runs, and `tried_to_end`
whether that has tried.

`asyncio` is imported where it is used: a worker process, which has no loop, is ready sooner without it.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from reward_kit.utils.per_process import PerProcess

if TYPE_CHECKING:
    import asyncio

__all__ = ["CODE_OF_OTHERS", "background_loop", "new_loop", "run_sync", "tried_to_end"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

CODE_OF_OTHERS: ContextVar[Any] = ContextVar("CODE_OF_OTHERS", default=None)
"""The coroutine of others that runs here, and in the tasks and callbacks that it leaves."""
_tried: WeakSet[Any] = WeakSet()
"""Those that have tried to end their loop."""


def tried_to_end(code: Any) -> bool:
    """Whether a coroutine that was CODE_OF_OTHERS, or a task or callback of its, has tried to end the loop."""
    return len(_tried) > 0 and code in _tried


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
        loop = runner.get_loop()
        end = _keep_going(loop)
        begun: list[asyncio.Task[T]] = []

        async def work() -> T:
            begun.extend(task for task in [asyncio.current_task()] if task is not None)
            try:
                return await main()
            finally:
                end()

        try:
            return runner.run(work())
        except (SystemExit, KeyboardInterrupt, RuntimeError) as error:
            return _to_the_end(loop, begun, error)


def _to_the_end(loop: asyncio.AbstractEventLoop, begun: list[asyncio.Task[T]], error: BaseException) -> T:
    """What the work returns, although something else that runs on its loop has ended that; or its error.

    A callback or a task of a reward's own can: it raises SystemExit, or knows how to stop a loop behind our back.
    """
    import asyncio

    while begun and not begun[0].done():
        if isinstance(error, KeyboardInterrupt):
            begun[0].cancel()
        else:
            _log.warning(_GOES_ON, error)
        try:
            loop.run_until_complete(begun[0])
        except (SystemExit, KeyboardInterrupt, RuntimeError, asyncio.CancelledError) as another:
            if not begun[0].done():
                error = another
    if isinstance(error, KeyboardInterrupt) or not begun:
        raise error
    return begun[0].result()


_GOES_ON = "Something that a reward, or other code of yours, left behind tried to end the event loop, which goes on: %r"


def _keep_going(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Have nobody end the loop, such as a reward that thinks it is its own, until what this returns is called.

    Who tries is told so, and noted; a callback, which nobody would hear, does nothing.
    """
    import asyncio

    ended = threading.Event()
    stop, close_generators, close_executor = loop.stop, loop.shutdown_asyncgens, loop.shutdown_default_executor

    def refuse() -> None:
        code = CODE_OF_OTHERS.get()
        if code is not None:
            _tried.add(code)
        if asyncio.current_task(loop) is not None:
            raise RuntimeError("This event loop has other work, and cannot be stopped. Return, or raise, instead.")

    def stop_at_the_end() -> None:
        stop() if ended.is_set() else refuse()

    async def close_generators_at_the_end() -> None:
        await close_generators() if ended.is_set() else refuse()

    async def close_executor_at_the_end(*args: Any, **kwargs: Any) -> None:
        await close_executor(*args, **kwargs) if ended.is_set() else refuse()

    loop.stop = stop_at_the_end  # type: ignore[method-assign]
    loop.shutdown_asyncgens = close_generators_at_the_end  # type: ignore[method-assign]
    loop.shutdown_default_executor = close_executor_at_the_end  # type: ignore[method-assign]
    return ended.set


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
    import uvloop  # twice the requests per second of the loop in the standard library

    return uvloop.new_event_loop


# ── the loop in the background ───────────────────────────────────────────────────────────────────────────────────────


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop that runs in a daemon thread of this process; a forked child is given one of its own when it asks.

    What lives on a loop (a worker pool, an HTTP session) outlives the call that made it, which a loop made for that
    call would not allow.
    """
    return _background.get()


def _start_in_a_thread() -> asyncio.AbstractEventLoop:
    loop = new_loop()
    _keep_going(loop)
    threading.Thread(target=_run_for_good, args=(loop,), name="reward-kit loop", daemon=True).start()
    return loop


def _run_for_good(loop: asyncio.AbstractEventLoop) -> None:
    while not loop.is_closed():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            _log.warning(_GOES_ON, error)


_background = PerProcess(_start_in_a_thread)
