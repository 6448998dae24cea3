"""Frames on a descriptor, as processes inside a sandbox write and read them: a length, a nonce, bytes.

Standard library only.
"""

from __future__ import annotations

import os

from reward_kit.sandbox.python.messages import LENGTH, NONCE_BYTES

__all__ = ["CHANNEL", "Frames", "described"]

CHANNEL = 3
"""The descriptor on which a process is spoken to."""
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
