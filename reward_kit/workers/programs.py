# SPDX-License-Identifier: Apache-2.0
"""Programs of somebody else, such as a server: ended when this process is gone, however that came about.

A server whose input ends should end by itself; not every one does. So a small shell waits at the end of a pipe that
only this process holds. When the pipe closes, it kills every process group that it was told of and not told to forget.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from reward_kit.utils.per_process import PerProcess
from reward_kit.workers.process import kill_group

__all__ = ["end_program", "start_program"]

_SCRIPT = """
trap '' INT TERM HUP
groups=' '
while read -r what group; do
  case $what in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


class _Guard:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def tell(self, what: str, group: int) -> None:
        """Name a process group."""
        assert self._shell.stdin is not None
        with self._lock, suppress(OSError):  # somebody killed the guard: processes then only see their input end
            self._shell.stdin.write(f"{what} {group}\n".encode())
            self._shell.stdin.flush()

    def close(self) -> None:
        """Let it kill what is left, and wait for it."""
        assert self._shell.stdin is not None
        with suppress(OSError):
            self._shell.stdin.close()
        self._shell.wait()

    def let_go(self) -> None:
        """A forked child must not hold the pipe, or the guard would wait for the child as well."""
        assert self._shell.stdin is not None
        with suppress(OSError):
            os.close(self._shell.stdin.fileno())


_guards = PerProcess(make=_Guard, close=_Guard.close, abandon=_Guard.let_go)


async def start_program(command: Sequence[str] | str, **how: Any) -> asyncio.subprocess.Process:
    """Start a program, in a session of its own. A text is a line for the shell."""
    if isinstance(command, str):
        process = await asyncio.create_subprocess_shell(command, start_new_session=True, **how)
    else:
        process = await asyncio.create_subprocess_exec(*command, start_new_session=True, **how)
    _guards.get().tell("+", process.pid)
    return process


async def end_program(process: asyncio.subprocess.Process, patience: float | None = None) -> None:
    """Kill a program and all that it started, and wait for it, but no longer than `patience` seconds."""
    kill_group(process.pid)
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            await process.wait()
    _guards.get().tell("-", process.pid)  # the number of the group may come to belong to others
