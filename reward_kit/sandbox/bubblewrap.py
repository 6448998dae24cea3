"""How bubblewrap is told to make a sandbox: what it sees, and what it shares with the host (nothing)."""

from __future__ import annotations

import functools
import os

from reward_kit.sandbox.syscalls import CONTAINER_CAPABILITIES

__all__ = ["bubblewrap_command", "bubblewrap_options"]

_READ_ONLY = ("sys", "sysrq-trigger", "dynamic_debug")
"""Entries of /proc by which root could change the host. bubblewrap sees to others, but not to these for root."""
_MASKED = ("acpi", "keys", "latency_stats", "sched_debug", "scsi", "timer_list")
"""Entries of /proc that tell about the host and not about the sandbox, to those with a container's capabilities."""


def bubblewrap_command(program: str, first: list[str]) -> list[str]:
    """Start bubblewrap so that it waits for its options on descriptor 4, and then runs `first`."""
    return [program, "--args", "4", "--", *first]


def bubblewrap_options(*, shared_memory: int, network: bool, seccomp: bool, own_users: bool) -> list[str]:
    """What every sandbox has beside its root. It tells on descriptor 3 which process is the first in it.

    `own_users`: it has a user namespace, by which the kernel counts its processes.

    bubblewrap mounts everything without devices and set-uid, and gives /dev only what every program may have.
    """
    options = ["--proc", "/proc", "--dev", "/dev"]
    # Files in memory outlive the process that is killed for them, so they may take a part of the memory only.
    options += ["--size", str(shared_memory), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    options += _masks()
    options += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if own_users:
        options += ["--unshare-user", "--uid", "0", "--gid", "0"]
    if not network:
        options.append("--unshare-net")
    options += ["--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1", "--info-fd", "3"]
    if seccomp:
        options += ["--seccomp", "5"]
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
