"""The request `call`: a function called with one set of arguments after another, each within its own limits.

    load ─▶ call ─▶ call ─▶ (time is over, or it died: a new process loads the code) ─▶ call …

What comes out of the sandbox is bytes with a nonce before them; nothing of it is interpreted here but how a copy of the
process ended. Standard library only.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple

from reward_kit.sandbox.zygote_cell import Cell, Forker, OwnerGoneError, Watch
from reward_kit.sandbox.zygote_channel import BrokenChannelError, Channel
from reward_kit.sandbox.zygote_wire import LENGTH, NONCE_BYTES, Message, pack

__all__ = ["call"]

_KINDS = {b"R": "returned", b"X": "raised", b"L": "loaded"}
_BESIDE_A_VALUE = 8192
"""What a frame may hold beside a value, or instead of one: a nonce, a letter, a message."""
_CORES = os.cpu_count() or 1
_SHORTEST_WAIT = 0.001


class _Outcome(NamedTuple):
    kind: str
    content: bytes = b""
    """The returned value, or what went wrong."""
    final: bool = False
    """The process that answers calls has ended, or must be."""
    oom_killed: bool = False
    wall_seconds: float = 0.0


_TIMED_OUT = _Outcome("timed_out", final=True)


class _Solution:
    """A process that has loaded the code. It answers calls until one of them is its last."""

    def __init__(self, forker: Forker, request: Message, calls: int) -> None:
        header = request.header
        self._isolated: bool = header["isolated"]
        self._timeout: float = header["timeout"]
        self._cpu_limit: float = header["limits"]["cpu_seconds"]
        # The limit of a process is for all its calls, so in a shared one each call's own is watched from here.
        limits = header["limits"] | {"cpu_seconds": self._cpu_limit * (1 if self._isolated else 1 + calls)}
        ours, theirs = socket.socketpair()
        with theirs, open("/dev/null", "r+b", buffering=0) as nowhere:
            self._cell = Cell(forker, limits, [*[nowhere.fileno()] * 3, theirs.fileno()], pack(header, *request.blobs))
        self._channel = Channel(ours, header["answer_bytes"] + _BESIDE_A_VALUE)
        self._watch = Watch(forker, self._cell)
        self.alive = True

    def load(self) -> _Outcome:
        """Have it load the code."""
        nonce = os.urandom(NONCE_BYTES)
        return self._timed(nonce, nonce, isolated=False)

    def call(self, arguments: bytes) -> _Outcome:
        """Have it answer one call."""
        nonce = os.urandom(NONCE_BYTES)
        frame = b"".join((LENGTH.pack(NONCE_BYTES + len(arguments)), nonce, arguments))
        return self._timed(nonce, frame, self._isolated)

    def end(self) -> None:
        """Kill it."""
        if self.alive:
            self.alive = False
            self._channel.close()
            self._cell.end()

    def _timed(self, nonce: bytes, request: bytes, isolated: bool) -> _Outcome:
        began = time.monotonic()
        try:
            outcome = self._exchange(nonce, request, isolated)
        except BrokenChannelError as error:
            outcome = _Outcome("died", str(error).encode(), final=True)
        except OwnerGoneError:
            self.end()
            raise
        oom_killed = outcome.kind == "died" and self._cell.killed_for_memory()
        if outcome.final:
            self.end()
        return outcome._replace(oom_killed=oom_killed, wall_seconds=time.monotonic() - began)

    def _exchange(self, nonce: bytes, request: bytes, isolated: bool) -> _Outcome:
        """Send a request and wait for its answer; in a copy of the process, for the copy's end as well."""
        answer: _Outcome | None = None
        self._channel.send(request)
        for frame in self._frames():
            if frame is None:
                return _TIMED_OUT
            if not frame.startswith(nonce):
                continue  # left over from an earlier call
            letter, content = frame[NONCE_BYTES : NONCE_BYTES + 1], frame[NONCE_BYTES + 1 :]
            if letter == b"E":
                return answer or _ended(content)
            answer = answer or _Outcome(_KINDS.get(letter, "raised"), content)
            if not isolated:
                return answer
        return _Outcome("died", b"the process ended before it answered", final=True)

    def _frames(self) -> Iterator[bytes | None]:
        """What it writes, until it has ended; None when the time of this call is over."""
        deadline = time.monotonic() + self._timeout
        cpu_deadline = self._cell.cpu_seconds() + self._cpu_limit
        while True:
            self._watch.also(self._channel.descriptor, self._channel.events)
            cpu_left = cpu_deadline - self._cell.cpu_seconds()
            if time.monotonic() >= deadline or cpu_left <= 0:
                yield None
                return
            soonest = time.monotonic() + max(cpu_left / _CORES, _SHORTEST_WAIT)
            ready = self._watch.wait(min(deadline, soonest))
            if ready and self._channel.descriptor in ready:
                self._channel.push()
                yield from self._channel.frames()
            elif ready and self._watch.ended(ready):
                return


def _ended(status: bytes) -> _Outcome:
    """A copy of the process ended without an answer."""
    try:
        code = os.waitstatus_to_exitcode(int(status))
    except (ValueError, OverflowError):
        raise BrokenChannelError("the process wrote something else where its answers are read") from None
    if code == -signal.SIGXCPU:
        return _Outcome("timed_out")
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return _Outcome("died", f"the process ended {how} before it answered".encode())


def call(forker: Forker, request: Message) -> bytes:
    """Make every call; the answer to send."""
    task = 1 + len(request.header["files"])
    calls = request.blobs[task:]
    outcomes = list(_outcomes(forker, Message(request.header, request.blobs[:task]), calls))
    rows = [outcome._asdict() | {"content": None} for outcome in outcomes]
    return pack({"outcomes": rows}, *[outcome.content for outcome in outcomes])


def _outcomes(forker: Forker, task: Message, calls: list[bytes]) -> Iterator[_Outcome]:
    """One outcome a call; fewer when it was asked to stop at the first that does not return."""
    solution: _Solution | None = None
    try:
        for number, arguments in enumerate(calls):
            if solution is None or not solution.alive:
                solution = _Solution(forker, task, len(calls))
                loaded = solution.load()
                if loaded.kind != "loaded":
                    yield from [_while_loading(loaded)] * (len(calls) - number)
                    return
            outcome = solution.call(arguments)
            yield outcome
            if outcome.kind != "returned" and task.header["stop_early"]:
                return
    finally:
        if solution:
            solution.end()


def _while_loading(outcome: _Outcome) -> _Outcome:
    return outcome._replace(content=b"while the code was loaded: " + (outcome.content or b"its time was over"))
