# SPDX-License-Identifier: Apache-2.0
"""The `namespaces` backend: sandboxes made of Linux namespaces, an overlay, a control group and a filter.

    backend ─┬─ supervisor ─┬─ bwrap ── first process       pid, mount, ipc, uts, net and cgroup namespaces
             │              └─ nursery                      has porters ready before they are needed
             └─ porter ─┬─ bash (the session)               started from outside, its exit status waited for outside
                        └─ bash -c … (standalone commands)

Covered: the host's files, processes, environment and network are not seen; memory, processes, CPU time, file sizes,
disk and output are bounded; capabilities are those of a container, set-uid programs gain nothing, and system calls that
reach into the kernel are refused. Everything is gone after `close`, and also when this process or the supervisor is
killed; files that a killed process leaves are removed by the next one.

Not covered: faults of the kernel itself, which is shared with the host; as root, root inside is the host's root with
fewer capabilities, as in a default container. As an ordinary user, everything inside belongs to one user (so `chown` to
another fails); disk is looked at, where root has a filesystem of a fixed size for each sandbox; and without control
groups, memory is looked at every 20 ms by the porter, who kills the largest process when all together have too much,
and processes are counted by a user namespace that the sandbox has for itself.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_kit.errors import RewardKitError, SandboxError
from reward_kit.sandbox.contract import Probe, SandboxSpec
from reward_kit.sandbox.linux.cgroups import Hierarchy, ProcessGroup, find_hierarchy
from reward_kit.sandbox.linux.disk_use import DiskUse, held_use, tree_use
from reward_kit.sandbox.linux.loop_disk import make_template
from reward_kit.sandbox.linux.processes import is_ending, processes_beside
from reward_kit.sandbox.linux.rlimits import process_limits
from reward_kit.sandbox.linux.seccomp import compile_filter
from reward_kit.sandbox.local.meter import GroupMeter, Meter, NoMeter, TurnMeter
from reward_kit.sandbox.local.porter_client import PorterClient
from reward_kit.sandbox.local.sandbox import LocalSandbox
from reward_kit.sandbox.local.session import ProcessPlace
from reward_kit.sandbox.namespaces.bubblewrap import bubblewrap_options
from reward_kit.sandbox.namespaces.files import remove_home, upper_directories
from reward_kit.sandbox.namespaces.rootfs import Root, host_root, image_root
from reward_kit.sandbox.namespaces.snapshots import Snapshot, SnapshotPolicy, SnapshotStore
from reward_kit.sandbox.namespaces.state import StateDirectory
from reward_kit.sandbox.namespaces.supervisor_client import SandboxStatus, SupervisorClient

if TYPE_CHECKING:
    from reward_kit.config_models import SandboxConfig

__all__ = ["NamespacesBackend", "make_backend"]

_SWEEP_SECONDS = 0.05
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "SHELL": "/bin/bash",
    "HOSTNAME": "sandbox",
    "LC_CTYPE": "C.UTF-8",  # not LANG: every program would open a dozen files that say what is so anyway
    "TERM": "dumb",
}


@dataclasses.dataclass(frozen=True)
class _Machine:
    """What was found out about this machine, once."""

    state: StateDirectory
    hierarchy: Hierarchy | None
    program: str
    seccomp: bytes | None
    as_root: bool

    @classmethod
    def examine(cls, state: str | None) -> _Machine:
        if sys.platform != "linux":
            raise SandboxError("Namespaces are a feature of Linux. Use docker or podman here.", retryable=False)
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxError(f"The program `bwrap` is not on the PATH. {_INSTALL}", retryable=False)
        machine = cls(StateDirectory.make(state), find_hierarchy(), program, compile_filter(), os.geteuid() == 0)
        machine.remove_groups(*machine.state.orphans)
        return machine

    def remove_groups(self, *owners: str) -> None:
        """Remove the control groups that killed supervisors of these backends have left."""
        for owner in owners:
            if self.hierarchy is not None:
                self.hierarchy.remove_groups(f"{owner}-")

    def make_disk(self, megabytes: int) -> str:
        """The template of disks of this size; "" where there is none, so that what is written has to be watched."""
        path = self.state.path(f"disk-{megabytes}")
        return path if self.as_root and make_template(path, megabytes) else ""

    def leave(self) -> None:
        """Remove everything that the backend put on this machine: its directory and its control groups."""
        self.state.remove()
        self.remove_groups(self.state.name)

    def settings(self) -> dict[str, Any]:
        return {
            "as_root": self.as_root,
            "seccomp": (self.seccomp or b"").hex(),
            "hierarchy": self.hierarchy and [self.hierarchy.version, self.hierarchy.parents],
            "state": self.state.path(),
            "bubblewrap": self.program,
        }


_INSTALL = "Install bubblewrap: `apt-get install bubblewrap`, `dnf install bubblewrap`."


def make_backend(config: SandboxConfig) -> NamespacesBackend:
    """The backend as a run's settings want it."""
    return NamespacesBackend() if config.snapshots else NamespacesBackend(snapshots=None)


