"""Resources that a process sets up once, before their first use, and cleans up when it ends."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

__all__ = ["ProcessResources", "Resource"]

_logger = logging.getLogger(__name__)


class Resource(Protocol):
    """Something a reward needs that is set up once a process: a model, a connection, a service."""

    def setup(self) -> None:
        """Make it ready."""

    def cleanup(self) -> None:
        """Give it back."""

    def get_client(self) -> Any:
        """What the reward uses."""


class ProcessResources:
    """Resources by kind. They pickle as what they were made from: each process sets up its own."""

    def __init__(self, wrappers: Mapping[str, Sequence[Resource]]) -> None:
        self._wrappers = wrappers
        self._lock = threading.Lock()
        self._ready_in: int | None = None
        """The process that set them up: after a fork, the child must do so itself."""

    def __reduce__(self) -> tuple[type[ProcessResources], tuple[Mapping[str, Sequence[Resource]]]]:
        return ProcessResources, (self._wrappers,)

    def clients(self) -> dict[str, list[Any]]:
        """The clients, by kind; everything is set up first if this process has not done so."""
        if self._ready_in != os.getpid():
            with self._lock:
                if self._ready_in != os.getpid():
                    self._set_up()
        return {kind: [wrapper.get_client() for wrapper in wrappers] for kind, wrappers in self._wrappers.items()}

    def _set_up(self) -> None:
        ready: list[Resource] = []
        with ExitStack() as undo:
            undo.callback(_clean_up, ready)
            for wrapper in (wrapper for wrappers in self._wrappers.values() for wrapper in wrappers):
                wrapper.setup()
                ready.append(wrapper)
            undo.pop_all()
        self._ready_in = os.getpid()
        atexit.register(_clean_up_at_exit, ready, os.getpid())


def _clean_up_at_exit(wrappers: Sequence[Resource], owner: int) -> None:
    """Clean up, unless this is a child that was forked from the owner and inherited its exit handlers."""
    if os.getpid() == owner:
        _clean_up(wrappers)


def _clean_up(wrappers: Sequence[Resource]) -> None:
    """Clean up in reverse order; one that fails does not keep the others from it."""
    for wrapper in reversed(wrappers):
        try:
            wrapper.cleanup()
        except Exception:  # foreign code, at the end of a process or on the way out of another error
            _logger.warning("cleaning up %r failed", wrapper, exc_info=True)
