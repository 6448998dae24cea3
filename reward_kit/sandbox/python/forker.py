"""The zygote itself: it has imported what programs need, and forks into a new sandbox for each of them.

It is the first process of a process namespace, so that all its sandboxes end with it. It never sees what a run is given
or what it prints: code, input and answers go past it, from the supervisor to the forked process by descriptors. So the
memory that every run begins with is the same, and holds nothing of the runs before. Standard library only.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.sandbox.linux import syscalls
from reward_kit.sandbox.linux.seccomp import compile_filter
from reward_kit.sandbox.python import root
from reward_kit.sandbox.python.child import Slot, become

__all__ = ["fork_runs", "settle"]

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