class NamespacesBackend:
    """Makes sandboxes of Linux namespaces on this machine: the default backend."""

    name = "namespaces"

    def __init__(
        self,
        *,
        state: str | None = None,
        supervisors: int | None = None,
        snapshots: SnapshotPolicy | None = SnapshotPolicy(),  # noqa: B008  a value that never changes
    ) -> None:
        """Keep sandboxes' files under `state`, which should be on a real disk; share the work among `supervisors`.

        `snapshots`: when long setups are kept for those who ask for the same; None: never.
        """
        self._state = state
        self._most = supervisors or max(1, min(8, os.cpu_count() or 1))
        self._machine: _Machine | None = None
        self._supervisors: list[SupervisorClient] = []
        self._is_starting = False
        self._roots: dict[str | None, Root] = {}
        self._disks: dict[int, str] = {}
        self._keys = itertools.count(1)
        self._lock = asyncio.Lock()
        self._preparing: set[asyncio.Task[tuple[_Machine, SupervisorClient, Root]]] = set()
        self.sandboxes: dict[LocalSandbox, SandboxStatus] = {}
        """The sandboxes that are open, and what is known of each."""
        self._snapshots = SnapshotStore(snapshots, self._open_fresh, self._keep, self._discard) if snapshots else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._discarded: list[str] = []
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def supervisors(self) -> list[int]:
        """The numbers of the processes that make its sandboxes."""
        return [supervisor.process_id for supervisor in self._supervisors]

    @property
    def directory(self) -> Path | None:
        """Where its sandboxes have their files; None before there is one."""
        return Path(self._machine.state.path()) if self._machine else None

    # ── getting ready ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ready(self, image: str | None, disk_mb: int) -> tuple[_Machine, SupervisorClient, Root]:
        """This machine, the supervisor with the least to do, and the root; each made when it is first needed.

        Making them goes on where who asked for them is cancelled: the next one needs them, too, and `close` ends them.
        """
        supervisor = min((one for one in self._supervisors if one.alive), key=_load, default=None)
        is_known = image in self._roots and disk_mb in self._disks
        if self._machine is None or supervisor is None or not is_known:
            making = asyncio.ensure_future(self._make_ready(image, disk_mb))
            self._preparing.add(making)
            making.add_done_callback(self._prepared)
            await asyncio.wait([making])
            return making.result()
        if supervisor.load and len(self._supervisors) < self._most and not self._is_starting:
            self._start_in_background(self._machine)
        return self._machine, supervisor, self._roots[image]

    async def _make_ready(self, image: str | None, disk_mb: int) -> tuple[_Machine, SupervisorClient, Root]:
        async with self._lock:
            if self._machine is None:
                self._machine = await asyncio.to_thread(_Machine.examine, self._state)
            for dead in [one for one in self._supervisors if not one.alive]:
                self._supervisors.remove(dead)
                await dead.stop()  # there is a process to be buried
            if not self._supervisors:
                await self._start_supervisor(self._machine)
            if image not in self._roots:
                self._roots[image] = await asyncio.to_thread(_make_root, image, self._machine.state)
            if disk_mb not in self._disks:
                self._disks[disk_mb] = await asyncio.to_thread(self._machine.make_disk, disk_mb)
            return self._machine, min(self._supervisors, key=_load), self._roots[image]

    def _prepared(self, making: asyncio.Task[tuple[_Machine, SupervisorClient, Root]]) -> None:
        self._preparing.discard(making)
        if not making.cancelled():
            making.exception()  # whoever waits is told; nobody may be waiting

    async def _start_supervisor(self, machine: _Machine) -> None:
        supervisor = SupervisorClient(machine.settings())
        await supervisor.start()
        self._supervisors.append(supervisor)

    def _start_in_background(self, machine: _Machine) -> None:
        """All supervisors are busy, and there may be more of them: the next sandbox need not wait for one."""

        async def start() -> None:
            try:
                async with self._lock:
                    if self._machine is machine:  # else it has been closed
                        await self._start_supervisor(machine)
            except SandboxError:
                pass  # those that there are go on
            finally:
                self._is_starting = False

        self._is_starting = True
        self._do(start())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Work that goes on by itself, and that `close` waits for."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def probe(self) -> Probe:
        """Open a sandbox, run a command in it, close it."""
        try:
            async with await self.open(SandboxSpec()) as sandbox:
                done = await sandbox.run("echo it works")
                is_bounded = self.sandboxes[sandbox].is_bounded
        except (RewardKitError, OSError) as error:
            return Probe(False, str(error), _advice(str(error)))
        if done.output != "it works\n":
            return Probe(False, f"a command answered {done.output!r}")
        assert self._machine is not None
        version = await asyncio.to_thread(_version, self._machine.program)
        groups = (
            f"cgroup v{self._machine.hierarchy.version}" if self._machine.hierarchy else "memory watched (no cgroup)"
        )
        disk = "disk bounded by a loop filesystem" if is_bounded else "disk watched (no loop filesystem)"
        return Probe(True, f"{version}, {groups}, {disk}, as {'root' if self._machine.as_root else 'an ordinary user'}")

    # ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self, spec: SandboxSpec) -> LocalSandbox:
        """A fresh sandbox with its setup done."""
        return await (self._snapshots.open(spec) if self._snapshots else self._open_fresh(spec, None))

    async def _open_fresh(self, spec: SandboxSpec, snapshot: Snapshot | None) -> LocalSandbox:
        machine, supervisor, root = await self._ready(spec.image, spec.limits.disk_mb)
        key = next(self._keys)
        request = _request(machine, root, self._disks[spec.limits.disk_mb], spec, snapshot)
        ours, porters_end = socket.socketpair()
        status = supervisor.open(key, request, porters_end)
        if snapshot is not None:
            snapshot.users += 1
        status.closed.add_done_callback(lambda _: self._closed(status, snapshot))
        porter = PorterClient(ours)
        group = _Group(machine.hierarchy, status, porter)
        place = ProcessPlace(
            porter=porter,
            limits=spec.limits,
            environment={**_ENVIRONMENT, **spec.environment},
            meter=group.meter,
            processes=group.processes,
            is_ending=lambda: bool(status.first) and is_ending(status.first),
        )

        async def end() -> None:
            self.sandboxes.pop(sandbox, None)
            group.close()
            await supervisor.close(key)

        async def disk(most: DiskUse) -> DiskUse:
            held = await asyncio.to_thread(lambda: held_use(group.processes()))
            return held + await self._tree_use(supervisor, key, status.home, most)

        workdir = spec.workdir or place.environment["HOME"]
        sandbox = LocalSandbox(
            place,
            workdir,
            status.opened,
            end,
            disk=disk,
            is_bounded=lambda: status.is_bounded,
            look=lambda condition: supervisor.look(key, condition),
        )
        self.sandboxes[sandbox] = status
        try:
            await sandbox.prepare(spec)
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    async def _tree_use(self, supervisor: SupervisorClient, key: int, home: str, most: DiskUse) -> DiskUse:
        """What a sandbox's files take that have a name.

        Root can look for itself. Another user is kept out by modes that a command may set, and asks the supervisor,
        which is root in its own user namespace.
        """
        if self._machine is not None and self._machine.as_root:
            return await asyncio.to_thread(tree_use, [home], most)
        return await supervisor.measure(key, most)

    def _closed(self, status: SandboxStatus, snapshot: Snapshot | None) -> None:
        """Nothing is left of a sandbox but its files."""
        if status.home and not status.is_kept:
            self._discard(status.home)
        if snapshot is not None and self._snapshots is not None:
            self._snapshots.released(snapshot)

    async def _keep(self, sandbox: LocalSandbox) -> tuple[str, int] | None:
        """Close a sandbox and leave its files, for a snapshot; None where they could not be kept."""
        status = self.sandboxes[sandbox]
        status.is_wanted = True
        await sandbox.close()
        await status.closed
        if not status.is_kept:
            return None
        everything = DiskUse(sys.maxsize, sys.maxsize)
        return status.home, (await asyncio.to_thread(tree_use, [status.home], everything)).size

    def _discard(self, home: str) -> None:
        """Remove what a sandbox has left, soon: going to another thread takes as long as the work there."""
        self._discarded.append(home)
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        if self._discarded:
            homes, self._discarded = self._discarded, []
            self._do(asyncio.to_thread(_remove_homes, homes))

    async def close(self) -> None:
        """Close every sandbox, and leave nothing behind."""
        while self._preparing:
            await asyncio.wait(self._preparing)
        await asyncio.gather(*(sandbox.close() for sandbox in list(self.sandboxes)))
        async with self._lock:  # a supervisor that is being started is stopped, too
            await asyncio.gather(*(supervisor.stop() for supervisor in self._supervisors))
            self._supervisors.clear()
            machine, self._machine = self._machine, None
        self._sweep()
        while tasks := list(self._tasks):
            await asyncio.gather(*tasks)
            self._tasks.difference_update(tasks)  # from Python 3.12 on, gather has no turn for their callbacks
        self._roots.clear()
        self._disks.clear()
        if machine is not None:
            await asyncio.to_thread(machine.leave)


