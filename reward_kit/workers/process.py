# SPDX-License-Identifier: Apache-2.0
"""One worker process as the pool sees it: started, spoken to, watched, and buried."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from reward_kit.redaction import blot
from reward_kit.workers import child
from reward_kit.workers.outcomes import Outcome, Raised

__all__ = [
    "Launch",
    "OutputLog",
    "PendingCall",
    "Running",
    "WorkerProcess",
    "how_it_ended",
    "kill_group",
    "standard_error",
]

_POLL_SECONDS = 0.002
_KILL_SECONDS = 10.0
_DRAIN_SECONDS = 0.5
_OUTPUT_BYTES = 1 << 16
_PROGRESS_BYTES = 4096
"""So much at a time of a frame that is not whole yet is a worker that says something, and no silence."""
_MOST_OF_A_BLOB = child.MAX_ANSWER + (1 << 20)
"""An answer, or a failure instead of one that is too large."""


class PendingCall:
    """One call on its way, or a parcel of them: the arguments, pickled, and the future that gets the outcome."""

    __slots__ = ("alone", "calls", "future", "losses", "payload")

    def __init__(self, payload: bytes, future: asyncio.Future[Outcome], calls: int = 1) -> None:
        self.payload = payload
        self.future = future
        self.calls = calls
        """How many it stands for."""
        self.losses = 0
        """Workers that were lost when this call was next, or in the middle of it."""
        self.alone = False
        """Whether it must be a worker's only call, so that what goes wrong is known to be its doing."""

    def settle(self, outcome: Outcome) -> None:
        """Hand over the outcome, unless nobody waits for it any more."""
        if not self.future.done():
            self.future.set_result(outcome)


class Running(NamedTuple):
    """The call a worker is in the middle of."""

    serial: int
    started: float
    """On the clock of `time.monotonic`."""


class Launch(NamedTuple):
    """What a process is started with."""

    name: str
    factory: bytes
    """The pickled factory of the callable."""
    path: list[str]
    """What becomes `sys.path`."""
    cwd: str | None = None
    """Where it is; None: where this process is."""
    memory_mb: int | None = None
    output: int | None = None
    """Where user code's standard output and error go; None: to this process's standard error."""
    variables: Mapping[str, str] = {}
    """Of the environment, beside those of this process."""
    tied: bool = True
    """Whether it is killed as soon as the thread ends that started it; else it ends when nobody speaks to it."""
    passed: tuple[int, ...] = ()
    """Descriptors that it holds beside its connection, by the same numbers."""

    @property
    def orders(self) -> list[bytes]:
        """What it is told first."""
        return [pickle.dumps((self.path, self.memory_mb), 5), self.factory]

    def start(self) -> tuple[socket.socket, mmap.mmap, subprocess.Popen[bytes]]:
        """Start a process in a session of its own: our end of its connection, the shared page, and the process."""
        ours, theirs = socket.socketpair()
        page = _new_page()
        try:
            with theirs:
                process = self._spawn(theirs.fileno(), page)
            return ours, mmap.mmap(page, 8 * child.PAGE_WORDS), process
        except OSError:
            ours.close()
            raise
        finally:
            os.close(page)

    def _spawn(self, channel: int, page: int) -> subprocess.Popen[bytes]:
        parent = os.getpid() if self.tied else 0
        program = [sys.executable, "-u", "-P", child.__file__, self.name, str(parent), str(channel), str(page)]
        output = standard_error() if self.output is None else self.output
        return subprocess.Popen(
            program,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(channel, page, *self.passed),
            cwd=self.cwd,
            env={**os.environ, **self.variables},
            start_new_session=True,
        )


def standard_error() -> int:
    """Where what other processes print may go: this process's standard error, where it has one."""
    try:
        os.fstat(2)
    except OSError:  # this process has none
        return subprocess.DEVNULL
    return 2


