"""The zygote's end of the channel on which a sandboxed process answers calls: whole frames or nothing, never waiting.

A frame is a length, the nonce of the call it answers, and bytes. Whoever writes into it from inside can make it break,
which ends that process; it cannot make it grow, block, or mean anything else. Standard library only.
"""

from __future__ import annotations

import contextlib
import select
import socket

from reward_kit.sandbox.python.messages import LENGTH, NONCE_BYTES

__all__ = ["BrokenChannelError", "Channel"]

_CHUNK = 1 << 16


class BrokenChannelError(Exception):
    """No answer can come any more; says why."""


class Channel:
    """A connected socket, in frames."""

    def __init__(self, connection: socket.socket, largest: int) -> None:
        """Frames may be `largest` bytes long."""
        connection.setblocking(False)
        self._socket = connection
        self._largest = largest
        self._received = bytearray()
        self._unsent = b""

    @property
    def descriptor(self) -> int:
        """What to wait for,"""
        return self._socket.fileno()

    @property
    def events(self) -> int:
        """and for which of its events."""
        return select.POLLIN | (select.POLLOUT if self._unsent else 0)

    def send(self, data: bytes) -> None:
        """Send it, the rest of it when the other side reads."""
        self._unsent = data
        self.push()

    def push(self) -> None:
        """Send what can be sent at once."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            if self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]

    def frames(self) -> list[bytes]:
        """The whole frames that have come, without their lengths."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return []
        except ConnectionResetError:
            data = b""
        if not data:
            raise BrokenChannelError("the process ended before it answered")
        self._received += data
        found = []
        while frame := self._first():
            found.append(frame)
        return found

    def _first(self) -> bytes | None:
        if len(self._received) < LENGTH.size:
            return None
        size = LENGTH.unpack_from(self._received)[0]
        if not NONCE_BYTES < size <= self._largest:
            raise BrokenChannelError("the process wrote something else where its answers are read")
        whole = LENGTH.size + size
        if len(self._received) < whole:
            return None
        frame = bytes(self._received[LENGTH.size : whole])
        del self._received[:whole]
        return frame

    def close(self) -> None:
        """Close this end."""
        self._socket.close()
