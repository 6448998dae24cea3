# SPDX-License-Identifier: Apache-2.0
"""Reading and writing pipes on the event loop without ever waiting for their end: a background job may hold it open."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable

__all__ = ["Reader", "waiting_bytes", "write_all"]

_CHUNK = 1 << 16
_LITTLE = 1 << 10
"""Mostly there is not more, and a large buffer takes longer to get than to fill."""


def waiting_bytes(descriptor: int) -> int:
    """How much can be read at once."""
    (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0"))
    return int(count)


async def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; where the pipe is full, let others run meanwhile. The descriptor does not block."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            await _writable(descriptor)


async def _writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_writer(descriptor, wake)
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


class Reader:
    """Hands on what comes through a pipe, from now until `close`. Owns the descriptor."""

    def __init__(
        self, descriptor: int, take: Callable[[bytes], None], at_end: Callable[[], None] | None = None
    ) -> None:
        """Call `take` with every piece, and `at_end` when nobody can write to it any more."""
        self._descriptor = descriptor
        self._take = take
        self._at_end = at_end
        self._loop = asyncio.get_running_loop()
        self._watching = True
        self._room = _LITTLE
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._readable)

    def _readable(self) -> None:
        try:
            data = os.read(self._descriptor, self._room)
        except BlockingIOError:
            return
        self._room = _CHUNK if len(data) == self._room else _LITTLE
        if data:
            self._take(data)
            return
        self._stop()
        if self._at_end is not None:
            self._at_end()

    def drain(self) -> None:
        """Take what was written before now, and not what a background job adds meanwhile."""
        left = waiting_bytes(self._descriptor) if self._descriptor >= 0 else 0
        while left > 0:
            data = os.read(self._descriptor, min(left, _CHUNK))
            if not data:
                return
            left -= len(data)
            self._take(data)

    def _stop(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_reader(self._descriptor)

    def close(self) -> None:
        """Stop, and close the descriptor."""
        if self._descriptor >= 0:
            self._stop()
            os.close(self._descriptor)
            self._descriptor = -1
