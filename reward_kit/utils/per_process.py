# SPDX-License-Identifier: Apache-2.0
"""One of something per process, and what becomes of it when the process forks or ends.

    sandboxes = PerProcess(make=Sandboxes, close=Sandboxes.close, abandon=Sandboxes.let_go)
    sandboxes.get()       # made by the first call in this process, in whichever thread

A loop in a thread, a pool of workers, a helper at the end of a pipe: each belongs to the process that started it. A
forked child inherits the object, but neither its threads nor its children, and must not speak over its connections.
"""

from __future__ import annotations

import atexit
import importlib
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ["PerProcess"]

T = TypeVar("T")


class _Made(NamedTuple, Generic[T]):
    value: T
    end: weakref.finalize[Any, Any]
    """Closes the value, once."""


class PerProcess(Generic[T]):
    """Makes a value when it is first asked for, and closes it when the process ends or nobody holds this any more.

    In a forked child there is none until the child asks: the parent's value is abandoned, and never closed there.
    None of the three functions may hold this object, or the value would live until the process ends.
    """

    def __init__(
        self,
        make: Callable[[], T],
        close: Callable[[T], object] | None = None,
        abandon: Callable[[T], object] | None = None,
        *,
        close_before_threads: bool = False,
    ) -> None:
        """`abandon` is called in a forked child, with the parent's value, to let go of what the child inherited.

        With `close_before_threads`, the value is closed while thread pools still take work.
        """
        self._make = make
        self._close = close or _nothing
        self._abandon = abandon or _nothing
        self._close_before_threads = close_before_threads
        self._lock = threading.Lock()
        self._made: _Made[T] | None = None
        _all.add(self)

    def get(self) -> T:
        """This process's value, made first where there is none. When `make` raises, the next call tries again."""
        made = self._made
        if made is None:
            with self._lock:
                made = self._made
                if made is None:
                    made = self._made = self._hold(self._make())
        return made.value

    def close(self) -> None:
        """Close the value, if there is one; the next `get` makes another."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            atexit.unregister(made.end)
            made.end()

    def _hold(self, value: T) -> _Made[T]:
        end = weakref.finalize(self, self._close, value)
        end.atexit = False  # said below, so that it comes before the end of whatever `make` has loaded
        if not self._close_before_threads:
            atexit.register(end)
        else:
            # Such functions are called in the reverse order of being registered, and thread pools stop by one.
            importlib.import_module("concurrent.futures.thread")
            with suppress(RuntimeError):  # the interpreter is ending already
                threading._register_atexit(end)  # type: ignore[attr-defined]
        return _Made(value, end)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # whoever held it is not in the child
        made, self._made = self._made, None
        if made is not None:
            made.end.detach()
            _abandoned.append(made.value)
            self._abandon(made.value)


_all: weakref.WeakSet[PerProcess[Any]] = weakref.WeakSet()
_abandoned: list[Any] = []
"""Kept for good: collecting them could speak to the parent's threads or processes."""


def _nothing(_: object) -> None:
    """Do nothing: for a thing that needs neither to be closed nor to be abandoned."""


def _after_fork() -> None:
    for each in list(_all):
        each._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
