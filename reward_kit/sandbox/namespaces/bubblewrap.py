# SPDX-License-Identifier: Apache-2.0
"""How bubblewrap is told to make a sandbox: what it sees, and what it shares with the host (nothing)."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import struct

from reward_kit.sandbox.linux.capabilities import CONTAINER_CAPABILITIES
from reward_kit.sandbox.local.porter import IGNORED_BY_PYTHON

__all__ = ["Bubblewrap", "Launcher", "bubblewrap_options"]

_INFORMATION, _FILTER = 3, 5
_READ_ONLY = ("sys", "sysrq-trigger", "dynamic_debug")
"""Entries of /proc by which root could change the host. bubblewrap sees to others, but not to these for root."""
_MASKED = ("acpi", "cmdline", "keys", "latency_stats", "sched_debug", "scsi", "timer_list")
"""Entries of /proc that tell about the host and not about the sandbox, to those with a container's capabilities."""


def bubblewrap_options(*, network: bool, seccomp: bool, own_users: bool) -> list[str]:
    """What every sandbox has beside its root and its devices.

    `own_users`: it has a user namespace, by which the kernel counts its processes.

    bubblewrap mounts everything without set-uid, and everything but /dev without devices.
    """
    options = ["--proc", "/proc", *_masks()]
    options += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if own_users:
        options += ["--unshare-user", "--uid", "0", "--gid", "0"]
    if not network:
        options.append("--unshare-net")
    options += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1"]
    options += ["--info-fd", str(_INFORMATION)]
    if seccomp:
        options += ["--seccomp", str(_FILTER)]
    options += ["--chdir", "/", "--cap-drop", "ALL"]
    for name in CONTAINER_CAPABILITIES:
        options += ["--cap-add", name]
    return options


@functools.cache
def _masks() -> list[str]:
    masks = []
    for name in _READ_ONLY:
        if os.path.exists(f"/proc/{name}"):
            masks += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    for name in _MASKED:
        path = f"/proc/{name}"
        if os.path.isdir(path) and os.listdir(path):
            masks += ["--tmpfs", path]
        elif os.path.isfile(path):
            masks += ["--ro-bind", "/dev/null", path]
    return masks


class Launcher:
    """Starts bubblewrap for every sandbox of a supervisor."""

    def __init__(self, program: str, seccomp: bytes | None) -> None:
        """`program` is the bubblewrap to start; `seccomp` the filter it is to load."""
        _occupy_low_descriptors()
        self._program = program
        self._first = _first_program()
        self._filter = os.memfd_create("seccomp", os.MFD_CLOEXEC)
        os.write(self._filter, seccomp or b"")

    def start(self, root: str, devices: str, options: list[str]) -> Bubblewrap:
        """Start one that makes a sandbox of these directories, and then runs its first process."""
        places = ["--bind", root, "/", "--dev-bind", devices, "/dev"]
        first = _first_command(program=self._first is not None)
        return Bubblewrap([self._program, *places, *options, "--", *first], self._filter, self._first)


def _occupy_low_descriptors() -> None:
    """Let no descriptor that is opened later have a number that a started program is to find something else at."""
    while os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) < _PROGRAM:
        pass


def _pidfd(process: int) -> int:
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        return -1


