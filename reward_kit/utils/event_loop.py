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
from contextvars import Context, ContextVar, copy_context
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

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

    with asyncio.Runner(loop_factory=_lasting_loop) as runner:
        loop: Any = runner.get_loop()
        begun: list[asyncio.Task[T]] = []

        async def work() -> T:
            begun.extend(task for task in [asyncio.current_task()] if task is not None)
            try:
                return await main()
            finally:
                loop.may_end = True

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


def _lasting_loop() -> asyncio.AbstractEventLoop:
    _note_threads()
    return _lasting()()


@cache
def _lasting() -> type[asyncio.AbstractEventLoop]:
    """A kind of loop which nobody ends, such as a reward that thinks it is its own, before `may_end`.

    Who tries is told so, and noted; a callback, or a thread, which nobody would hear, does nothing.
    """
    import asyncio

    class Lasting(_kind_of_loop()):  # type: ignore[misc]
        may_end = False

        def stop(self) -> None:
            super().stop() if self.may_end else self._refuse()

        async def shutdown_asyncgens(self) -> None:
            await super().shutdown_asyncgens() if self.may_end else self._refuse()

        async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
            await super().shutdown_default_executor(*args, **kwargs) if self.may_end else self._refuse()

        def run_in_executor(self, executor: Any, function: Any, *args: Any) -> Any:
            return super().run_in_executor(executor, copy_context().run, function, *args)

        def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
            if context is None and CODE_OF_OTHERS.get() is None and (code := _code_here()) is not None:
                context = copy_context()
                context.run(CODE_OF_OTHERS.set, code)
            return super().call_soon_threadsafe(callback, *args, context=context)

        def _refuse(self) -> None:
            if (code := _code_here()) is not None:
                _tried.add(code)
            if asyncio._get_running_loop() is self and asyncio.current_task(self) is not None:
                raise RuntimeError("This event loop has other work, and cannot be stopped. Return, or raise, instead.")

    return Lasting


# ── whose thread it is ───────────────────────────────────────────────────────────────────────────────────────────────

_threads: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The code of others that has started a thread, for such threads: they do not begin with what their maker has."""


def _code_here() -> Any:
    """The code of others that runs here: in a task or callback, or in a thread that it has started."""
    code = CODE_OF_OTHERS.get()
    return code if code is not None else _threads.get(threading.current_thread())


@cache
def _note_threads() -> None:
    """Note whose code starts a thread, from now on. Before Python 3.14 nothing else tells."""
    start = threading.Thread.start

    @wraps(start)
    def noted(thread: threading.Thread) -> None:
        if (code := _code_here()) is not None:
            _threads[thread] = code
        start(thread)

    threading.Thread.start = noted  # type: ignore[assignment, method-assign]


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

    return _kind_of_loop()()


def _kind_of_loop() -> type[asyncio.AbstractEventLoop]:
    if sys.platform == "win32":
        import asyncio

        return asyncio.ProactorEventLoop
    import uvloop  # twice the requests per second of the loop in the standard library

    return uvloop.Loop


# ── the loop in the background ───────────────────────────────────────────────────────────────────────────────────────


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop that runs in a daemon thread of this process; a forked child is given one of its own when it asks.

    What lives on a loop (a worker pool, an HTTP session) outlives the call that made it, which a loop made for that
    call would not allow.
    """
    return _background.get()


def _start_in_a_thread() -> asyncio.AbstractEventLoop:
    loop = _lasting_loop()
    threading.Thread(target=_run_for_good, args=(loop,), name="reward-kit loop", daemon=True).start()
    return loop


def _run_for_good(loop: asyncio.AbstractEventLoop) -> None:
    while not loop.is_closed():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            _log.warning(_GOES_ON, error)


_background = PerProcess(_start_in_a_thread)
