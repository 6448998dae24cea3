# SPDX-License-Identifier: Apache-2.0
"""Messages between a backend and the processes that serve it: a length, JSON, and descriptors that travel with it."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = ["Inbox", "pack", "send"]

_LENGTH = struct.Struct("<I")
_CHUNK = 1 << 16
_encode = json.JSONEncoder(separators=(",", ":")).encode  # `json.dumps` would make an encoder for each message
_decode = json.JSONDecoder().decode
_ANCILLARY_BYTES = socket.CMSG_SPACE(253 * array.array("i").itemsize)
_CLOSE_ON_EXEC = socket.MSG_CMSG_CLOEXEC if hasattr(socket, "MSG_CMSG_CLOEXEC") else 0
"""Without it, what arrives would be open in everything a porter starts. `socket.recv_fds` does not pass it on."""


def pack(message: dict[str, Any], descriptors: Sequence[int] = ()) -> bytes:
    """One message as bytes. It says how many descriptors come with it."""
    body = _encode({**message, "descriptors": len(descriptors)}).encode()
    return _LENGTH.pack(len(body)) + body


def send(channel: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one message whole, waiting where the channel is full."""
    data = pack(message, descriptors)
    sent = socket.send_fds(channel, [data], list(descriptors)) if descriptors else channel.send(data)
    if sent < len(data):
        channel.sendall(data[sent:])


class Inbox:
    """Puts received bytes and descriptors together to messages again."""

    def __init__(self, channel: socket.socket) -> None:
        """Receive from `channel`, which may be blocking or not."""
        self._channel = channel
        self._data = bytearray()
        self._descriptors: deque[int] = deque()

    def receive(self) -> bool:
        """Take what is there. False: the other end is gone."""
        try:
            data, ancillary, _, _ = self._channel.recvmsg(_CHUNK, _ANCILLARY_BYTES, _CLOSE_ON_EXEC)
        except ConnectionResetError:
            return False
        descriptors = array.array("i")
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
        if not _CLOSE_ON_EXEC:
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
        self._descriptors.extend(descriptors)
        self._data += data
        return bool(data)

    def messages(self) -> Iterator[tuple[dict[str, Any], list[int]]]:
        """Every message that is complete, with its descriptors."""
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            end = _LENGTH.size + length
            if len(self._data) < end:
                return
            message = _decode(self._data[_LENGTH.size : end].decode())
            del self._data[:end]
            yield message, [self._descriptors.popleft() for _ in range(message.pop("descriptors"))]

    def close(self) -> None:
        """Close descriptors that nobody took."""
        while self._descriptors:
            os.close(self._descriptors.popleft())
