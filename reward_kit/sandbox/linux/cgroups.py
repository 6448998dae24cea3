"""Control groups: one a sandbox, under version 1 and version 2, or none where neither can be had.

Found once by `find_hierarchy`; every sandbox then makes its own group below it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["Hierarchy", "ProcessGroup", "find_hierarchy"]

_ROOT: Final = "/sys/fs/cgroup"
_V1: Final = 1
_CONTROLLERS: Final = ("memory", "pids", "cpuacct")
_RMDIR_ATTEMPTS: Final = 50


class Hierarchy:
    """Where groups are made."""

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
        memory = self._of("memory")
        _write(self._of("pids"), "pids.max", str(processes))
        names = ("limit_in_bytes", "memsw.limit_in_bytes") if self._version == _V1 else ("max", "swap.max")
        _write(memory, f"memory.{names[0]}", str(memory_bytes))
        with contextlib.suppress(OSError):
            _write(memory, f"memory.{names[1]}", str(memory_bytes) if self._version == _V1 else "0")
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

    @property
    def accounts(self) -> tuple[str, str, str]:
        """The files that tell CPU time, peak memory and kills for want of memory."""
        memory = self._of("memory")
        if self._version == _V1:
            cpu = os.path.join(self._of("cpuacct"), "cpuacct.usage")
            return cpu, os.path.join(memory, "memory.max_usage_in_bytes"), os.path.join(memory, "memory.oom_control")
        return tuple(os.path.join(memory, name) for name in ("cpu.stat", "memory.peak", "memory.events"))  # type: ignore[return-value]

    def remove(self) -> None:
        """Remove it. Its processes must be dead; the kernel may take a moment to notice."""
        for path in self._paths.values():
            for _ in range(_RMDIR_ATTEMPTS):
                try:
                    os.rmdir(path)
                except FileNotFoundError:
                    pass
                except OSError:
                    time.sleep(0.002)
                    continue
                break
