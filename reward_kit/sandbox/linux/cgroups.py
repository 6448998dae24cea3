# SPDX-License-Identifier: Apache-2.0
"""Control groups, under version 1 and version 2: limits for all processes of a sandbox, and what they have used.

    find_hierarchy ─▶ Hierarchy ─▶ ProcessGroup: create, limit, enter ─▶ Accounts, MemoryMeter ─▶ remove

Where no group can be made, `find_hierarchy` says None. Standard library only, and little of it: supervisors and zygotes
use it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = [
    "Accounts",
    "Hierarchy",
    "MemoryMeter",
    "ProcessGroup",
    "find_hierarchy",
    "make_memory_group",
    "memory_group",
]

_ROOT: Final = "/sys/fs/cgroup"
_V1: Final = 1
_CONTROLLERS: Final = ("memory", "pids", "cpuacct")
_MEMORY: Final = {
    1: {
        "limit": "memory.limit_in_bytes",
        "with_swap": "memory.memsw.limit_in_bytes",
        "usage": "memory.usage_in_bytes",
        "peak": "memory.max_usage_in_bytes",
        "events": "memory.oom_control",
    },
    2: {
        "limit": "memory.max",
        "with_swap": "memory.swap.max",
        "usage": "memory.current",
        "peak": "memory.peak",
        "events": "memory.events",
    },
}
"""What the files about memory are called under each version."""
_REMOVAL_SECONDS: Final = 1.0
_MOST_READ: Final = 1 << 12
_search = threading.Lock()


class Hierarchy:
    """The place in the machine's control groups below which sandboxes get groups of their own."""

    def __init__(self, version: int, parents: dict[str, str]) -> None:
        """Version 1 or 2; `parents` is the same as the attribute."""
        self.version = version
        """1 or 2."""
        self.parents = parents
        """Controller to the directory in which groups are made; one entry, `""`, under version 2."""

    def pinned(self) -> tuple[Hierarchy, list[int]]:
        """The same by open descriptors, which are also told: it works where these directories are not mounted."""
        pins = {name: os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for name, path in self.parents.items()}
        paths = {name: f"/proc/self/fd/{descriptor}" for name, descriptor in pins.items()}
        return Hierarchy(self.version, paths), list(pins.values())

    def remove_groups(self, prefix: str) -> None:
        """Remove the groups whose names begin so, which a process that was killed has left, and end who is in them."""
        names = {name for parent in self.parents.values() for name in os.listdir(parent) if name.startswith(prefix)}
        for name in names:
            group = ProcessGroup(self, name)
            for process in group.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            group.remove()


def find_hierarchy(root: str = _ROOT) -> Hierarchy | None:
    """The first hierarchy in which a group with memory and process limits can really be made."""
    with _search:  # each candidate is tried by making a group in it, which two at a time would stumble over
        for candidate in (_version_1(root), *_version_2(root)):
            if candidate is not None and _usable(candidate):
                return candidate
    return None


def _own_paths() -> dict[str, str]:
    """Controller to the group of this process in its hierarchy; `""` is version 2."""
    paths = {}
    with contextlib.suppress(OSError), open("/proc/self/cgroup", encoding="utf-8") as lines:
        for line in lines:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def _version_1(root: str) -> Hierarchy | None:
    own = _own_paths()
    parents = {}
    for controller in _CONTROLLERS:
        inside = os.path.join(root, controller, own.get(controller, "/").lstrip("/"))
        parents[controller] = inside if os.path.isdir(inside) else os.path.join(root, controller)
    return Hierarchy(1, parents) if all(map(os.path.isdir, parents.values())) else None


def _version_2(root: str) -> list[Hierarchy]:
    """Groups may not be made below one that holds processes, so they are tried from this process's own upwards."""
    if not os.path.exists(os.path.join(root, "cgroup.controllers")):
        return []
    own = os.path.normpath(root + _own_paths().get("", "/"))
    places = [own]
    while places[-1] != root and places[-1].startswith(root):
        places.append(os.path.dirname(places[-1]))
    return [Hierarchy(2, {"": place}) for place in places if os.path.isdir(place)]


