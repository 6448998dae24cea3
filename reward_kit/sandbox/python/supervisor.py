"""A zygote's supervisor: starts it, and runs in its sandboxes what reward-kit asks for, one thing at a time.

    reward-kit ─▶ supervisor ─▶ zygote, the first of its own process namespace ─▶ run ─▶ run ─▶ …

Started by `process`, in any interpreter: standard library only. When reward-kit or the supervisor goes, the
zygote goes, and the kernel ends whatever was in its process namespace.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any

from reward_kit.sandbox.linux import syscalls
from reward_kit.sandbox.linux.cgroups import MemoryMeter, memory_group
from reward_kit.sandbox.python.calls import call
from reward_kit.sandbox.python.cell import Forker, OwnerGoneError
from reward_kit.sandbox.python.forker import fork_runs, settle
from reward_kit.sandbox.python.messages import Message, pack, receive
from reward_kit.sandbox.python.run import run
from reward_kit.sandbox.python.trial import judge

__all__ = ["main"]

_FIRST_UID = 1_600_000_000
_FEW_UIDS = range(20_000, 60_000)
_READY = b"ready"
_COMPLAINT_BYTES = 4096
_COMMANDS: Mapping[str, Callable[[Forker, Message], bytes]] = {"run": run, "call": call, "judge": judge}


def main(control: int) -> None:
    """Serve the reward-kit at the other end of this socket, until it goes."""
    owner = socket.socket(fileno=control)
    settings = receive(owner)
    if settings is None:
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    uid = _free_uid(os.getpid())
    try:
        privileged = _leave_processes()
        group = memory_group(settings.header["group"]) if settings.header["group"] else None
        meter = MemoryMeter(group) if group else None
    except OSError as error:
        owner.sendall(pack({"error": str(error)}))
        return
    zygote = os.fork()
    if not zygote:
        owner.close()
        ours.close()
        _zygote(theirs, settings.header, uid if privileged else os.getuid(), privileged)
    theirs.close()
    signal.signal(signal.SIGTERM, lambda *_: _end(zygote))
    _serve(Forker(ours, meter, owner), privileged)
    ours.close()
    os.waitpid(zygote, 0)
    if group:
        group.remove()  # reward-kit may have been killed, and does it only where it was not


def _end(zygote: int) -> None:
    os.kill(zygote, signal.SIGKILL)
    os.waitpid(zygote, 0)
    os._exit(1)


def _free_uid(number: int) -> int:
    """A user nobody else is, nor the next, because the kernel counts a user's processes all together."""
    with open("/proc/self/uid_map", encoding="ascii") as rows:
        most = sum(int(row.split()[2]) for row in rows)
    if most > _FIRST_UID * 2:
        return _FIRST_UID + 2 * number
    return _FEW_UIDS[2 * number % len(_FEW_UIDS)]


def _leave_processes() -> bool:
    """Have the next fork begin a process namespace. As an ordinary user, in a user namespace: False."""
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        with contextlib.suppress(PermissionError):
            syscalls.unshare(syscalls.CLONE_NEWPID)
            return True
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWPID)
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)
    return False


def _zygote(supervisor: socket.socket, settings: Mapping[str, Any], uid: int, privileged: bool) -> None:
    """Be the zygote, and never return."""
    try:
        slot = settle(settings, uid, privileged)
    except BaseException as error:  # noqa: BLE001 - a module of `preload` may raise anything; reward-kit is told
        supervisor.send(f"{type(error).__name__}: {error}".encode()[:_COMPLAINT_BYTES])
        os._exit(1)
    supervisor.send(_READY)
    fork_runs(slot, supervisor)
    os._exit(0)


def _serve(forker: Forker, privileged: bool) -> None:
    """Answer requests. What the kernel refused once is not tried again here: a new zygote takes over."""
    owner = forker.owner
    word = forker.connection.recv(_COMPLAINT_BYTES)
    if word != _READY:
        owner.sendall(pack({"error": word.decode(errors="replace") or "it died as it was starting"}))
        return
    owner.sendall(pack({"privileged": privileged, "memory": forker.meter is not None}))
    with contextlib.suppress(OwnerGoneError, BrokenPipeError, ConnectionResetError):
        while request := receive(owner):
            try:
                answer = _COMMANDS[request.header["do"]](forker, request)
            except OSError as error:
                owner.sendall(pack({"error": str(error)}))
                return
            owner.sendall(answer)
