# SPDX-License-Identifier: Apache-2.0
"""What these tests share: a factory of a callable that does as it is told, and a look at the process table."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def obedient() -> Callable[[], Callable[..., Any]]:  # noqa: C901, PLR0915 - a list of simple deeds
    """A factory of `act(what, *details)`. Everything is nested, so it travels by value and a worker imports no test."""

    def factory() -> Callable[..., Any]:  # noqa: C901, PLR0915
        def hang_in_c() -> None:
            import re

            re.match(r"(a+)+$", "a" * 60 + "b")  # holds the GIL

        def spin() -> None:
            while True:
                pass

        def exhaust() -> None:
            hoard.append(bytearray(1 << 20))
            while True:
                hoard.append(bytearray(1 << 20))

        def allocate(megabytes: int) -> int:
            return len(bytearray(megabytes << 20))

        def crash() -> None:
            import ctypes

            ctypes.string_at(0)

        def deepen() -> None:
            deepen()

        def leave_child(path: str) -> None:
            import subprocess

            Path(path).write_text(str(subprocess.Popen(["sleep", "600"]).pid))

        def throw(error: BaseException) -> None:
            raise error

        def fork() -> str:
            return "parent" if os.fork() else "child"

        def pid_then_hang(path: str) -> None:
            Path(path).write_text(str(os.getpid()))
            hang_in_c()

        def log(path: str, line: str, seconds: float) -> str:
            with open(path, "a") as file:
                file.write(line + "\n")
            time.sleep(seconds)
            return line

        def pid_among(folder: str, processes: int) -> int:
            """Come here; take a moment for that until so many processes have."""
            Path(folder, str(os.getpid())).touch()
            if len(os.listdir(folder)) < processes:
                time.sleep(0.01)
            return os.getpid()

        def write_everywhere(data: bytes) -> None:
            import select

            for descriptor in range(3, 1024):
                with contextlib.suppress(OSError):
                    if select.select([], [descriptor], [], 0)[1]:
                        os.write(descriptor, data)

        def read_everywhere() -> None:
            for descriptor in range(3, 1024):
                with contextlib.suppress(OSError):
                    os.set_blocking(descriptor, False)
                    os.read(descriptor, 1 << 20)
                    os.set_blocking(descriptor, True)

        def exit_later(seconds: float) -> None:
            import threading

            threading.Timer(seconds, os._exit, [5]).start()

        def alarm_later(seconds: float) -> None:
            import signal

            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, seconds)

        def ignore_signals() -> None:
            import signal

            for number in {*signal.valid_signals()} - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            spin()

        def wait_for(path: str) -> str:
            while not Path(path).exists():
                time.sleep(0.01)
            return "waited"

        hoard: list[bytearray] = []
        deeds = dict(locals())

        def act(what: str, *details: Any) -> Any:
            if what in deeds:
                return deeds[what](*details)
            return (what, *details) if details else what

        deeds.update(
            exit=os._exit, sleep=time.sleep, pid=os.getpid, closerange=os.closerange, chdir=os.chdir, cwd=os.getcwd
        )
        return act

    return factory


def is_alive(pid: int) -> bool:
    """Whether a process runs (one that has ended but was not waited for does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_gone(pid: int, seconds: float = 60.0) -> bool:
    """Whether a process ends in this time."""
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def children() -> set[int]:
    """The processes of which this one is the parent, dead or alive."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(stat.parent.name))
    return found


def open_files() -> int:
    """How many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))
