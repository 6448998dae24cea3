# SPDX-License-Identifier: Apache-2.0
"""What the supervisor says to a process in a cell, and what it takes for an answer.

    request ─▶ the process ─▶ frames, of which only those with the request's nonces count ─▶ Outcome

A call in a copy of the process has two nonces. The copy knows the one that its answer must have. The other says that
the copy and all that it started have ended; only the process itself can read it, and does so when that is true.

What comes out of the sandbox is bytes with a nonce before them; nothing of it is interpreted here but how a copy of the
process ended. Standard library only.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple

from reward_kit.sandbox.python.cell import NOBODY, Cell, Everyone, Forker, OwnerGoneError, Patience, StarvedError, Watch
from reward_kit.sandbox.python.messages import LENGTH, NONCE_BYTES

__all__ = ["BrokenChannelError", "Conversation", "FrameChannel", "RequestOutcome"]

_KINDS = {b"R": "returned", b"X": "raised", b"L": "loaded", b"U": "unjudgeable", b"B": "died"}
_BESIDE_A_VALUE = 8192
"""What a frame may hold beside a value, or instead of one: a nonce, a letter, a message."""
_CORES = os.cpu_count() or 1
_SHORTEST_WAIT = 0.001


class RequestOutcome(NamedTuple):
    """What became of one request."""

    kind: str
    content: bytes = b""
    """The returned value, or what went wrong."""
    final: bool = False
    """The process that answers calls has ended, or must be: so must one whose copy has left files."""
    oom_killed: bool = False
    wall_seconds: float = 0.0


_TIMED_OUT = RequestOutcome("timed_out", final=True)


class Conversation:
    """With a process that has its task. It answers until one of its answers is the last."""

    def __init__(self, forker: Forker, cell: Cell, channel: FrameChannel, allowed: tuple[float, float]) -> None:
        """Over `channel`, each answer within `allowed` seconds and CPU seconds."""
        self._cell = cell
        self._timeout, self._cpu_limit = allowed
        self._channel = channel
        self._watch = Watch(forker, cell)
        self._ended = NOBODY
        self.alive = True

    def begin(self) -> RequestOutcome:
        """Have it do what comes before any call."""
        nonce = os.urandom(NONCE_BYTES)
        return self._timed(nonce, nonce)

    def call(self, arguments: bytes, *, isolated: bool) -> RequestOutcome:
        """Have it answer one call; `isolated`, in a copy of itself."""
        nonce = os.urandom(NONCE_BYTES)
        closing = os.urandom(NONCE_BYTES) if isolated else b""
        frame = b"".join((LENGTH.pack(NONCE_BYTES + len(arguments)), nonce, arguments, closing))
        # What copies have used that have ended is not read each time: they used no more than they took.
        before = self._ended if isolated else self._cell.first()
        outcome = self._timed(nonce, frame, closing, before)
        used = self._ended.cpu_seconds + outcome.wall_seconds
        self._ended = NOBODY._replace(cpu_seconds=used, reaped_cpu_seconds=used)
        return outcome

    def end(self) -> int | None:
        """Kill the process at the other end; the signal that had ended it before, where one had."""
        if not self.alive:
            return None
        self.alive = False
        self._channel.close()
        return self._cell.end().signal

    def _timed(self, nonce: bytes, request: bytes, closing: bytes = b"", before: Everyone = NOBODY) -> RequestOutcome:
        began = time.monotonic()
        try:
            outcome = self._exchange(nonce, request, closing, Patience(self._cell, self._timeout, before))
        except BrokenChannelError as error:
            outcome = RequestOutcome("died", str(error).encode(), final=True)
        except (OwnerGoneError, StarvedError):
            self.end()
            raise
        oom_killed = outcome.kind == "died" and self._cell.killed_for_memory()
        if outcome.final and self.end() == signal.SIGXCPU and outcome.kind == "died":
            outcome = _TIMED_OUT
        return outcome._replace(oom_killed=oom_killed, wall_seconds=time.monotonic() - began)

    def _exchange(self, nonce: bytes, request: bytes, closing: bytes, patience: Patience) -> RequestOutcome:
        """Send a request and wait for its answer, and where there is a closing nonce, for the copy's end as well."""
        answer: RequestOutcome | None = None
        self._channel.send(request)
        for frame in self._frames(patience):
            if frame is None:
                return _TIMED_OUT
            sender, letter, content = (
                frame[:NONCE_BYTES],
                frame[NONCE_BYTES : NONCE_BYTES + 1],
                frame[NONCE_BYTES + 1 :],
            )
            if sender == closing:
                return (answer or _ended(content))._replace(final=letter == b"D")
            if sender != nonce:
                continue  # left over from an earlier call, or made up
            answer = answer or RequestOutcome(_KINDS.get(letter, "raised"), content)
            if not closing:
                return answer
        return RequestOutcome("died", b"the process ended before it answered", final=True)

    def _frames(self, patience: Patience) -> Iterator[bytes | None]:
        """What it writes, until it has ended; None when the time of this call is over."""
        cpu_deadline = self._cell.cpu_seconds() + self._cpu_limit
        while True:
            awaited = self._channel.awaited()
            for descriptor, events in awaited.items():
                self._watch.also(descriptor, events)
            cpu_left = cpu_deadline - self._cell.cpu_seconds()
            if cpu_left <= 0 or patience.is_over():
                yield None
                return
            soonest = time.monotonic() + max(cpu_left / _CORES, _SHORTEST_WAIT)
            ready = self._watch.wait(min(patience.deadline, soonest))
            if not ready.keys().isdisjoint(awaited):
                self._channel.push()
                yield from self._channel.frames()
            elif self._watch.ended(ready):
                return