def _remove_homes(homes: list[str]) -> None:
    for home in homes:
        remove_home(home)


def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.strip()


def _load(supervisor: SupervisorClient) -> int:
    return supervisor.load


def _make_root(image: str | None, state: StateDirectory) -> Root:
    return host_root(state.shared) if image is None else image_root(image, state.image_path(image))


class _Group:
    """Who is in a sandbox and what they use: by its control group, which has its name only when the sandbox is open;
    where there are no groups, by its pid namespace."""

    def __init__(self, hierarchy: Hierarchy | None, status: SandboxStatus, porter: PorterClient) -> None:
        self._hierarchy = hierarchy
        self._status = status
        self._turns = TurnMeter(porter)
        self._meter: Meter | None = None

    def _known(self) -> ProcessGroup | None:
        name = self._status.group
        return ProcessGroup(self._hierarchy, name) if self._hierarchy and name else None

    def meter(self) -> Meter:
        if self._hierarchy is None:
            self._turns.begin()
            return self._turns
        if self._meter is None:
            group = self._known()
            if group is None:
                return NoMeter()
            self._meter = GroupMeter(group)
        return self._meter

    def processes(self) -> list[int]:
        group = self._known()
        if group is not None:
            return group.processes()
        return processes_beside(self._status.first) if self._status.first else []

    def close(self) -> None:
        if self._meter is not None:
            self._meter.close()


