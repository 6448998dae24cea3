# SPDX-License-Identifier: Apache-2.0
"""A process that loads something once, and forks for each who asks: what is loaded need not be loaded again.

`hold` is the factory of a `Host`. On a socket of its own it is told to fork or to kill, and tells which forks have
ended. Each fork gets a socket on which it serves:

    parent → host    COMMAND with "open" and a socket, or "kill" and a process id
    host → parent    a frame (True, threads), or (False, class and message of what was raised); then (pid, status)

    frame            eight bytes of length, then a pickled value

Where what was loaded has started threads, which no fork has, the process serves once, by itself.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from reward_kit.workers.child import describe, die_with_parent

__all__ = ["COMMAND", "KILL", "LENGTH", "OPEN", "frame", "hold", "in_a_fork"]

LENGTH = struct.Struct("<Q")
COMMAND = struct.Struct("<cq")
OPEN, KILL = b"o", b"k"

Serve = Callable[[socket.socket], int]
"""Serves whoever holds the other end of a socket; the exit code of the process."""


def frame(value: object) -> bytes:
    """A value as it is sent."""
    blob = pickle.dumps(value, 5)
    return LENGTH.pack(len(blob)) + blob


def in_a_fork(work: Callable[[], int], code: int) -> int:
    """The exit code of a fork that ends with what `work` returns, or else with `code`; below zero, it was killed."""
    child = os.fork()
    if child == 0:
        try:
            code = work()
        finally:
            os._exit(code)  # skips everything that could still happen here, exceptions too
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def hold(load: Callable[[], Serve], control: int) -> NoReturn:
    """Load, and fork until the other end of `control` hangs up."""
    line = socket.socket(fileno=control)
    try:
        serve = load()
        threads = _threads()
        line.sendall(frame((True, threads)))
    except BaseException as error:  # noqa: BLE001 - a named boundary: what is loaded may raise anything
        line.sendall(frame((False, *describe(error)[:2])))
        os._exit(1)
    gc.freeze()  # what was loaded stays, and collections in the forks need not touch it
    if threads > 1:  # a fork would be missing some
        _, descriptors, _, _ = socket.recv_fds(line, COMMAND.size, 1)
        if descriptors:
            os._exit(serve(socket.socket(fileno=descriptors[0])))
    else:
        _Forks(line, serve).run()
    os._exit(0)


class _Forks:
    """The forks that are alive."""

    def __init__(self, control: socket.socket, serve: Serve) -> None:
        self._control = control
        self._serve = serve
        self._alive: set[int] = set()
        self._woken, waker = os.pipe()
        for descriptor in (self._woken, waker):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # so that the descriptor below is written to
        signal.set_wakeup_fd(waker)

    def run(self) -> None:
        """Obey until the parent hangs up; then the forks are ended, too."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._control, selectors.EVENT_READ)
            waiting.register(self._woken, selectors.EVENT_READ)
            while True:
                for key, _ in waiting.select():
                    if key.fileobj is self._control:
                        if not self._obey():
                            return
                    else:
                        self._reap()

    def _obey(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, COMMAND.size, 1)
        while data and len(data) < COMMAND.size:
            data += self._control.recv(COMMAND.size - len(data))
        if not data:
            for pid in self._alive:
                _kill(pid)
            return False
        command, number = COMMAND.unpack(data)
        if command == KILL:
            if number in self._alive:
                _kill(number)
        else:
            self._fork(descriptors[0])
        return True

    def _fork(self, channel: int) -> None:
        host = os.getpid()
        pid = os.fork()
        if pid:
            os.close(channel)
            self._alive.add(pid)
            return
        code = 1
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            die_with_parent(host)
            code = self._serve(socket.socket(fileno=channel))
        finally:
            os._exit(code)

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._alive.discard(ended[0])
                with suppress(OSError):
                    self._control.sendall(frame(ended))


def _kill(pid: int) -> None:
    """Kill a fork, and whatever it has started in its session's group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _threads() -> int:
    """How many threads this process has: a fork takes only one of them along, and the locks of all."""
    if sys.platform == "linux":
        return len(os.listdir("/proc/self/task"))
    import threading

    return threading.active_count()
