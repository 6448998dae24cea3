# SPDX-License-Identifier: Apache-2.0
"""The zygote itself: it has imported what programs need, and forks into a new sandbox for each of them.

It is the first process of a process namespace, so that all its sandboxes end with it. It never sees what a run is given
or what it prints: code, input and answers go past it, from the supervisor to the forked process by descriptors. So the
memory that every run begins with is the same, and holds nothing of the runs before. Standard library only.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import resource
import signal
import socket
import stat
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.sandbox.linux import syscalls
from reward_kit.sandbox.linux.processes import most_processes
from reward_kit.sandbox.linux.seccomp import compile_filter
from reward_kit.sandbox.python import root
from reward_kit.sandbox.python.inside.calls import answer_calls, answer_runs, rehearse
from reward_kit.sandbox.python.inside.objects import serve_objects
from reward_kit.sandbox.python.inside.program import be_program, refresh_interpreter
from reward_kit.sandbox.python.inside.tests import judge_program
from reward_kit.sandbox.python.messages import WORK, Frame, unpack

__all__ = ["Slot", "become", "fork_runs", "settle"]

_USUAL = (
    *("array", "bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools"),
    *("heapq", "io", "itertools", "json", "math", "operator", "queue", "random", "re", "statistics", "string"),
    *("tempfile", "textwrap", "threading", "time", "traceback", "typing"),
)
"""What small programs import most, so that none of them pays for it."""
_REQUEST_BYTES = 1 << 16
_MOST_DESCRIPTORS = 16


def settle(settings: Mapping[str, Any], uid: int, privileged: bool) -> Slot:
    """Leave everything that is the machine's, and have ready what programs need."""
    syscalls.die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    seccomp = compile_filter(for_programs=True)
    if seccomp is None:
        raise OSError("there is no system-call filter for this kind of machine")
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    group = os.open(f"{settings['group']}/cgroup.procs", os.O_WRONLY) if settings["group"] else None
    spaces = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS
    syscalls.unshare(spaces)
    syscalls.set_hostname("sandbox")
    root.enter(settings["staging"], uid, settings["packages"])
    syscalls.protect_memory(True)
    _preload(settings["preload"])
    syscalls.own_shared_memory()
    return Slot(uid, privileged, group, seccomp, own)


def _preload(names: Sequence[str]) -> None:
    for name in (*_USUAL, *names):
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.split(".")[0] == "reward_kit"]:
        del sys.modules[name]  # a program that imports it gets its interpreter's own, or none
    # A library may have threads; those that do are made for being forked.
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
    os.umask(0o022)
    rehearse()
    gc.collect()
    gc.freeze()


def fork_runs(slot: Slot, supervisor: socket.socket) -> None:
    """Start runs as the supervisor asks for them, one at a time, until it is gone.

    It is sent limits and descriptors, answers "started" with the namespace's first process and the run's own, one or
    two, and then how the first of those ended.
    """
    while True:
        request, descriptors, _, _ = socket.recv_fds(supervisor, _REQUEST_BYTES, _MOST_DESCRIPTORS)
        if not request:
            return
        try:
            supervisor.send(_run(slot, json.loads(request), descriptors, supervisor))
        except OSError as error:
            supervisor.send(json.dumps({"error": str(error)}).encode())


def _run(slot: Slot, request: Mapping[str, Any], descriptors: Sequence[int], supervisor: socket.socket) -> bytes:
    """One run from its start to its end, and the end of all that it started."""
    init, pids = _fork(slot, request, descriptors)
    try:
        first = [os.pidfd_open(pid) for pid in (init, *pids)]
        socket.send_fds(supervisor, [b"started"], first)
        for descriptor in (*first, *descriptors):
            os.close(descriptor)
        _, status, usage = os.wait4(pids[0], 0)
    finally:
        _end(init, pids[1:])
    cpu = usage.ru_utime + usage.ru_stime
    return json.dumps({"status": status, "cpu_seconds": cpu, "largest": usage.ru_maxrss * 1024}).encode()


def _fork(slot: Slot, request: Mapping[str, Any], descriptors: Sequence[int]) -> tuple[int, list[int]]:
    """Make a process namespace, its first process, and the run's one or two. Only the zygote returns."""
    syscalls.unshare(syscalls.CLONE_NEWPID)
    pids: list[int] = []
    try:
        init = syscalls.spawn_init()
        remaining = list(descriptors)
        try:
            for number, count in enumerate(request["descriptors"]):
                own, remaining = remaining[:count], remaining[count:]
                pid = os.fork()
                if not pid:
                    become(slot.of(number), request["limits"], own)
                pids.append(pid)
        except OSError:
            _end(init, pids)
            raise
    finally:
        syscalls.setns(slot.own_processes, syscalls.CLONE_NEWPID)  # else the next namespace could not be made
    return init, pids


def _end(init: int, others: Sequence[int]) -> None:
    """Kill everything in the namespace. Its first process ends when nobody is left there, so it is awaited last."""
    os.kill(init, signal.SIGKILL)
    for pid in (*others, init):
        os.waitpid(pid, 0)


# ── what a forked zygote does to become one run ───────────────────────────────────────────────────────────────────────
#
#     join the memory group ─▶ own mounts, /tmp, /box, /proc ─▶ limits ─▶ another user ─▶ seccomp ─▶ "+" ─▶ the program
#
# Until the "+" is written whatever fails is the sandbox's failure. After it nothing of the zygote can be reached.

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


def _task(descriptor: int) -> Frame:
    with open(descriptor, "rb") as file:
        return unpack(file.read())


def _prepared(task: Frame) -> Callable[[], int]:
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
