"""A sandbox that is not one yet: a porter and a bwrap that have been started and wait to be told for what.

Starting programs and entering a control group take as long as all the rest, so both are done ahead. A spare has seen
nothing of any sandbox, and is used for one.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket

from reward_kit.sandbox.entering import enter_limits, enter_namespaces, give_up_rights, only_keep_open
from reward_kit.sandbox.porter import Porter
from reward_kit.sandbox.processes import Roll
from reward_kit.sandbox.wire import Inbox, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from reward_kit.sandbox.cgroups import ProcessGroup

__all__ = ["Kit", "Spare"]

_OUT_OF_THE_WAY = 100


class Kit:
    """What all spares of a supervisor are made with."""

    def __init__(self, *, command: list[str], first: int | None, seccomp: bytes | None, pins: list[int]) -> None:
        """`command` starts bwrap so that it waits for its options; control groups are found by `pins`."""
        self.command = command
        self.first = first
        """The program of the first process, where it is not a shell."""
        self.seccomp = seccomp
        self.pins = pins


class Spare:
    """Both processes, before they are needed."""

    def __init__(self, group: ProcessGroup | None, kit: Kit) -> None:
        """Start them. The group is made here; what it may use is said later."""
        self.group = group
        self.porter = _Porter(group, kit)
        self.bwrap = _Bubblewrap(kit)

    def close(self) -> None:
        """Let them end, where they have not begun yet."""
        self.porter.close()
        self.bwrap.close()


class _Bubblewrap:
    """A bwrap that waits for its options."""

    def __init__(self, kit: Kit) -> None:
        life, self.lifeline = os.pipe2(os.O_CLOEXEC)
        self.said, say = os.pipe2(os.O_CLOEXEC)
        self.information, tell = os.pipe2(os.O_CLOEXEC)
        options, self._options = os.pipe2(os.O_CLOEXEC)
        sources = [life, say, say, tell, options, _filter_file(kit.seccomp or b"")]
        kept = [] if kit.first is None else [kit.first]
        # Moved out of the way first: dup2 of a descriptor to its own number would leave it closed on exec.
        moved = [fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY) for source in sources + kept]
        actions = [(os.POSIX_SPAWN_DUP2, source, place) for place, source in enumerate(moved)]
        try:
            self.process = os.posix_spawn(kit.command[0], kit.command, {}, file_actions=actions)
        finally:
            for source in {*moved, *sources}:
                os.close(source)

    def go(self, options: list[str]) -> None:
        """Begin, with these options."""
        os.write(self._options, b"".join(option.encode() + b"\0" for option in options))
        os.close(self._options)
        self._options = -1

    def close(self) -> None:
        """Close what is still open here. One without options finds nothing to do, and ends."""
        for descriptor in (self._options, self.lifeline):
            if descriptor >= 0:
                os.close(descriptor)
        self._options = self.lifeline = -1


def _filter_file(program: bytes) -> int:
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


class _Porter:
    """A porter that waits to be told where to go."""

    def __init__(self, group: ProcessGroup | None, kit: Kit) -> None:
        if group is not None:
            group.create()
        self._ours, theirs = socket.socketpair()
        self.process = os.fork()
        if self.process == 0:
            _wait(theirs, group, kit)
        theirs.close()

    def give_portal(self, portal: int, request: dict[str, Any]) -> None:
        """Say through which socket its backend talks to it, and what its sandbox is to be."""
        told = ("rlimits", "own_users", "own_network", "memory_bytes")
        send(self._ours, {name: request[name] for name in told}, [portal])

    def go(self, first: int) -> None:
        """Send it into the sandbox whose first process is `first`."""
        send(self._ours, {"first": first})

    def close(self) -> None:
        """Let it end, where it has not gone yet."""
        self._ours.close()


def _wait(orders: socket.socket, group: ProcessGroup | None, kit: Kit) -> NoReturn:
    """In the forked child, which must never go on with its parent's work."""
    try:
        signal.set_wakeup_fd(-1)
        only_keep_open([orders.fileno(), *kit.pins])
        if group is not None:
            group.enter()
        give_up_rights()
        roll = Roll(group.pids_directory if group else None)
        for pin in kit.pins:
            os.close(pin)
        inbox = Inbox(orders)
        sandbox, (portal,) = _next(inbox)
        enter_limits(sandbox["rlimits"])
        porter = Porter(socket.socket(fileno=portal), roll)
        porter.listen()
        request, _ = _next(inbox)
        orders.close()
        own = {name: sandbox[name] for name in ("own_users", "own_network")}
        enter_namespaces(request["first"], kit.seccomp, **own)
        roll.first = request["first"]
        if group is None:
            porter.watch_memory(sandbox["memory_bytes"])
        porter.serve()
    finally:
        os._exit(0)


def _next(inbox: Inbox) -> tuple[dict[str, Any], list[int]]:
    """The next order; there may be none, when the supervisor has ended."""
    while inbox.receive():
        for message in inbox.messages():
            return message
    os._exit(0)
