# SPDX-License-Identifier: Apache-2.0
"""Where porters come from: a process that does nothing but fork, so that forking it is cheap.

    supervisor ── so many ──▶ nursery ── fork ──▶ porter: into its control group ── enter ──▶ in a sandbox ── serve ──▶
               ◀── pidfds ───

After a fork, parent and child have to copy every page they write to. A supervisor writes to many, and would do so again
after every fork. The nursery sleeps. It has given up the rights that no porter may have, and so all of them have.

A porter that waits here has seen nothing of any sandbox, and is used for one.

The nursery is also who ends what a killed supervisor leaves. A bwrap that was still at work has a child that waits for
its word, with nobody left to give it: bwrap's own --die-with-parent comes later in that child. Until then it is in the
supervisor's process group, as all that the supervisor has started; afterwards it ends by itself, when it finds its
supervisor's end of its input closed.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import suppress

from reward_kit.sandbox.linux.capabilities import CONTAINER_CAPABILITIES
from reward_kit.sandbox.linux.cgroups import Hierarchy, ProcessGroup
from reward_kit.sandbox.linux.processes import Roll, only_keep_open
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
from reward_kit.sandbox.local.messages import Inbox, send
from reward_kit.sandbox.local.porter import Porter, enter_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

__all__ = ["Nursery", "PorterAhead"]

_NAMESPACES = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID
_KEPT = frozenset(CONTAINER_CAPABILITIES.values())
_AT_A_TIME = 4
_ALL_DONE = "all_done"
_END_SECONDS = 5.0
_FEW = 2
"""When no more than these are left, others are asked for."""


class Nursery:
    """The porters of a supervisor that have nothing to do yet."""

    def __init__(
        self, hierarchy: Hierarchy | None, pins: list[int], names: Iterator[str], seccomp: bytes | None
    ) -> None:
        """Each porter gets a control group with the next of `names` in `hierarchy`, which is found by `pins`."""
        self._hierarchy = hierarchy
        self._pins = pins
        self._names = names
        self._seccomp = seccomp
        self._waiting: list[PorterAhead] = []
        self._requested: list[PorterAhead] = []

    def start(self) -> None:
        """Start the process that porters are forked from."""
        self._ours, theirs = socket.socketpair()
        self._inbox = Inbox(self._ours)
        supervisor = os.pidfd_open(os.getpid())
        if os.fork() == 0:
            _be_nursery(theirs, supervisor, self._hierarchy, self._pins, self._seccomp)
        os.close(supervisor)
        theirs.close()

    @property
    def descriptor(self) -> int:
        """Where there is something to read when `receive` will find something."""
        return self._ours.fileno()

    def take(self) -> PorterAhead:
        """A porter; where there is none, wait for one."""
        while True:
            while self._waiting:
                porter = self._waiting.pop(0)
                if porter.is_alive():
                    return porter
                os.close(porter.pidfd)
                porter.remove()
            self.refill()
            self.receive()
            if not self._waiting:
                raise OSError("no process could be started")

    def refill(self) -> None:
        """Ask for more where few are left. They come when they come."""
        if self._requested or len(self._waiting) > _FEW:
            return
        porters: list[PorterAhead] = []
        try:
            while len(porters) < _AT_A_TIME:
                group = ProcessGroup(self._hierarchy, next(self._names)) if self._hierarchy else None
                porters.append(PorterAhead(group))
            groups = [porter.group.name if porter.group else "" for porter in porters]
            send(self._ours, {"groups": groups}, [porter.theirs.fileno() for porter in porters])
        except OSError:
            for porter in porters:
                porter.remove()
            raise
        self._requested = porters

    def receive(self) -> None:
        """Take the porters that were asked for, as many as could be started."""
        if not self._inbox.receive():
            raise OSError("the process that starts porters has ended")
        for _, pidfds in self._inbox.messages():
            expected, self._requested = self._requested, []
            for number, porter in enumerate(expected):
                porter.theirs.close()
                if number < len(pidfds):
                    porter.pidfd = pidfds[number]
                    self._waiting.append(porter)
                else:
                    porter.remove()

    def close(self) -> None:
        """Let all of them end, and the process last. There is nothing left that it would have to end."""
        for porter in (*self._waiting, *self._requested):
            porter.hang_up()
        for porter in (*self._waiting, *self._requested):
            porter.remove()
        with suppress(OSError):  # it has been killed
            send(self._ours, {_ALL_DONE: True})
            self._ours.settimeout(_END_SECONDS)
            while self._inbox.receive():
                pass
        self._ours.close()


class PorterAhead:
    """A porter as its supervisor sees it: asked for, waiting, at work, and when it has ended."""

    def __init__(self, group: ProcessGroup | None) -> None:
        """Make ready what it will need."""
        self.group = group
        self.pidfd = -1
        """By what it is known: it tells when it has ended."""
        if group is not None:
            group.create()
        self._ours, self.theirs = socket.socketpair()

    def is_alive(self) -> bool:
        """Whether nobody has killed it while it waited."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return not poll.poll(0)

    def enter(self, first: int, kind: dict[str, Any]) -> None:
        """Send it into the sandbox whose first process is `first`, and which is to be of this kind."""
        settings = ("rlimits", "own_users", "own_network", "memory_bytes")
        send(self._ours, {"first": first, **{name: kind[name] for name in settings}})

    def serve(self, porters_end: int) -> None:
        """Say through which socket its backend talks to it. It needs no more than that."""
        send(self._ours, {}, [porters_end])
        self._ours.close()

    def hang_up(self) -> None:
        """Let it end, where it does not work yet."""
        self._ours.close()
        self.theirs.close()

    def remove(self) -> None:
        """Remove what there was of it. It has ended, or is about to; nobody watches it any more."""
        self.hang_up()
        if self.group is not None:
            self.group.remove()


