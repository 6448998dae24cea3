# SPDX-License-Identifier: Apache-2.0
"""The conversation with the driver of a container (`driver.sh`) over the container's own three streams."""

from __future__ import annotations

import asyncio
import base64
import itertools
import secrets
from contextlib import suppress
from typing import Literal, NamedTuple, Protocol

__all__ = ["CommandEnd", "DriverStream", "Heard", "Operation", "Sink", "StreamEnded"]

Operation = Literal["B", "R", "S", "STOP", "CONT"]
"""Begin, run in the session's shell, run as a process of its own, have all that runs stop, let it go on."""

_HEADER = 8
_STDERR = 2
_ABORT_SECONDS = 0.1
_ABORT_ATTEMPTS = 6


class StreamEnded(Exception):
    """The container's streams closed: it ended, or the engine did."""


class CommandEnd(NamedTuple):
    """How a command ended, as the driver counts it."""

    status: int
    exited: bool
    cpu_nanoseconds: int | None
    peak_bytes: int | None
    oom_kills: int
    directory: str


class Sink(Protocol):
    """Takes what a command writes, in the order it comes."""

    def from_stdout(self, data: bytes) -> None:
        """Take what came on standard output."""
        ...

    def from_stderr(self, data: bytes) -> None:
        """Take what came on standard error."""
        ...


class Heard(NamedTuple):
    """What came of a command."""

    ending: CommandEnd
    timed_out: bool


class _Listener:
    """Cuts the two streams at the nonce. Bytes that may be the beginning of a nonce wait for the next piece."""

    def __init__(self, nonce: bytes, sink: Sink) -> None:
        self._nonce = nonce
        self._take = {1: sink.from_stdout, _STDERR: sink.from_stderr}
        self._waiting = {1: b"", _STDERR: b""}
        self._trailer: bytes | None = None
        self._stderr_ended = False

    def hear(self, stream: int, data: bytes) -> CommandEnd | None:
        """Take a piece of a stream; how the command ended, once it has."""
        if stream == _STDERR:
            self._stderr_ended = self._stderr_ended or self._until_nonce(stream, data) is not None
        elif self._trailer is None:
            self._trailer = self._until_nonce(stream, data)
        else:
            self._trailer += data
        if not self._stderr_ended or self._trailer is None or self._nonce not in self._trailer:
            return None
        return _ending(self._trailer.partition(self._nonce)[0])

    def _until_nonce(self, stream: int, data: bytes) -> bytes | None:
        """Pass on what comes before the nonce; return what comes after it, once it is there."""
        text, found, rest = (self._waiting[stream] + data).partition(self._nonce)
        held = 0 if found else _begun(self._nonce, text)
        self._waiting[stream] = text[len(text) - held :]
        self._take[stream](text[: len(text) - held])
        return rest if found else None


def _ending(trailer: bytes) -> CommandEnd:
    status, exited, cpu, peak, oom, directory = trailer.decode("utf-8", "surrogateescape")[1:-1].split("|", 5)
    return CommandEnd(int(status), exited == "1", _number(cpu), _number(peak), _number(oom) or 0, directory)


def _begun(nonce: bytes, text: bytes) -> int:
    """How many bytes at the end of `text` may be the beginning of the nonce."""
    longest = min(len(text), len(nonce) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(nonce[:size])), 0)


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


_END, _END_ALL = b"K - - 0 0 .\n", b"KS - - 0 0 .\n"


class DriverStream:
    """The attached streams of one container."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._settling: asyncio.Task[CommandEnd] | None = None

    @property
    def ended(self) -> bool:
        """Whether the container has closed its streams."""
        return self._reader.at_eof()

    async def ask(
        self, operation: Operation, command: str, sink: Sink, *, timeout: float, grace: float, stdin: bytes = b""
    ) -> Heard:
        """Run `command`, and hand on what it writes; after `timeout` seconds everything it started is killed.

        TimeoutError: the driver did not answer even then, within `grace` seconds more.
        """
        nonce, password = secrets.token_hex(16), secrets.token_hex(16)
        text, data = command.encode("utf-8", "replace"), base64.b64encode(stdin)
        async with asyncio.timeout(timeout + grace):
            await self._settle()
            self._write(f"{operation} {nonce} {password} {len(text)} {len(data)} .\n".encode() + text + data)
            listening = asyncio.create_task(self._listen(_Listener(nonce.encode(), sink)))
            try:
                done, _ = await asyncio.wait([listening], timeout=timeout)
                return Heard(await self._end(operation, listening), timed_out=not done)
            except (asyncio.CancelledError, TimeoutError):
                # What it still says must not be taken for the next one's: it is ended, and heard out before the next.
                self._settling = asyncio.create_task(self._end(operation, listening))
                raise

    async def _end(self, operation: Operation, listening: asyncio.Task[CommandEnd]) -> CommandEnd:
        """End a command that has not ended, and the shell with it where it does not give it up."""
        ending_it = not listening.done()
        for attempt in itertools.count():
            if listening.done():
                break
            hopeless = operation == "R" and attempt >= _ABORT_ATTEMPTS
            self._write(_END_ALL if hopeless else _END)
            await asyncio.wait([listening], timeout=_ABORT_SECONDS)
        if ending_it:  # once more: it may have started something while it was being ended
            self._write(_END)
        return listening.result()

    async def _settle(self) -> None:
        if self._settling is not None:
            await asyncio.wait([self._settling])
            self._settling.result()
            self._settling = None

    async def close(self) -> None:
        """Let go of the container, which ends when its first process has nobody to listen to."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.wait([self._settling])
            self._settling = None
        self._writer.close()
        with suppress(OSError):  # it was closed from the other side
            await self._writer.wait_closed()

    def _write(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise StreamEnded
        self._writer.write(data)

    async def _listen(self, listener: _Listener) -> CommandEnd:
        try:
            while True:
                header = await self._reader.readexactly(_HEADER)
                data = await self._reader.readexactly(int.from_bytes(header[4:], "big"))
                ending = listener.hear(header[0], data)
                if ending is not None:
                    return ending
        except (asyncio.IncompleteReadError, OSError) as error:
            raise StreamEnded from error
