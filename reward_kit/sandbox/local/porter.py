# SPDX-License-Identifier: Apache-2.0
"""The porter of a sandbox: starts processes in it, waits for them, ends them, carries files in and out.

    backend ── spawn · read · write · end ──▶ porter ── posix_spawn ──▶ bash …
            ◀── exited ───────────────────

It is in all of the sandbox's namespaces, has no more rights than anybody there and is in its control group; but it is
not in its pid namespace, so nothing inside can see it, signal it or look into it. What it starts is inside. It is the
parent of the shell and of every standalone command, so their exit status is what the kernel tells it.

For a sandbox without isolation it is started by itself and has nowhere to go in; then it adopts every orphan.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import socket
import stat
import sys
from contextlib import suppress

from reward_kit.sandbox.linux.memory import MemoryWatch
from reward_kit.sandbox.linux.processes import Roll
from reward_kit.sandbox.local.messages import Inbox, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ABORT_SIGNAL", "IGNORED_BY_PYTHON", "Porter", "enter_limits", "main"]

ABORT_SIGNAL = 62
"""Tells a session's shell to give up its command."""

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
"""Signals that programs in a sandbox get with their default meaning back: what is ignored stays so over exec."""

_CANNOT_EXECUTE, _CANNOT_FORK = 127, 126
_FIRST_TO_GO, _LAST_TO_GO = b"500", b"0"
_CHUNK = 1 << 20


class Porter:
    """Serves one sandbox until the backend hangs up."""

    def __init__(self, roll: Roll) -> None:
        """Made outside; `serve` is called inside."""
        self._roll = roll
        self._children: dict[int, int] = {}
        self._memory: MemoryWatch | None = None
        self._serving = True
        # When memory runs out, the processes of the sandbox go before this one does.
        self._badness = -1
        with suppress(OSError):
            self._badness = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def watch_memory(self, most: int, *, own_network: bool) -> None:
        """From here on, inside, see to it that all processes together have no more than `most` bytes.

        Sockets count where the sandbox has a network of its own, so that they are nobody else's.
        """
        self._roll.look_inside()
        exhausted = {"event": "exhausted", "serial": 0}
        self._memory = MemoryWatch(
            self._roll.inside,
            most,
            lambda: self._say(exhausted),
            stores=("/dev/shm",),
            has_segments=True,
            has_sockets=own_network,
        )

    def serve(self, channel: socket.socket) -> None:
        """Do what is asked through `channel` until the backend hangs up, then end what is left."""
        self._channel = channel
        inbox = Inbox(channel)
        poll = select.poll()
        poll.register(channel, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while self._serving:
            pause = self._memory.pause if self._memory else None
            ready = {descriptor for descriptor, _ in poll.poll(None if pause is None else pause * 1000)}
            if self._memory and pause is not None:
                self._memory.look_if_due()
            if self._woken in ready:
                self._reap()
            if channel.fileno() in ready:
                self._serving = inbox.receive()
                for request, descriptors in inbox.messages():
                    self._answer(request, descriptors)
        self._roll.kill_since(0, spared=set())

    def _answer(self, request: dict[str, Any], descriptors: list[int]) -> None:
        try:
            match request["do"]:
                case "spawn":
                    self._spawn(request, descriptors)
                case "read":
                    self._work(request, lambda: _send_content(request["path"], descriptors[0], request["most"]))
                case "write":
                    self._work(request, lambda: _take_content(request["path"], descriptors[0]))
                case "stop":
                    self._work(request, self._roll.stop)
                case "go_on":
                    self._work(request, self._roll.go_on)
                case "end":
                    self._end(request)
                case "begin_turn" if self._memory:
                    self._memory.begin()
                case "end_turn" if self._memory:
                    self._memory.end()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _say(self, message: dict[str, Any]) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            send(self._channel, message)

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _spawn(self, request: dict[str, Any], descriptors: list[int]) -> None:
        places = request["places"]
        try:
            self._go_to(request)
            self._be_bad(_FIRST_TO_GO)
            process = os.posix_spawn(
                request["program"],
                request["arguments"],
                request["environment"],
                file_actions=[(os.POSIX_SPAWN_DUP2, *pair) for pair in zip(descriptors, places, strict=True)],
                setsid=True,
                setsigmask=(),
                setsigdef=IGNORED_BY_PYTHON,
            )
            self._children[process] = request["serial"]
        except OSError as error:
            if self._roll.is_ending():  # nothing can be started in it any more: it is not the command that failed
                self._serving = False
                return
            code = _CANNOT_FORK if error.errno in (errno.EAGAIN, errno.ENOMEM) else _CANNOT_EXECUTE
            os.write(descriptors[places.index(2)], f"bash: cannot be started: {error.strerror}\n".encode())
            self._say({"event": "exited", "serial": request["serial"], "status": code << 8, "cpu": 0.0})
        finally:
            self._be_bad(_LAST_TO_GO)

    def _be_bad(self, how_much: bytes) -> None:
        if self._badness >= 0:
            os.write(self._badness, how_much)

    def _go_to(self, request: dict[str, Any]) -> None:
        """Go to where another process is; else to a directory by its name, which is made; else home."""
        beside = self._process_of(request.get("beside"))
        if beside and (directory := self._roll.directory_of(beside)) is not None:
            try:
                os.fchdir(directory)
                return
            finally:
                os.close(directory)
        for path in (request["directory"], request["environment"].get("HOME", "/"), "/"):
            with suppress(OSError):
                os.makedirs(path, exist_ok=True)
                os.chdir(path)
                return

    def _process_of(self, serial: int | None) -> int:
        return next((process for process, known in self._children.items() if known == serial), 0)

    def _end(self, request: dict[str, Any]) -> None:
        """`kill` a process and all that started since; have a shell `abort` its command; or `empty` the sandbox."""
        process = self._process_of(request["serial"])
        others = set(self._children) - {process}
        with suppress(OSError):
            match request["mode"]:
                case "empty":
                    self._roll.kill_since(0, spared=set())
                case "abort" if process:
                    os.kill(process, ABORT_SIGNAL)  # first, so that it does not go on with the command's next part
                    self._roll.kill_since(request["since"], spared=others, but=process)
                case "kill" if process:
                    os.kill(process, signal.SIGKILL)
                    self._roll.kill_since(request["since"], spared=others)

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)
        with suppress(ChildProcessError):
            while True:
                process, status, usage = os.wait4(-1, os.WNOHANG)
                if not process:
                    return
                if self._roll.is_ending():
                    # It was the sandbox that ended, and no command: nobody is to take it for one. Where a command could
                    # not start a process any more, it may have ended by itself, with any status.
                    self._serving = False
                    return
                if (serial := self._children.pop(process, None)) is not None:
                    cpu = usage.ru_utime + usage.ru_stime
                    self._say({"event": "exited", "serial": serial, "status": status, "cpu": cpu})

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _work(self, request: dict[str, Any], work: Any) -> None:
        """Do work here, as whoever lives here; the exit code is the errno of what went wrong."""
        code = 0
        try:
            work()
        except OSError as error:
            code = error.errno or errno.EIO
        self._say({"event": "exited", "serial": request["serial"], "status": code << 8, "cpu": 0.0})


