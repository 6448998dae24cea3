"""Going into a sandbox: what a process does before it is one of its own, and cannot undo."""

from __future__ import annotations

import os
import resource
import signal

from reward_kit.sandbox.linux.capabilities import CONTAINER_CAPABILITIES
from reward_kit.sandbox.linux.syscalls import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    bound_capabilities,
    keep_capabilities,
    load_seccomp,
    no_new_privileges,
    setns,
    unshare,
)

__all__ = ["IGNORED_BY_PYTHON", "enter_limits", "enter_namespaces", "give_up_rights", "only_keep_open"]

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
"""Signals that programs in a sandbox get with their default meaning back: what is ignored stays so over exec."""

_NAMESPACES = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID
_KEPT = frozenset(CONTAINER_CAPABILITIES.values())
_HIGHEST = 1 << 20


def only_keep_open(kept: list[int]) -> None:
    """Close every descriptor but these and the standard ones: a forked process has all of its parent's."""
    low = 3
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, _HIGHEST)


def enter_limits(rlimits: dict[str, int]) -> None:
    """Be bounded, with all that will be started."""
    os.umask(0o022)
    for name, value in rlimits.items():
        _limit(vars(resource)[name], value)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    # A process over its CPU time gets a second to hear of it before it is killed.
    top = value + 1 if kind == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else value
    resource.setrlimit(kind, (value, top))


def give_up_rights() -> None:
    """Nothing that is started from here on can have more rights than a process of a sandbox."""
    bound_capabilities(_KEPT)
    no_new_privileges()


def enter_namespaces(first: int, seccomp: bytes | None, *, own_users: bool, own_network: bool) -> None:
    """Be where the process `first` is, with the rights of a process there.

    What is not its own cannot be entered without rights in it; we are there already.
    Of the pid namespace, only those that are started from here are members: this process cannot be seen from inside.
    """
    pidfd = os.pidfd_open(first)
    setns(pidfd, _NAMESPACES | (CLONE_NEWNET if own_network else 0) | (CLONE_NEWUSER if own_users else 0))
    os.close(pidfd)
    unshare(CLONE_NEWCGROUP)  # its own group becomes the root: what that is called is not for those inside
    if own_users:
        bound_capabilities(_KEPT)  # who enters a user namespace gets all of them back
    keep_capabilities(_KEPT)
    if seccomp is not None:
        load_seccomp(seccomp)