class OutputLog:
    """What user code prints, on its way into a file: credentials that are known are taken out of it.

    Workers write into a pipe, and a thread carries it over. `descriptor` is for them.
    """

    def __init__(self, path: Path) -> None:
        """Append to `path`, which is made where it is not there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._pipe, self.descriptor = os.pipe()
        self._carrier = threading.Thread(target=self._carry, name="reward-kit output", daemon=True)
        self._carrier.start()

    def _carry(self) -> None:
        rest = b""
        with self._file:
            while block := os.read(self._pipe, _OUTPUT_BYTES):
                lines, newline, rest = (rest + block).rpartition(b"\n")
                self._write(lines + newline)
                if len(rest) > _OUTPUT_BYTES:  # a line without an end
                    self._write(rest)
                    rest = b""
            self._write(rest)
        os.close(self._pipe)

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk costs what is printed, and no more
            text = blot(data.decode(errors="surrogateescape"))
            self._file.write(text.encode(errors="surrogateescape"))

    def close(self) -> None:
        """Wait until what was printed is in the file; not for a process that a call left behind and that holds on."""
        os.close(self.descriptor)
        self._carrier.join(_DRAIN_SECONDS)


def _new_page() -> int:
    """A descriptor of memory that can be shared with another program."""
    size = 8 * child.PAGE_WORDS
    if sys.platform == "linux":
        page = os.memfd_create("reward-kit-worker")
    else:
        with tempfile.TemporaryFile() as file:
            page = os.dup(file.fileno())
    os.truncate(page, size)
    return page


class WorkerProcess(asyncio.Protocol):
    """A child process, what it has been sent, and what is known of it.

    `on_frame(worker, blobs, worked_ns)` is called for each frame it sends, `on_lost(worker)` once when it hangs up.
    """

    def __init__(
        self,
        launch: Launch,
        on_frame: Callable[[WorkerProcess, list[bytes], int], None],
        on_lost: Callable[[WorkerProcess], None],
    ) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self.sent: deque[PendingCall | None] = deque()
        """Calls it has not answered yet, in order; None stands for one that was taken back."""
        self.first = 0
        """The serial number of the first of them."""
        self.greeted = False
        """Whether its factory has made the callable."""
        self.answered = False
        """Whether it has ever answered a call."""
        self.complaint: Raised | None = None
        """Why its factory could not make the callable."""
        self.stuck = False
        """Whether it is in a long call, so that nothing should be queued behind it."""
        self.quiet_since: float | None = None
        """When it was first seen to do nothing although it has calls to do."""
        self.born = time.monotonic()
        self._taken_from = self._taken_to = -1
        self._asked_back: set[int] = set()
        """Serial numbers of calls that it may pass over."""
        self._unread = bytearray()
        self.garbled = ""
        """What user code has done to the connection, where it has."""
        self._lost = asyncio.Event()
        self._transport: asyncio.WriteTransport | None = None
        self._socket, self._page_map, self._process = launch.start()
        self._socket.setblocking(False)
        self._page = memoryview(self._page_map).cast("Q")
        self._connecting = asyncio.get_running_loop().create_task(self._connect(launch))

    async def _connect(self, launch: Launch) -> None:
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=self._socket)
        self._write(launch.orders)

    # ── the conversation ─────────────────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to write to."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        """Pass on every whole frame received so far."""
        if self.garbled:
            return
        unread, start = self._unread, child.HEADER.size
        unread += data
        while len(unread) >= start:
            mark, length, count, number = child.HEADER.unpack_from(unread)
            expected = max(1, len(self.sent))  # one where it greets
            is_next = (number ^ self.first) & (1 << child.SERIAL_BITS) - 1 == 0
            if mark != child.MARK or not is_next or not 0 < count <= expected or length > count * _MOST_OF_A_BLOB:
                self.cut_off_as_garbled()
                return
            end = start + length
            if len(unread) < end:
                if len(data) >= _PROGRESS_BYTES:
                    self.quiet_since = None
                return
            try:
                blobs = child.unpack(bytes(memoryview(unread)[start:end]), count)
            except ValueError:
                self.cut_off_as_garbled()
                return
            del unread[:end]
            self._on_frame(self, blobs, number >> child.SERIAL_BITS)
            if self.garbled:
                return

    def cut_off_as_garbled(self, what: str = "wrote into its connection to the pool") -> None:
        """End a worker that says what no worker says, or nothing more: user code uses the connection."""
        self.garbled = what
        self._unread.clear()
        self.kill()
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the pool: whatever the worker managed to say has been heard."""
        self._lost.set()
        self._on_lost(self)

    def _write(self, blobs: Sequence[bytes], serial: int = 0) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(child.pack(blobs, serial))

    def send(self, calls: Sequence[PendingCall]) -> None:
        """Queue `calls` behind those it has."""
        serial = self._end
        self.sent.extend(calls)
        self._write([call.payload for call in calls], serial)

    def may_have_said(self, blobs: Sequence[bytes]) -> bool:
        """Whether it answers calls that it has, and passes over none but those that it was told to."""
        empty = (serial for serial, blob in enumerate(blobs, self.first) if not blob)
        return len(blobs) <= len(self.sent) and self._asked_back.issuperset(empty)

    def answer_for(self) -> PendingCall | None:
        """The call that the next answer belongs to; None where it was taken back."""
        self._asked_back.discard(self.first)
        self.first += 1
        return self.sent.popleft()

    # ── what it is doing ─────────────────────────────────────────────────────────────────────────────────────────────

    def running(self) -> Running | None:
        """The call it is in the middle of, or ended in the middle of."""
        word = self._page[child.RUNNING]
        if not word:
            return None
        ahead = (word - self.first) & (1 << child.SERIAL_BITS) - 1
        return Running(self.first + ahead, (word >> child.SERIAL_BITS) / 1e6)

    @property
    def is_in_a_frame(self) -> bool:
        """Whether it has begun to say something that is not whole."""
        return bool(self._unread)

    def silence(self) -> float:
        """How long it has done nothing, as far as it was looked at, although it has calls to do."""
        if not self.sent:
            self.quiet_since = None
            return 0.0
        self.quiet_since = self.quiet_since or time.monotonic()
        return time.monotonic() - self.quiet_since

    def take_back(self, running: Running) -> list[PendingCall]:
        """Take back the calls behind a long one. Asks first; what was not begun by the next time is returned.

        The worker announces a call before it looks whether that call was taken back, and here the order is the other
        way round with a pause between. So when it is still in the same call at the second look, it will pass over the
        rest. In every other case its answers tell which calls it passed over.
        """
        self.stuck = True
        if (self._taken_from, self._taken_to) != (running.serial + 1, self._end):
            self._ask_back(running.serial + 1)
            return []
        return self._taken_back(running)

    def give_up_half(self) -> list[PendingCall]:
        """The later half of the calls it has not begun, for a worker that has nothing to do.

        It is looked at once more after it was asked: what it has begun meanwhile stays with it, and where that cannot
        be seen, its answers tell what it passed over.
        """
        running = self.running()
        if running is None:  # it has just been woken, or is about to tell what it has done
            return []
        held_to = self._end if running.serial >= self._taken_to else self._taken_from
        half = (held_to - running.serial - 1) // 2
        if half < 1:
            return []
        self._ask_back(held_to - half)
        running = self.running()
        return self._taken_back(running) if running is not None else []

    @property
    def _end(self) -> int:
        """The serial number of the call it will be sent next."""
        return self.first + len(self.sent)

    def _ask_back(self, start: int) -> None:
        """Have it pass over every call from `start` on."""
        self._taken_from, self._taken_to = start, self._end
        self._asked_back.update(range(start, self._end))
        self._page[child.TAKEN_TO] = self._taken_to
        self._page[child.TAKEN_FROM] = start

    def _taken_back(self, running: Running) -> list[PendingCall]:
        begun = max(self._taken_from, running.serial + 1) - self.first
        behind = [self.sent[at] for at in range(begun, len(self.sent))]
        for at in range(begun, len(self.sent)):
            self.sent[at] = None
        return [call for call in behind if call is not None]

    def unanswered(self) -> Iterator[tuple[int, PendingCall]]:
        """The calls it still has, each with its serial number."""
        return ((serial, call) for serial, call in enumerate(self.sent, self.first) if call is not None)

    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    # ── its end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def hang_up(self) -> None:
        """Say that there is nothing more to do: an idle worker ends by itself."""
        if self._transport is not None:
            self._transport.close()

    def kill(self) -> None:
        """Kill the process and its group. The group's number is not given away while anyone is left in it."""
        kill_group(self._process.pid)

    async def bury(self, grace: float) -> str:
        """Give the process `grace` seconds to end, kill what is left of its group, and say how it ended."""
        ended = await self._ends_within(grace)
        self.kill()
        await self._ends_within(_KILL_SECONDS)
        with contextlib.suppress(TimeoutError):  # the worker's last words; a fork of its may hold the line open
            await asyncio.wait_for(asyncio.gather(self._connecting, self._lost.wait()), _DRAIN_SECONDS)
        self._cut_off()
        if self.garbled:
            return self.garbled
        return how_it_ended(self._process.returncode if ended else child.CLOSED_CODE)

    def _cut_off(self) -> None:
        # Not where the line is closed already: asyncio fails if what was to be sent was sent after the closing.
        if self._transport is not None and not self._lost.is_set():
            self._transport.abort()

    async def _ends_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.has_ended():
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    def release(self) -> None:
        """Give back everything it holds here, at once; harmless when it is buried already."""
        if self._process.returncode is None:
            self.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILL_SECONDS)
        self._connecting.cancel()
        if self._transport is None:
            self._socket.close()
        self._cut_off()
        self._page.release()
        self._page_map.close()


def kill_group(leader: int) -> None:
    """Kill a process that leads a group, and all that it has started in it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses where all of them have ended
        os.killpg(leader, signal.SIGKILL)


def how_it_ended(code: int) -> str:
    """The end of a process by its exit code; reads on from "the process"."""
    if code == child.CLOSED_CODE:
        return "closed its connection to the pool"
    if code >= 0:
        return f"exited with code {code}"
    hint = "out of memory?" if code == -signal.SIGKILL else signal.strsignal(-code) or "unknown"
    return f"was killed by signal {-code} ({hint})"