def _usable(hierarchy: Hierarchy) -> bool:
    group = ProcessGroup(hierarchy, f"reward-kit-try-{os.urandom(6).hex()}")
    try:
        if hierarchy.version != _V1:
            _write(hierarchy.parents[""], "cgroup.subtree_control", "+memory +pids")
        group.create()
        group.limit(memory_bytes=64 << 20, processes=16)
        return group.can_be_entered()
    except OSError:
        return False
    finally:
        group.remove()


def _write(directory: str, name: str, value: str) -> None:
    descriptor = os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def _read(directory: str, name: str) -> bytes:
    descriptor = os.open(os.path.join(directory, name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


class ProcessGroup:
    """The group of one sandbox: limits on the way in, measurements on the way out."""

    def __init__(self, hierarchy: Hierarchy, name: str) -> None:
        """Name the group; nothing is made yet."""
        self.name = name
        self._version = hierarchy.version
        self._paths = {controller: os.path.join(parent, name) for controller, parent in hierarchy.parents.items()}

    def _of(self, controller: str) -> str:
        return self._paths[controller if self._version == _V1 else ""]

    def create(self) -> None:
        """Make it, without limits yet."""
        for path in self._paths.values():
            os.mkdir(path)

    def limit(self, *, memory_bytes: int, processes: int) -> None:
        """Set its limits. Swap counts as memory where the kernel counts it."""
        memory, names = self._of("memory"), _MEMORY[self._version]
        _write(self._of("pids"), "pids.max", str(processes))
        _write(memory, names["limit"], str(memory_bytes))
        with contextlib.suppress(OSError):
            _write(memory, names["with_swap"], str(memory_bytes) if self._version == _V1 else "0")
        if self._version == _V1:
            with contextlib.suppress(OSError):  # buffers of TCP and UDP are in an account of their own there
                _write(memory, "memory.kmem.tcp.limit_in_bytes", str(memory_bytes))

    def enter(self) -> None:
        """Put the calling process into it."""
        for path in self._paths.values():
            _write(path, "cgroup.procs", "0")

    def can_be_entered(self) -> bool:
        """Whether a process of ours may go into it: that is another right than to make it."""
        import subprocess

        enter = 'for group; do echo 0 > "$group/cgroup.procs" || exit 1; done'
        command = ["/bin/sh", "-c", enter, "sh", *self._paths.values()]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    @property
    def pids_directory(self) -> str:
        """Where its processes are listed and counted."""
        return self._of("pids")

    def processes(self) -> list[int]:
        """Everyone in it, by the process numbers of the caller."""
        try:
            return [int(number) for number in _read(self.pids_directory, "cgroup.procs").split()]
        except OSError:
            return []

    def memory_file(self, what: str) -> str:
        """The path of the file that tells the `limit`, `usage`, `peak` or `events` of its memory."""
        return os.path.join(self._of("memory"), _MEMORY[self._version][what])

    def forbid_swap(self) -> None:
        """Keep its memory out of swap, where the kernel counts swap at all."""
        with contextlib.suppress(FileNotFoundError):
            _write(self._of("memory"), "memory.swappiness" if self._version == _V1 else "memory.swap.max", "0")

    def accounts(self) -> Accounts:
        """What its processes have used, to be read again and again. `OSError` where it is gone."""
        cpu = ""
        if self._version != _V1:
            cpu = os.path.join(self._paths[""], "cpu.stat")
        elif "cpuacct" in self._paths:
            cpu = os.path.join(self._paths["cpuacct"], "cpuacct.usage")
        return Accounts(cpu, self.memory_file("peak"), self.memory_file("events"))

    def remove(self) -> None:
        """Remove it. Its processes must be dead; the kernel may take a moment to notice."""
        for path in self._paths.values():
            _remove(path)


def _remove(path: str) -> None:
    deadline = time.monotonic() + _REMOVAL_SECONDS
    while True:
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)
        else:
            return


class Accounts:
    """What the processes of a group have used. Its files stay open: a command can be shorter than opening a file."""

    def __init__(self, cpu: str, peak: str, events: str) -> None:
        """Open these files; no `cpu` where nobody counts it."""
        self._counts_nanoseconds = cpu.endswith("usage")
        self._files: list[int] = []
        try:
            for path in (cpu, peak, events):
                self._files.append(_open_account(path) if path else -1)
        except OSError:
            self.close()
            raise

    def cpu_seconds(self) -> float | None:
        """CPU time since the group was made; None where nobody counts."""
        text = self._text(0)
        if not text:
            return None
        return int(text) / 1e9 if self._counts_nanoseconds else _field(text, b"usage_usec") / 1e6

    def peak_bytes(self) -> int | None:
        """The most memory in use at a time since `reset_peak`; None where the kernel does not tell."""
        text = self._text(1)
        return int(text) if text else None

    def reset_peak(self) -> None:
        """Let the peak begin anew. Where the kernel cannot do that, `peak_bytes` says None from here on."""
        if self._files[1] < 0:
            return
        try:
            os.pwrite(self._files[1], b"0", 0)
        except OSError:
            os.close(self._files[1])
            self._files[1] = -1

    def memory_kills(self) -> int:
        """How many processes the kernel has killed because the group had too much memory."""
        return _field(self._text(2), b"oom_kill")

    def _text(self, number: int) -> bytes:
        return os.pread(self._files[number], _MOST_READ, 0) if self._files[number] >= 0 else b""

    def close(self) -> None:
        """Close the files. Nothing can be read afterwards."""
        for file in self._files:
            if file >= 0:
                os.close(file)
        self._files = [-1, -1, -1]


def _open_account(path: str) -> int:
    """A file of a group, to be written to where that is allowed; -1 for one that this kernel does not keep."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if os.path.isdir(os.path.dirname(path)):
            return -1
        raise


def _field(text: bytes, name: bytes) -> int:
    start = text.find(name + b" ")
    return int(text[start + len(name) :].split(None, 1)[0]) if start >= 0 else 0


# ── a group for memory alone ─────────────────────────────────────────────────────────────────────────────────────────


def make_memory_group(name: str) -> str | None:
    """The directory of a new group that can bound memory and has no swap; None where none can be made.

    It is for the programs of one zygote, and kept from run to run: each group that is removed lingers in the kernel.
    """
    hierarchy = find_hierarchy()
    if hierarchy is None:
        return None
    path = os.path.join(hierarchy.parents["memory" if hierarchy.version == _V1 else ""], name)
    group = ProcessGroup(_for_memory(hierarchy.version, path), name)
    try:
        group.create()
        group.forbid_swap()
    except OSError:
        group.remove()
        return None
    return path


def memory_group(path: str) -> ProcessGroup:
    """The group whose directory `make_memory_group` gave."""
    version = 1 if os.path.exists(os.path.join(path, _MEMORY[1]["limit"])) else 2
    return ProcessGroup(_for_memory(version, path), os.path.basename(path))


def _for_memory(version: int, path: str) -> Hierarchy:
    return Hierarchy(version, {"memory" if version == _V1 else "": os.path.dirname(path)})


class MemoryMeter:
    """Bounds the memory of one run after another in the same group, and tells what each of them used."""

    def __init__(self, group: ProcessGroup) -> None:
        """Open the files of a group."""
        self._accounts = group.accounts()
        self._limit = os.open(group.memory_file("limit"), os.O_WRONLY | os.O_CLOEXEC)
        self._usage = os.open(group.memory_file("usage"), os.O_RDONLY | os.O_CLOEXEC)
        self._megabytes = 0
        self._before = 0
        self._kills = self._accounts.memory_kills()

    def begin(self, megabytes: int) -> None:
        """Set the limit of the run that begins, and forget the last one's peak."""
        if megabytes != self._megabytes:
            os.pwrite(self._limit, b"%d" % (megabytes << 20), 0)
            self._megabytes = megabytes
        self._accounts.reset_peak()
        self._before = int(os.pread(self._usage, 64, 0))

    def kills(self) -> int:
        """How many processes were killed for their memory since this was last asked."""
        before, self._kills = self._kills, self._accounts.memory_kills()
        return self._kills - before

    def peak(self) -> int:
        """The most memory that this run's processes used together, without what caches held before; 0 if not known."""
        found = self._accounts.peak_bytes()
        return 0 if found is None else max(0, found - self._before)
