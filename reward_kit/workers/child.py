# SPDX-License-Identifier: Apache-2.0
"""The program a worker process runs: take calls, run them, answer, until the pool hangs up.

It is started by its path, not as a part of the package, and imports only light parts of the standard library: a worker
is up as soon as Python is. So the words the pool and a worker exchange are defined here, too:

    pool → worker   a frame with the setup and the factory, then frames of calls
    worker → pool   a frame with the greeting, then, after some hundredths of a second each, frames of answers

    frame           mark, body length, number of blobs, a number | the length of each blob | the blobs
    a number        of the first call of the frame; coming back, above it: the nanoseconds the answers took
    blob            a pickled (args, kwargs) going in; a pickled (ok, value) coming back, in the order of the calls;
                    or a parcel of quick calls: a pickled (list of args, None), and a pickled (True, list of answers);
                    an empty one coming back: that call was not run, because the pool had taken it back

They share a page of memory, in which the worker says what it is running and since when (so that the pool can keep the
deadline), and the pool says which of the calls it has sent it takes back.
"""

from __future__ import annotations

import fcntl
import gc
import mmap
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

# Rewards that judge code are fond of disabling functions of `os`, and some replace others, so those that are needed
# here are taken now.
from os import _exit, close, fstat, getppid, read, register_at_fork, write
from pickle import PicklingError, dumps, loads
from select import POLLIN, poll
from struct import Struct
from struct import pack as pack_words
from struct import unpack_from as unpack_words
from time import monotonic_ns
from types import ModuleType
from typing import Any

HEADER = Struct("<8sQQQ")
"""What a frame begins with: the mark, the length of its body, the number of blobs, and a number, see above."""
MARK = b"\0rk-pool"
"""Tells a frame from what user code may have written into the connection."""
PAGE_WORDS = 3
"""The shared page: three words of 64 bits."""
RUNNING, TAKEN_FROM, TAKEN_TO = range(PAGE_WORDS)
"""The call that runs and since when (see `stamp`), 0 for none; the first call taken back; the one after the last."""
SERIAL_BITS = 16
"""Calls are counted from 0; this many low bits of the count tell apart all that a worker can have in hand."""
CLOSED_CODE = 76
"""The exit code of a worker after a call that closed the connection to the pool, or read from it."""

MAX_ANSWER = 64 << 20
"""Bytes of one answer."""

_OBJECT = b"\x93"
"""In what is pickled: a name that is imported where it is read, unless this is a byte of a text."""
_LONG_CALL_NS = 4_000_000
"""The answer of a call that took so long is sent at once: it would be dear to lose."""
_FLUSH_NS = 40_000_000
"""Other answers wait this long for company: a pool that is woken for each of them takes a core from a worker."""
_MANY_CALLS = 32
"""Of so many calls that came together, and are all there is, half the answers are sent early: the pool sends more calls
meanwhile."""
_READ_BYTES = 1 << 20
_HIGH_DESCRIPTOR = 200
_MAX_MESSAGE = 4_000
_MAX_FRAMES = 30
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9


def pack(blobs: Sequence[bytes], number: int = 0) -> bytes:
    """A frame that holds `blobs`."""
    lengths = pack_words(f"<{len(blobs)}Q", *map(len, blobs))
    body_length = len(lengths) + sum(map(len, blobs))
    return b"".join((HEADER.pack(MARK, body_length, len(blobs), number), lengths, *blobs))


def unpack(body: bytes, count: int) -> list[bytes]:
    """The blobs of a frame's body; a ValueError where they are not all of it."""
    at, blobs = 8 * count, []
    if len(body) < at or at + sum(unpack_words(f"<{count}Q", body)) != len(body):
        raise ValueError("the blobs of the frame are not what its header says")
    for length in unpack_words(f"<{count}Q", body):
        blobs.append(body[at : at + length])
        at += length
    return blobs


def stamp(serial: int) -> int:
    """A call and the time it starts in one word, so that it is written and read whole."""
    return monotonic_ns() // 1000 << SERIAL_BITS | serial & (1 << SERIAL_BITS) - 1