def _ended(status: bytes) -> RequestOutcome:
    """A copy of the process ended without an answer."""
    try:
        code = os.waitstatus_to_exitcode(int(status))
    except (ValueError, OverflowError):
        raise BrokenChannelError("the process wrote something else where its answers are read") from None
    if code == -signal.SIGXCPU:
        return RequestOutcome("timed_out")
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return RequestOutcome("died", f"the process ended {how} before it answered".encode())


# ── frames from inside ────────────────────────────────────────────────────────────────────────────────────────────────
#
# Whole frames or nothing, without ever waiting. A frame is a length, the nonce of the call it answers, and bytes.
# Whoever writes into it from inside can make it break, which ends that process; it cannot make it grow, block, or mean
# anything else.

_CHUNK = 1 << 16


class BrokenChannelError(Exception):
    """No answer can come any more; says why."""


class FrameChannel:
    """A connected socket for answers, in frames, and one for requests, which may be the same."""

    def __init__(self, answers: socket.socket, largest: int, requests: socket.socket | None = None) -> None:
        """Values in answers may be `largest` bytes long."""
        self._answers, self._requests = answers, requests or answers
        for connection in (self._answers, self._requests):
            connection.setblocking(False)
        self._largest = largest + _BESIDE_A_VALUE
        self._received = bytearray()
        self._unsent = b""

    def awaited(self) -> dict[int, int]:
        """The events to wait for, by descriptor; 0 where there are none."""
        events = {self._requests.fileno(): 0, self._answers.fileno(): select.POLLIN}
        if self._unsent:
            events[self._requests.fileno()] |= select.POLLOUT
        return events

    def send(self, data: bytes) -> None:
        """Send it, the rest of it when the other side reads."""
        self._unsent = data
        self.push()

    def push(self) -> None:
        """Send what can be sent at once."""
        if not self._unsent:
            return
        try:
            self._unsent = self._unsent[self._requests.send(self._unsent) :]
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):
            self._unsent = b""  # nobody reads it: that the process has ended is seen where its answers are read

    def frames(self) -> list[bytes]:
        """The whole frames that have come, without their lengths."""
        try:
            data = self._answers.recv(_CHUNK)
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
        """Close this end of both sockets."""
        self._answers.close()
        self._requests.close()