def _be_nursery(
    orders: socket.socket, supervisor: int, hierarchy: Hierarchy | None, pins: list[int], seccomp: bytes | None
) -> NoReturn:
    """In the forked nursery, which must never go on with its parent's work."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps; the supervisor has pidfds
        only_keep_open([orders.fileno(), supervisor, *pins])
        _give_up_rights()
        if not _fork_porters(orders, hierarchy, pins, seccomp):
            _end_all_of(supervisor)
    finally:
        os._exit(0)


def _fork_porters(orders: socket.socket, hierarchy: Hierarchy | None, pins: list[int], seccomp: bytes | None) -> bool:
    """Serve the supervisor. True: it has nothing more to do. False: it is gone, whatever it was doing."""
    inbox = Inbox(orders)
    while inbox.receive():
        for message, descriptors in inbox.messages():
            if _ALL_DONE in message:
                return True
            pidfds: list[int] = []
            with suppress(OSError):  # no more can be had
                for name, descriptor in zip(message["groups"], descriptors, strict=True):
                    process = os.fork()
                    if process == 0:
                        _wait(descriptor, ProcessGroup(hierarchy, name) if hierarchy else None, pins, seccomp)
                    pidfds.append(os.pidfd_open(process))
            with suppress(BrokenPipeError, ConnectionResetError):  # it is gone, as will be heard of next
                send(orders, {}, pidfds)
            for descriptor in (*descriptors, *pidfds):
                os.close(descriptor)
    return False


def _end_all_of(supervisor: int) -> None:
    """When the supervisor is dead, and so starts nothing any more, kill its process group: this process with it."""
    poll = select.poll()
    poll.register(supervisor, select.POLLIN)
    poll.poll()
    os.killpg(0, signal.SIGKILL)


def _wait(descriptor: int, group: ProcessGroup | None, pins: list[int], seccomp: bytes | None) -> NoReturn:
    """In the forked porter, which must never go on with its parent's work either."""
    try:
        only_keep_open([descriptor, *pins])
        if group is not None:
            group.enter()
        roll = Roll(group.pids_directory if group else None)
        for pin in pins:
            os.close(pin)
        porter = Porter(roll)
        orders = socket.socket(fileno=descriptor)
        inbox = Inbox(orders)
        kind, _ = _next(inbox)
        enter_limits(kind["rlimits"])
        _enter_namespaces(kind["first"], seccomp, own_users=kind["own_users"], own_network=kind["own_network"])
        roll.first = kind["first"]
        if group is None:
            porter.watch_memory(kind["memory_bytes"], own_network=kind["own_network"])
        _, (porters_end,) = _next(inbox)
        orders.close()
        porter.serve(socket.socket(fileno=porters_end))
    finally:
        os._exit(0)


def _next(inbox: Inbox) -> tuple[dict[str, Any], list[int]]:
    """The next order; there may be none, when the supervisor has ended."""
    while True:
        for message in inbox.messages():
            return message
        if not inbox.receive():
            os._exit(0)


# ── going into a sandbox ─────────────────────────────────────────────────────────────────────────────────────────────
#
# What a process does before it is one of a sandbox, and cannot undo.


def _give_up_rights() -> None:
    """Nothing that is started from here on can have more rights than a process of a sandbox."""
    bound_capabilities(_KEPT)
    no_new_privileges()


def _enter_namespaces(first: int, seccomp: bytes | None, *, own_users: bool, own_network: bool) -> None:
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