def encode(value: object) -> bytes:
    """Pickle `value`, with the code of what was defined in `__main__`, which the other process cannot import."""
    try:
        blob = dumps(value, 5)
        if b"__main__" not in blob:
            return blob
    except (PicklingError, AttributeError, TypeError):
        pass
    import cloudpickle  # type: ignore[import-untyped]

    return bytes(cloudpickle.dumps(value, 5))


def describe(error: BaseException) -> tuple[str, str, str]:
    """The class name, message and traceback of an exception, whatever its own methods do."""
    import traceback

    message = trace = ""
    with suppress(Exception):
        message = str(error)[:_MAX_MESSAGE]
    if error.__traceback__ is not None:
        error = error.with_traceback(error.__traceback__.tb_next)  # without the frame of this program
    with suppress(Exception):
        trace = "".join(traceback.format_exception(error, limit=-_MAX_FRAMES))
    return type(error).__name__, message, trace


def _unsendable(value: object, error: BaseException) -> bytes:
    kind, message, trace = describe(error)
    problem = (
        f"its result, a {type(value).__name__!r}, cannot be pickled ({kind}: {message}); return plain data instead"
    )
    return dumps((False, ("PicklingError", problem, trace)), 5)


def _one_of_many(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[bool, Any]:
    """What one call of a parcel came to."""
    try:
        return True, function(*args)
    except MemoryError:  # the rest of the parcel is lost with it, and is tried again elsewhere
        raise
    except BaseException as error:  # noqa: BLE001 - a named boundary: user code may raise anything
        return False, describe(error)


class _Service:
    """The worker's side of the conversation."""

    def __init__(self, channel: int, page: memoryview[int]) -> None:
        self._channel = channel
        self._identity = self._channel_now()
        self._page = page
        self._waiting = poll()
        self._waiting.register(channel, POLLIN)
        self._spent = False
        self._is_fork = False
        register_at_fork(after_in_child=self._leave)

    def _leave(self) -> None:
        """In a fork that user code made: it has no part in the conversation."""
        self._is_fork = True
        close(self._channel)

    def _read(self, length: int) -> bytes:
        parts = []
        while length:
            part = read(self._channel, min(length, _READ_BYTES))
            if not part:
                return b""
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def receive(self, serial: int = 0) -> list[bytes]:
        """The blobs of the next frame, which begins with call `serial`; none when the pool has hung up.

        Another frame than that: a call has read from the connection, and answers would be taken for those of others.
        """
        self._page[RUNNING] = 0
        header = self._read(HEADER.size)
        if not header:
            return []
        mark, length, count, first = HEADER.unpack(header)
        if mark != MARK or first != serial:
            _exit(CLOSED_CODE)
        body = self._read(length)
        return unpack(body, count) if body else []

    def send(self, blobs: Sequence[bytes], worked_ns: int = 0, first: int = 0) -> None:
        """Write a frame, all of it; `first` is the number of the first call that it answers."""
        rest = memoryview(pack(blobs, worked_ns << SERIAL_BITS | first & (1 << SERIAL_BITS) - 1))
        try:
            while rest:
                rest = rest[write(self._channel, rest) :]
        except BrokenPipeError:  # the pool has hung up: nobody is waiting
            _exit(0)

    def serve(self, function: Callable[..., Any]) -> None:
        """Run calls until the pool hangs up, or until the memory that is left cannot be relied on."""
        serial = 0
        answers: list[bytes] = []
        since = began = now = monotonic_ns()
        while not self._spent and (calls := self.receive(serial)):
            if not answers:
                since = began = now = monotonic_ns()
            half = len(calls) // 2 if len(calls) >= _MANY_CALLS else -1
            for done, call in enumerate(calls):
                long = now - since > _FLUSH_NS or now - began > _LONG_CALL_NS
                if answers and (long or (done == half and self._has_no_more())):
                    self._flush(answers, now - since, serial)
                    answers, since = [], monotonic_ns()
                    now = since
                began = now
                answers.append(self._answer(function, call, serial))
                serial += 1
                now = monotonic_ns()
                if self._spent:
                    break
            if self._has_no_more():
                self._flush(answers, now - since, serial)
                answers = []
        if answers:
            self._flush(answers, now - since, serial)

    def _has_no_more(self) -> bool:
        """Whether the pool has sent nothing beyond what was received, so that it is time to tell what is done."""
        return not self._waiting.poll(0)

    def _flush(self, answers: Sequence[bytes], worked_ns: int, behind: int) -> None:
        self._page[RUNNING] = 0  # the deadline of a call does not cover waiting for a busy pool
        self.send(answers, worked_ns, behind - len(answers))

    def _answer(self, function: Callable[..., Any], call: bytes, serial: int) -> bytes:
        page = self._page
        page[RUNNING] = stamp(serial)  # first say so, then look: see WorkerProcess.take_back
        if page[TAKEN_FROM] <= serial < page[TAKEN_TO]:
            return b""
        try:
            args, kwargs = loads(call)
            value = [_one_of_many(function, each) for each in args] if kwargs is None else function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - a named boundary: user code may raise anything
            self._spent = isinstance(error, MemoryError)
            answer = dumps((False, describe(error)), 5)
        else:
            answer = self._encoded(value)
        self._check_channel()
        return answer

    def _check_channel(self) -> None:
        """End here and now if the call was forked or has closed the channel, while the page still names it."""
        if self._is_fork:
            _exit(0)
        try:
            is_ours = self._channel_now() == self._identity
            self._waiting.poll(0)
        except OSError:
            is_ours = False
        if not is_ours:  # closed, or something else has its number now, or nobody may wait for it any more
            _exit(CLOSED_CODE)

    def _channel_now(self) -> tuple[int, int]:
        status = fstat(self._channel)
        return status.st_dev, status.st_ino

    def _encoded(self, value: object) -> bytes:
        try:
            answer = encode((True, value))
            if len(answer) > MAX_ANSWER:
                raise ValueError(f"it has {len(answer) >> 20} MB, and {MAX_ANSWER >> 20} MB are taken")
            if _OBJECT in answer:  # what can hang or raise when it is read does so here, within the call's time
                loads(answer)
            return answer
        except BaseException as error:  # noqa: BLE001 - a named boundary: pickling runs user code
            self._spent = isinstance(error, MemoryError)
            return _unsendable(value, error)


def die_with_parent(parent: int) -> None:
    """Ask Linux for a SIGKILL when the parent ends; elsewhere the closed channel must do."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if getppid() != parent:  # it ended before it was asked for
        _exit(1)


def _give_way() -> None:
    """Have Linux let the pool go on when it wakes this process: it may have something to send to another worker.

    This process's share of the processor stays what it is.
    """
    if sys.platform == "linux":
        import os

        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _limit(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (limit, limit))


def _move_up(descriptor: int) -> int:
    """Move a descriptor out of the way of code that closes or reuses low ones, and keep it from programs it starts."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = _HIGH_DESCRIPTOR if soft == resource.RLIM_INFINITY else min(_HIGH_DESCRIPTOR, soft - 1)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, room)
    close(descriptor)
    return moved


def _shared_page(descriptor: int) -> memoryview[int]:
    page = memoryview(mmap.mmap(descriptor, 8 * PAGE_WORDS)).cast("Q")
    close(descriptor)
    return page


def _make(setup: bytes, factory: bytes) -> Callable[..., Any]:
    path, memory_mb = loads(setup)
    sys.path[:] = path
    _limit(resource.RLIMIT_CORE, 0)
    if memory_mb is not None:
        _limit(resource.RLIMIT_DATA, memory_mb << 20)
    function: Callable[..., Any] = loads(factory)()
    return function


def main() -> None:
    """Greet the pool with a working callable or the reason why there is none, then serve."""
    parent, channel, page = map(int, sys.argv[2:5])
    if parent:
        die_with_parent(parent)
    _give_way()
    sys.argv[:] = [""]
    sys.modules["__main__"] = ModuleType("__main__")  # the user's names must not meet those of this file
    service = _Service(_move_up(channel), _shared_page(page))
    orders = service.receive()
    if not orders:
        return
    try:
        function = _make(*orders)
    except BaseException as error:  # noqa: BLE001 - a named boundary: the factory may raise anything
        service.send([dumps((False, describe(error)), 5)])
        return
    gc.freeze()  # what was loaded stays: no collection needs to look at it again, nor the end of this process
    service.send([dumps((True, None), 5)])
    service.serve(function)


if __name__ == "__main__":
    _program = sys.modules["__main__"]  # keeps this file's names alive while another module stands in for it
    main()