class Bubblewrap:
    """A bubblewrap that makes a sandbox, and is the parent of its first process."""

    def __init__(self, command: list[str], seccomp: int, first: int | None) -> None:
        """Start it. It reads the filter, and the program of the first process, from these descriptors."""
        life, self._lifeline = os.pipe2(os.O_CLOEXEC)
        self.output_end, say = os.pipe2(os.O_CLOEXEC)
        """The first process says an empty line here when it runs. Anything else is bubblewrap complaining."""
        self._information, tell = os.pipe2(os.O_CLOEXEC)
        # Opened again: whoever reads a descriptor moves on in the file for all who share it.
        own_filter = os.open(f"/proc/self/fd/{seccomp}", os.O_RDONLY | os.O_CLOEXEC)
        places = {life: (0,), say: (1, 2), tell: (_INFORMATION,), own_filter: (_FILTER,)}
        if first is not None:
            places[first] = (_PROGRAM,)
        actions = [(os.POSIX_SPAWN_DUP2, source, place) for source, taken in places.items() for place in taken]
        try:
            process = os.posix_spawn(command[0], command, {}, file_actions=actions, setsigdef=IGNORED_BY_PYTHON)
            self.pidfd = _pidfd(process)
            """By what it is known: it tells when it has ended. Below zero: it has."""
        except OSError:
            self.close()
            os.close(self.output_end)
            raise
        finally:
            for source in (life, say, tell, own_filter):
                os.close(source)

    def first(self) -> int:
        """The number of the first process, which is told before that process says anything. To be asked for once."""
        number: int = json.loads(os.read(self._information, 4096))["child-pid"]
        os.close(self._information)
        self._information = -1
        return number

    def close(self) -> None:
        """Let the first process end, and close what is still open here but for `said`."""
        for descriptor in (self._lifeline, self._information):
            if descriptor >= 0:
                os.close(descriptor)
        self._lifeline = self._information = -1


# ── the first process of a sandbox ────────────────────────────────────────────────────────────────────────────────────
#
# It says that it is there, buries orphans, and waits for its supervisor to hang up.
#
# It could be a shell, and is one (`_SHELL`) where this program is not written for the machine. But every sandbox waits
# for it, and a shell takes as long to start as a third of all the rest. As the first process of its namespace it
# ignores every signal from inside by itself.

_PROGRAM = 6
"""The descriptor from which the program is executed."""

_CODE = {
    "x86_64": bytes.fromhex(
        "b80d000000 bf11000000 488d3564000000 31d2 41ba08000000 0f05"  # rt_sigaction(SIGCHLD, &act, NULL, 8)
        "b801000000 bf01000000 488d3569000000 ba01000000 0f05"  # write(1, newline, 1)
        "b803000000 bf01000000 0f05"  # close(1)
        "b803000000 bf02000000 0f05"  # close(2)
        "b803000000 bf06000000 0f05"  # close(6)
        "31c0 31ff 488d742480 ba01000000 0f05"  # again: read(0, below the stack, 1)
        "4885c0 75eb"  # until it is at its end
        "b83c000000 31ff 0f05"  # exit(0)
        "0100000000000000 0000000000000000 0000000000000000 0000000000000000"  # act: SIG_IGN, so that the kernel buries
        "0a"  # newline
    )
}
"""What it does, as the machine reads it."""

_SHELL = "trap '' HUP INT QUIT USR1 USR2 PIPE ALRM TERM; echo; exec >&- 2>&-; while read -r _; do :; done"
"""What the first process of a sandbox runs: it says that it is there, and waits for its supervisor to hang up.

Signals from inside do not reach a first process that has no handler for them. bash, unlike a smaller shell, buries
orphans while it reads."""

_MACHINES = {"x86_64": 62}
_LOADED_AT = 0x40_0000
_HEADERS = 64 + 56
_MFD_EXEC = 0x10


def _elf(machine: str, code: bytes) -> bytes:
    """A program of one segment: header, one program header, code."""
    size, entry = _HEADERS + len(code), _LOADED_AT + _HEADERS
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, _MACHINES[machine], 1, entry, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _LOADED_AT, _LOADED_AT, size, size, 0x1000)
    return identity + header + segment + code


def _first_program() -> int | None:
    """A file in memory that holds the program and that nobody can change; None where it cannot be had."""
    code = _CODE.get(os.uname().machine)
    if code is None:
        return None
    try:
        file = _executable_memory()
        os.write(file, _elf(os.uname().machine, code))
        fcntl.fcntl(
            file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        )
        readable = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
        os.close(file)
    except OSError:  # a machine where memory may not be executed
        return None
    return readable


def _executable_memory() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create("init", flags | _MFD_EXEC)
    except OSError:  # a kernel from before there was the flag
        return os.memfd_create("init", flags)


def _first_command(*, program: bool) -> list[str]:
    """How it is started in a sandbox: from the descriptor, or as a shell."""
    return [f"/proc/self/fd/{_PROGRAM}"] if program else ["/bin/bash", "--noprofile", "--norc", "-c", _SHELL, "init"]
