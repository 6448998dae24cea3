"""What a forked zygote does to become one run: give everything up, then be the program.

    join the memory group ─▶ own mounts, /tmp, /box, /proc ─▶ limits ─▶ another user ─▶ seccomp ─▶ "+" ─▶ the program

Until the "+" is written whatever fails is the sandbox's failure. After it nothing of the zygote can be reached.
Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import resource
import stat
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.sandbox.linux import syscalls
from reward_kit.sandbox.linux.processes import most_processes
from reward_kit.sandbox.python import root
from reward_kit.sandbox.python.inside.calls import answer_calls, answer_runs
from reward_kit.sandbox.python.inside.objects import serve_objects
from reward_kit.sandbox.python.inside.program import be_program, refresh_interpreter
from reward_kit.sandbox.python.inside.tests import judge_program
from reward_kit.sandbox.python.messages import WORK, Message, unpack

__all__ = ["Slot", "become"]

_MIB = 1 << 20
_ABOVE = 64
"""Descriptors of a run have lower numbers, as long as they are being arranged."""
_SPACES = (
    *(syscalls.CLONE_NEWNS, syscalls.CLONE_NEWIPC, syscalls.CLONE_NEWUTS),
    *(syscalls.CLONE_NEWNET, syscalls.CLONE_NEWCGROUP),
)
"""Of its own, for each program: what it leaves there, as a queue, a connection or a counter, goes with it."""
_RESERVE = 3
"""Processes of a user's own zygote, which count against the limit where they are the same user's."""


class Slot(NamedTuple):
    """What a zygote's programs run as."""

    uid: int
    privileged: bool
    """Whether the zygote is root, and its programs another user; else both are one user without privileges."""
    group: int | None
    """Where to write to join the control group that limits memory."""
    seccomp: bytes
    own_processes: int
    """The zygote's own process namespace, to which it returns after each fork."""

    def of(self, number: int) -> Slot:
        """The slot of a cell's first program, or of its second, which is yet another user where that can be."""
        return self._replace(uid=self.uid + number) if self.privileged else self


def become(slot: Slot, limits: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Be the run, and never return. `descriptors` become 0, 1, 2 …; the last two: what to run, how entering went."""
    status = descriptors[-1]
    try:
        _enter(slot, limits)
        _keep(descriptors)
        status = len(descriptors) - 1
        _limit(slot, limits)
        _drop(slot)
        os.chdir(WORK)
        begin = _prepared(_task(status - 1))
    except BaseException as error:  # noqa: BLE001 - told to the supervisor, which makes a SandboxError of it
        os.write(status, f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    os.write(status, b"+")
    os.close(status)
    os._exit(begin())


def _enter(slot: Slot, limits: Mapping[str, Any]) -> None:
    if slot.group is not None:
        os.write(slot.group, b"0")
    os.setsid()
    # After joining the group, which becomes the root of what it can know of groups.
    syscalls.unshare(sum(_SPACES))
    syscalls.raise_loopback()
    root.refresh(slot.uid, limits)


def _keep(descriptors: Sequence[int]) -> None:
    """Number these from 0 and close all others.

    The one device that a program may be given is /dev/null, and it gets its zygote's own: on the machine's, programs
    that run at one time could lock parts for each other.
    """
    own_null = os.open(os.devnull, os.O_RDWR)
    given = [own_null if stat.S_ISCHR(os.fstat(each).st_mode) else each for each in descriptors]
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _ABOVE) for descriptor in given]
    for number, descriptor in enumerate(high):
        os.dup2(descriptor, number)
    os.closerange(len(descriptors), os.sysconf("SC_OPEN_MAX"))


def _limit(slot: Slot, limits: Mapping[str, Any]) -> None:
    cpu = max(1, -(-limits["cpu_seconds"] // 1))
    processes = limits["processes"]
    if not slot.privileged:
        processes = most_processes(processes + _RESERVE, own_users=True)
    wanted = {
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_FSIZE: (limits["file_size_mb"] * _MIB,) * 2,
        resource.RLIMIT_NOFILE: (limits["open_files"],) * 2,
        resource.RLIMIT_NPROC: (processes,) * 2,
        resource.RLIMIT_CORE: (0, 0),
    }
    if slot.group is None:
        memory = limits["memory_mb"] * _MIB
        wanted |= {resource.RLIMIT_DATA: (memory, memory), resource.RLIMIT_AS: (_address_space() + 2 * memory,) * 2}
    for which, bounds in wanted.items():
        _, most = resource.getrlimit(which)
        soft, hard = [int(bound if most == resource.RLIM_INFINITY else min(bound, most)) for bound in bounds]
        resource.setrlimit(which, (soft, hard))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _drop(slot: Slot) -> None:
    if slot.privileged:
        os.setgroups([])
        os.setresgid(slot.uid, slot.uid, slot.uid)
        os.setresuid(slot.uid, slot.uid, slot.uid)
    syscalls.drop_capabilities()
    syscalls.protect_memory(False)
    syscalls.no_new_privileges()
    syscalls.load_seccomp(slot.seccomp)


def _task(descriptor: int) -> Message:
    with open(descriptor, "rb") as file:
        return unpack(file.read())


def _prepared(task: Message) -> Callable[[], int]:
    """Have everything ready for the task; what is returned does it, and returns the process's exit status."""
    header = task.header
    code = task.blobs[0]
    if header["do"] == "judge":
        syscalls.protect_memory(True)  # what it knows is not for the code it judges
        refresh_interpreter({})
        return partial(judge_program, code, task.blobs[1], header)
    refresh_interpreter(dict(zip([header["source"], *header["files"]], task.blobs, strict=True)))
    if header["do"] == "call":
        return partial(answer_calls if header["function"] else answer_runs, code, header)
    if header["do"] == "serve":
        return partial(serve_objects, code)
    return partial(be_program, code, header["argv"])
