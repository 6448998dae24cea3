# SPDX-License-Identifier: Apache-2.0
"""Resources that a process sets up once, before their first use, and cleans up when it ends."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Protocol

from reward_kit.utils.per_process import PerProcess

__all__ = ["ProcessResources", "Resource"]

_logger = logging.getLogger(__name__)


class Resource(Protocol):
    """Something a reward needs that is set up once a process: a model, a connection, a service."""

    def setup(self) -> None:
        """Make it ready. Called once per process, before the reward's first call."""

    def cleanup(self) -> None:
        """Give back what `setup` took. Called once, when the process ends."""

    def get_client(self) -> Any:
        """The object that the reward is handed and works with."""


class ProcessResources:
    """Resources by kind. They pickle as what they were made from: each process sets up its own."""

    def __init__(self, wrappers: Mapping[str, Sequence[Resource]]) -> None:
        self._wrappers = wrappers
        self._ready = PerProcess(partial(_set_up, wrappers), _clean_up)

    def __reduce__(self) -> tuple[type[ProcessResources], tuple[Mapping[str, Sequence[Resource]]]]:
        return ProcessResources, (self._wrappers,)

    def clients(self) -> dict[str, list[Any]]:
        """The clients, by kind; everything is set up first if this process has not done so."""
        self._ready.get()
        return {kind: [wrapper.get_client() for wrapper in wrappers] for kind, wrappers in self._wrappers.items()}


def _set_up(wrappers: Mapping[str, Sequence[Resource]]) -> Sequence[Resource]:
    """Set up each, in order; where one fails, those before it are cleaned up."""
    ready: list[Resource] = []
    with ExitStack() as undo:
        undo.callback(_clean_up, ready)
        for wrapper in (wrapper for kind in wrappers.values() for wrapper in kind):
            wrapper.setup()
            ready.append(wrapper)
        undo.pop_all()
    return ready


def _clean_up(wrappers: Sequence[Resource]) -> None:
    """Clean up in reverse order; one that fails does not keep the others from it."""
    for wrapper in reversed(wrappers):
        try:
            wrapper.cleanup()
        except Exception:  # foreign code, at the end of a process or on the way out of another error
            _logger.warning("cleaning up %r failed", wrapper, exc_info=True)