def _request(machine: _Machine, root: Root, disk: str, spec: SandboxSpec, snapshot: Snapshot | None) -> dict[str, Any]:
    lowers = [("", [root.lower]), *((mounted, [mounted]) for mounted in root.mounts)]
    if snapshot is not None:
        uppers = upper_directories(snapshot.home, len(lowers))
        lowers = [(place, [upper, *below]) for (place, below), upper in zip(lowers, uppers, strict=True)]
    options = bubblewrap_options(
        network=spec.network, seccomp=machine.seccomp is not None, own_users=not machine.as_root
    )
    return {
        "own_users": not machine.as_root,
        "own_network": not spec.network,
        "lowers": lowers,
        "disk": disk,
        "options": options,
        "memory_bytes": spec.limits.memory_mb << 20,
        "shared_memory": spec.limits.memory_mb << 19,
        "processes": spec.limits.processes,
        "rlimits": process_limits(spec.limits, grouped=machine.hierarchy is not None, own_users=not machine.as_root),
    }


def _advice(problem: str) -> str:
    if "user namespace" in problem or "uid map" in problem or "unshare" in problem:
        return (
            "Allow user namespaces (`sysctl kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu, "
            "`sysctl kernel.unprivileged_userns_clone=1` on Debian), run as root, or use docker or podman."
        )
    return (
        _INSTALL
        if "bwrap" in problem and "PATH" in problem
        else "Use docker or podman, or a machine where this is allowed."
    )
