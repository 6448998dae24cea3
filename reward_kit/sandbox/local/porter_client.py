# SPDX-License-Identifier: Apache-2.0
"""A porter as its backend sees it: processes are asked for, and their ends come back."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from reward_kit.errors import SandboxError
from reward_kit.sandbox.local.channel import Channel

__all__ = ["Child", "Ended", "PorterClient"]


class Ended(NamedTuple):
    """How a process ended, as the kernel told its parent."""

    status: int
    """An exit code; or, below zero, the signal."""
    cpu_seconds: float


class Child(NamedTuple):
    """A process in a sandbox, or work on a file there."""

    serial: int
    ended: asyncio.Future[Ended]


class PorterClient:
    """The way into one sandbox. Every wait on it ends when its porter dies."""

    def __init__(self, ours: socket.socket) -> None:
        """Talk through `ours`; what is asked before the porter is there waits for it."""
        self._channel = Channel(ours, self._happened, self._gone)
        self._serials = itertools.count(1)
        self._children: dict[int, Child] = {}
        self._reason = ""
        self.exhaustions = 0
        """How often a process was killed because all together had too much memory, where the porter sees to that."""
        self._loop = asyncio.get_running_loop()

    def _happened(self, event: dict[str, Any]) -> None:
        if event["event"] == "exhausted":
            self.exhaustions += 1
            return
        child = self._children.pop(event["serial"], None)
        if child is not None and not child.ended.done():
            child.ended.set_result(Ended(os.waitstatus_to_exitcode(event["status"]), event["cpu"]))

    def _gone(self, reason: str) -> None:
        self._reason = reason
        for child in self._children.values():
            if not child.ended.done():
                child.ended.set_exception(SandboxError(f"The sandbox is gone: {reason}. Open another one."))
                child.ended.exception()  # whoever waits is told; nobody may be waiting
        self._children.clear()

    def enter(self, do: str, request: dict[str, Any], descriptors: Sequence[int]) -> Child:
        """`spawn` a process, `read` or `write` a file, have all `stop` or `go_on`. Takes the descriptors over."""
        child = Child(next(self._serials), self._loop.create_future())
        self._children[child.serial] = child
        self._channel.send({"do": do, "serial": child.serial, **request}, descriptors)
        if not self._channel.open:
            self._gone(self._reason)
        return child

    def end(self, mode: str, child: Child | None = None, since: int = 0) -> None:
        """`kill` a process and what the sandbox started since; `abort` what a shell is doing; `empty` the sandbox."""
        self._channel.send({"do": "end", "mode": mode, "serial": child.serial if child else 0, "since": since})

    def begin_turn(self) -> None:
        """Tell that a command begins, and memory is to be watched."""
        self._channel.send({"do": "begin_turn"})

    def end_turn(self) -> None:
        """Tell that it has ended, and hear what was said of it: the porter speaks before it acts."""
        self._channel.send({"do": "end_turn"})
        self._channel.listen_now()

    def close(self, reason: str = "it was closed") -> None:
        """Close the connection to the porter."""
        self._channel.close(reason)