def _size(descriptor: int) -> int:
    """The size of a regular file; anything else could hang, or have no end."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL, "not a regular file")
    return found.st_size


def _send_content(path: str, output: int, most: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if _size(descriptor) > most:
            raise OSError(errno.EFBIG, "too large")
        while most > 0 and (data := os.read(descriptor, min(most, _CHUNK))):
            most -= len(data)
            _write_all(output, data)
    finally:
        os.close(descriptor)


def _take_content(path: str, source: int) -> None:
    os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o644)
    try:
        _size(descriptor)
        os.ftruncate(descriptor, 0)
        while data := os.read(source, _CHUNK):
            _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def enter_limits(rlimits: dict[str, int]) -> None:
    """Be bounded, with all that will be started."""
    os.umask(0o022)
    for name, value in rlimits.items():
        _limit(vars(resource)[name], value)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    # A process over its CPU time gets a second to hear of it before it is killed.
    top = value + 1 if kind == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else value
    resource.setrlimit(kind, (value, top))


def main() -> None:
    """Serve a sandbox without isolation: the arguments are its socket, then pairs of rlimits and values."""
    import json

    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends when the backend hangs up, whatever is typed at a terminal
    if sys.platform == "linux":
        from reward_kit.sandbox.linux.syscalls import become_subreaper

        become_subreaper()
    enter_limits(json.loads(sys.argv[2]))
    Porter(Roll()).serve(channel)
