# SPDX-License-Identifier: Apache-2.0
"""A supervisor as its backend sees it: sandboxes are opened and closed, and their ends come back."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any, TypeVar

from reward_kit.errors import SandboxError
from reward_kit.sandbox.linux.disk_use import DiskUse
from reward_kit.sandbox.local.channel import Channel, start_program

__all__ = ["SandboxStatus", "SupervisorClient"]

_T = TypeVar("_T")
_START_SECONDS = 30.0
_CLOSE_SECONDS = 30.0
_KEEP_SECONDS = 300.0
"""Where files are kept, they may have to be copied."""


class SandboxStatus:
    """What has become of one sandbox."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nothing of the sandbox is known yet; `opened` is done when it is open."""
        self.opened: asyncio.Future[None] = loop.create_future()
        self.group = ""
        """The name of its control group, once it is open."""
        self.first = 0
        """The number of its first process, once it is open."""
        self.home = ""
        """Where its files are, once it is open."""
        self.measured: asyncio.Future[DiskUse] | None = None
        """What its files take on disk, while somebody wants to know."""
        self.looked: asyncio.Future[dict[str, Any]] | None = None
        """What is said of its programs, while somebody wants to know."""
        self.is_bounded = False
        """Whether its files are on a disk of its own, and cannot take more than it has; once it is open."""
        self.is_wanted = False
        """Whether its files are to be kept when it closes."""
        self.is_kept = False
        """Whether they have been."""
        self.closed: asyncio.Future[None] = loop.create_future()
        """Nothing is left of it but its files."""


class SupervisorClient:
    """One supervisor process. Every wait on it ends when it dies."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """`settings` go to the process as they are; `start` starts it."""
        self._settings = settings
        self._sandboxes: dict[int, SandboxStatus] = {}
        self._kind: dict[str, Any] = {}
        self._dead: str | None = None

    # ── its process ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Start the process and wait until it can make sandboxes."""
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.to_thread(
                start_program, "namespaces.supervisor", theirs, json.dumps(self._settings)
            )
        self._channel = Channel(ours, self._happened, self._gone)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._ready
        except (TimeoutError, SandboxError) as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                text = f"The supervisor of sandboxes did not start in {_START_SECONDS:g} s. Try again."
                raise SandboxError(text) from None
            raise

    async def stop(self) -> None:
        """Hang up and wait until the process has ended everything."""
        self._channel.close("it was stopped")
        await asyncio.to_thread(self._process.wait)

    @property
    def alive(self) -> bool:
        """Whether it can be asked for anything."""
        return self._dead is None

    @property
    def load(self) -> int:
        """How many sandboxes it has."""
        return len(self._sandboxes)

    @property
    def process_id(self) -> int:
        """The number of its process."""
        return self._process.pid

    # ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _gone(self, reason: str) -> None:
        self._dead = reason
        error = SandboxError(f"The supervisor of sandboxes is gone: {reason}. The next sandbox gets a new one.")
        _refuse(self._ready, error)
        for sandbox in self._sandboxes.values():
            _refuse(sandbox.opened, error)
            _resolve(sandbox.closed)  # with their supervisor, its sandboxes are gone

    def _happened(self, event: dict[str, Any]) -> None:
        sandbox = self._sandboxes.get(event.get("sandbox", 0))
        match event["event"]:
            case "ready":
                _resolve(self._ready)
            case "unable":
                _refuse(
                    self._ready, SandboxError(f"Sandboxes cannot be made here: {event['reason']}.", retryable=False)
                )
            case "opened" if sandbox:
                sandbox.group, sandbox.home, sandbox.first = event["group"], event["home"], event["first"]
                sandbox.is_bounded = event["bounded"]
                _resolve(sandbox.opened)
            case "failed" if sandbox:
                _refuse(sandbox.opened, SandboxError(f"The sandbox could not be opened: {event['reason']}."))
            case "measured" if sandbox and sandbox.measured:
                _resolve_with(sandbox.measured, DiskUse(*event["use"]))
            case "looked" if sandbox and sandbox.looked:
                _resolve_with(sandbox.looked, event)
            case "closed" if sandbox:
                sandbox.home, sandbox.is_kept = event["home"], event["kept"]
                _refuse(sandbox.opened, SandboxError("The sandbox ended before it was open. Open another one."))
                _resolve(sandbox.closed)

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def open(self, key: int, kind: dict[str, Any], porters_end: socket.socket) -> SandboxStatus:
        """Begin to open a sandbox of this kind, whose porter talks through `porters_end`, which is taken over."""
        sandbox = self._sandboxes[key] = SandboxStatus(self._loop)
        sandbox.closed.add_done_callback(lambda _: self._sandboxes.pop(key, None))
        news = {} if kind == self._kind else {"kind": kind}
        self._kind = kind
        self._channel.send({"do": "open", "sandbox": key, **news}, [porters_end.detach()])
        if self._dead is not None:
            self._gone(self._dead)
        return sandbox

    async def measure(self, key: int, most: DiskUse) -> DiskUse:
        """What the files of a sandbox take, up to about `most`; nothing, where it is gone."""
        sandbox = self._sandboxes.get(key)
        if sandbox is None:
            return DiskUse()
        if sandbox.measured is None or sandbox.measured.done():
            sandbox.measured = self._loop.create_future()
            self._channel.send({"do": "measure", "sandbox": key, "most": [most.size, most.files]})
        either: list[asyncio.Future[Any]] = [sandbox.measured, sandbox.closed]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return sandbox.measured.result() if sandbox.measured.done() else DiskUse()

    async def look(self, key: int, condition: str | None) -> dict[str, Any]:
        """Have a check of this condition made ready, or ended; None: mark what it may trust."""
        said: dict[str, Any] = {"failed": "the sandbox is gone"}
        if sandbox := self._sandboxes.get(key):
            sandbox.looked = self._loop.create_future()
            self._channel.send({"do": "look", "sandbox": key, "condition": condition})
            either: list[asyncio.Future[Any]] = [sandbox.looked, sandbox.closed]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            said = sandbox.looked.result() if sandbox.looked.done() else said
        if "failed" in said:
            raise SandboxError(f"A check could not be made ready: {said['failed']}. Try again.")
        return said

    async def close(self, key: int) -> None:
        """Close a sandbox and wait until every process in it is dead."""
        sandbox = self._sandboxes.get(key)
        if sandbox is None:
            return
        self._channel.send({"do": "close", "sandbox": key, "keep": sandbox.is_wanted})
        seconds = _KEEP_SECONDS if sandbox.is_wanted else _CLOSE_SECONDS
        done, _ = await asyncio.wait([sandbox.closed], timeout=seconds)
        if not done:
            raise SandboxError(f"A sandbox did not end in {seconds:g} s: a process in it cannot be killed.")


def _resolve_with(future: asyncio.Future[_T], value: _T) -> None:
    if not future.done():
        future.set_result(value)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _refuse(future: asyncio.Future[None], error: SandboxError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # whoever waits is told; nobody may be waiting
