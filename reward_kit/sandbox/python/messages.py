# SPDX-License-Identifier: Apache-2.0
"""The messages between reward-kit and its zygotes: a small JSON header, then bytes.

    length of the header │ header, which says how long each blob is │ blob │ blob │ …

Standard library only: the zygote may run in an interpreter that has nothing else.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import struct
from typing import Any, NamedTuple

__all__ = [
    "CHANNEL",
    "LENGTH",
    "MAIN",
    "NONCE_BYTES",
    "REQUESTS",
    "SOLUTION",
    "WORK",
    "Frame",
    "Frames",
    "described",
    "longest",
    "lost",
    "pack",
    "receive",
    "sizes",
    "unpack",
]

LENGTH = struct.Struct("!I")
"""How every length is written."""

NONCE_BYTES = 16
"""What an answer from inside a sandbox must begin with to be the answer to the call that was made."""


WORK = "/box"
"""Where a program runs, and where its files are."""

MAIN = "main.py"
"""The file that a program's code is in."""

SOLUTION = "solution.py"
"""The file that the code of functions is in."""


def longest(seconds: float) -> float:
    """How long something that may take `seconds` is waited for at most, where the machine is too busy to run it."""
    return max(4 * seconds, 30.0)


def lost(seconds: float, wall: float) -> float:
    """What something that ran out of its `seconds` counts for, where it took `wall`: more only where that was far more,
    as where its own processes kept it from running."""
    return max(seconds, wall / 2)


class Frame(NamedTuple):
    """One message between us and a zygote: a JSON header, and bytes that belong to it."""

    header: dict[str, Any]
    blobs: list[bytes]


def pack(header: dict[str, Any], *blobs: bytes) -> bytes:
    """The bytes of one message."""
    head = json.dumps({**header, "blobs": [len(blob) for blob in blobs]}).encode()
    return b"".join((LENGTH.pack(len(head)), head, *blobs))


def sizes(header: dict[str, Any]) -> list[int]:
    """How long each of the blobs is that follow this header; takes the entry out of it."""
    found: list[int] = header.pop("blobs")
    return found


def unpack(data: bytes) -> Frame:
    """The message of such bytes."""
    start = LENGTH.size + LENGTH.unpack_from(data)[0]
    header = json.loads(data[LENGTH.size : start])
    ends = list(itertools.accumulate(sizes(header), initial=start))
    return Frame(header, [data[begin:end] for begin, end in itertools.pairwise(ends)])


def receive(connection: socket.socket) -> Frame | None:
    """The next message, blocking; None when the other side has gone."""
    prefix = _exactly(connection, LENGTH.size)
    if prefix is None:
        return None
    head = _exactly(connection, LENGTH.unpack(prefix)[0])
    if head is None:
        return None
    header = json.loads(head)
    blobs = [_exactly(connection, size) for size in sizes(header)]
    whole = [blob for blob in blobs if blob is not None]
    return Frame(header, whole) if len(whole) == len(blobs) else None


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    """So many bytes, or None when the connection ends before."""
    data = bytearray(size)
    view = memoryview(data)
    done = 0
    while done < size:
        got = connection.recv_into(view[done:])
        if not got:
            return None
        done += got
    return bytes(data)


# ── inside a sandbox ──────────────────────────────────────────────────────────────────────────────────────────────────
#
# What processes there say to the supervisor and to each other: frames of a length, a nonce and bytes.

CHANNEL = 3
"""The descriptor on which a process answers, and is spoken to where it has no other for that."""
REQUESTS = 4
"""The descriptor on which a process that answers calls is spoken to. Its copies, which make the calls, close it."""
_MESSAGE_CHARACTERS = 2000
_MOST = 64 << 20
# Taken before any code of others runs, so that a program which replaces them still gets its answers out.
_read, _write = os.read, os.write


class Frames:
    """One end of a channel."""

    def __init__(self, descriptor: int) -> None:
        """On a descriptor, which programs started from here do not inherit."""
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor

    def nonce(self) -> bytes:
        """A nonce that comes alone."""
        return self._exactly(NONCE_BYTES)

    def receive(self) -> tuple[bytes, bytes] | None:
        """The next nonce and its bytes; None when the other side has closed, or writes what is no frame."""
        prefix = self._exactly(LENGTH.size)
        size = LENGTH.unpack(prefix)[0] if prefix else 0
        if not NONCE_BYTES <= size <= _MOST:
            return None
        frame = self._exactly(size)
        return (frame[:NONCE_BYTES], frame[NONCE_BYTES:]) if frame else None

    def send(self, nonce: bytes, content: bytes) -> None:
        """Send bytes under a nonce."""
        frame = memoryview(LENGTH.pack(len(nonce) + len(content)) + nonce + content)
        while frame:
            frame = frame[_write(self._descriptor, frame) :]

    def _exactly(self, size: int) -> bytes:
        """So many bytes; none at all when the other side has closed before."""
        parts: list[bytes] = []
        while size:
            part = _read(self._descriptor, min(size, 1 << 20))
            if not part:
                return b""
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def described(error: BaseException) -> bytes:
    """An exception in one line, however strange it is."""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - an exception may even fail to be written
        text = type(error).__name__
    return text[:_MESSAGE_CHARACTERS].encode(errors="replace")
