# SPDX-License-Identifier: Apache-2.0
"""The program that holds worlds in processes of their own: it loads an environment once, and forks for each world.

It is started by its path. On standard input it gets its orders; on a socket it is told to fork or to kill, and tells
which worlds have ended. Each world gets a socket of its own, on which it is asked and answers:

    parent → host    COMMAND with "open" and a socket, or "kill" and a process id
    host → parent    a frame (True, threads), or (False, class and message of what was raised); then (pid, status)
    parent → world   frames (number, operation, arguments)
    world → parent   a frame with its process id; then frames (number, outcome, value, tools): outcome is a word of
                     OUTCOMES, tools are the offered tools where they are others than before, else None; with a number
                     below zero the world asks, and is answered (number, "reply", (outcome, value))

    frame            eight bytes of length, then a pickled value

A world that was forked begins with the modules that the environment has loaded, and with random generators seeded by
the sample's id: two worlds of one sample begin alike, share nothing, and can be made again.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import socket
import struct
import sys
from contextlib import suppress
from typing import Any

LENGTH = struct.Struct("<Q")
COMMAND = struct.Struct("<cq")
OPEN, KILL = b"o", b"k"
DONE, TOOL_ERROR, RAISED, ASKS = OUTCOMES = ("done", "tool_error", "raised", "asks")
MOST_BYTES = 64 << 20
"""Of one frame that a world sends."""
_MOST_TEXT = 4_000


def frame(value: object) -> bytes:
    """A value as it is sent."""
    blob = pickle.dumps(value, 5)
    return LENGTH.pack(len(blob)) + blob


def describe(error: BaseException) -> tuple[str, str]:
    """The class name and the message of an exception, whatever its own methods do."""
    message = ""
    with suppress(Exception):
        message = str(error)[:_MOST_TEXT]
    return type(error).__name__, message


# ── the host ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Host:
    def __init__(self, control: socket.socket, environment: Any) -> None:
        self._control = control
        self._environment = environment
        self._alive: set[int] = set()
        self._woken, waker = os.pipe()
        for descriptor in (self._woken, waker):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # so that the descriptor below is written to
        signal.set_wakeup_fd(waker)

    def run(self) -> None:
        """Obey until the parent hangs up; then the worlds are ended, too."""
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
            die_with(host)
            code = serve(self._environment, socket.socket(fileno=channel))
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
    """Kill a world, and whatever it has started in its session's group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def die_with(parent: int) -> None:
    """Ask Linux for a SIGKILL when the parent ends; elsewhere the closed socket must do."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before it was asked for
        os._exit(1)


# ── one world ────────────────────────────────────────────────────────────────────────────────────────────────────────


def serve(environment: Any, channel: socket.socket) -> int:
    """Be one world until the parent hangs up."""
    import asyncio

    from reward_kit.agent.hosted_world import HostedWorld

    return asyncio.run(HostedWorld(environment, channel).run())


# ── the program ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _load(factory: bytes, memory_mb: int | None) -> Any:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if memory_mb is not None:
        limit = memory_mb << 20
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard < 0 else min(limit, hard), hard))
    import reward_kit.agent.hosted_world  # noqa: F401  # so that no fork has to load it

    return pickle.loads(factory)()


def _threads() -> int:
    """How many threads this process has: a fork takes only one of them along, and the locks of all."""
    if sys.platform == "linux":
        return len(os.listdir("/proc/self/task"))
    import threading

    return threading.active_count()


def main() -> None:
    """Load the environment, say whether that worked, then serve."""
    parent, control = int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    die_with(parent)
    path, factory, memory_mb = pickle.load(sys.stdin.buffer)
    sys.argv[:] = [""]
    sys.path[:] = path
    try:
        environment = _load(factory, memory_mb)
        threads = _threads()
        control.sendall(frame((True, threads)))
    except BaseException as error:  # noqa: BLE001 - a named boundary: the factory may raise anything
        control.sendall(frame((False, *describe(error))))
        return
    import gc

    gc.freeze()  # what was loaded stays, and collections in the forks need not touch it
    host = _Host(control, environment)
    if threads > 1:  # a fork would be missing some: this process is the world, and the only one
        _, descriptors, _, _ = socket.recv_fds(control, COMMAND.size, 1)
        if descriptors:
            signal.set_wakeup_fd(-1)
            os._exit(serve(environment, socket.socket(fileno=descriptors[0])))
    else:
        host.run()


if __name__ == "__main__":
    main()
