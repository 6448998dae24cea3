"""The supervisor of sandboxes: a small process that mounts them, starts them, unmounts them, and outlives nothing.

    backend ── open · close ─────────────────────────▶ supervisor ─┬─ bwrap ── first process
            ◀── opened · failed · died · emptied · closed ──       └─ porter ── bash …

It has a mount namespace of its own, so that no mount is ever seen outside and all are gone when it dies; it ends when
the backend hangs up, and every sandbox with it. As an ordinary user it first makes itself a user namespace in which it
is root.

It imports only the standard library and its neighbours here, and as little of that as it can: every porter is a fork of
it.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress

from reward_kit.sandbox.bubblewrap import bubblewrap_command
from reward_kit.sandbox.cgroups import Hierarchy, ProcessGroup
from reward_kit.sandbox.disk_use import disk_bytes
from reward_kit.sandbox.entering import only_keep_open
from reward_kit.sandbox.first_process import first_command, first_program
from reward_kit.sandbox.overlay import MountedRoot
from reward_kit.sandbox.spare import Kit, Spare
from reward_kit.sandbox.supervised import SupervisedSandbox
from reward_kit.sandbox.syscalls import CLONE_NEWNS, CLONE_NEWUSER, become_subreaper, mount, umount, unshare
from reward_kit.sandbox.wire import Inbox, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from reward_kit.sandbox.overlay import Lowers

__all__ = ["Supervisor", "main"]

_MS_REC, _MS_SLAVE = 0x4000, 1 << 19
_END_MILLISECONDS = 5000.0
_USELESS = frozenset(
    {
        *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "efivarfs", "fusectl"),
        *("hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs"),
    }
)
"""Filesystems that cannot be anybody's root."""
_USELESS_PLACES = ("/dev/", "/sys/", "/var/lib/docker/", "/var/lib/containers/", "/run/user/", "/run/docker/")
_NEEDED = frozenset({"/", "/proc", "/dev"})


class Supervisor:
    """Serves one backend until it hangs up."""

    def __init__(self, channel: socket.socket, settings: dict[str, Any]) -> None:
        """Take the backend's end of the conversation, and what it found out about this machine."""
        self._as_root: bool = settings["as_root"]
        first = first_program()
        self._kit = Kit(
            command=bubblewrap_command(settings["bubblewrap"], first_command(program=first is not None)),
            first=first,
            seccomp=bytes.fromhex(settings["seccomp"]) or None,
            pins=[],
        )
        self._hierarchy: Hierarchy | None = None
        if settings["hierarchy"]:
            self._hierarchy, pins = Hierarchy(*settings["hierarchy"]).pinned()
            self._kit.pins.extend(pins)
        self._channel = channel
        self._inbox = Inbox(channel)
        self._sandboxes: dict[int, SupervisedSandbox] = {}
        self._children: dict[int, Callable[[], None]] = {}
        name = f"{os.path.basename(settings['state'])}-{os.getpid()}"
        self._group_names = (f"{name}-{number}" for number in itertools.count())
        self._homes = (f"{settings['state']}/{os.getpid()}-{number}" for number in itertools.count())
        self._spare: Spare | None = None
        self._spare_root: MountedRoot | None = None
        self._lowers: Lowers = []
        self._poll = select.poll()
        self._ready: dict[int, Callable[[], None]] = {}
        self._running = True

    # ── what its sandboxes need ──────────────────────────────────────────────────────────────────────────────────────

    def watch(self, descriptor: int, work: Callable[[], None]) -> None:
        """Call `work` whenever there is something to read."""
        self._ready[descriptor] = work
        self._poll.register(descriptor, select.POLLIN)

    def forget(self, descriptor: int) -> None:
        """Stop watching, and close."""
        del self._ready[descriptor]
        self._poll.unregister(descriptor)
        os.close(descriptor)

    def say(self, message: dict[str, Any]) -> None:
        """Tell the backend; where it is gone, nobody needs to know."""
        with suppress(BrokenPipeError, ConnectionResetError):
            send(self._channel, message)

    def adopt(self, process: int, ended: Callable[[], None]) -> None:
        """Call `ended` when this child is no more."""
        self._children[process] = ended

    def drop(self, sandbox: SupervisedSandbox) -> None:
        """A sandbox has closed."""
        self._sandboxes.pop(sandbox.key, None)

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def serve(self) -> None:
        """Answer until the backend hangs up, then end everything."""
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.watch(woken, lambda: self._reap(woken))
        self.watch(self._channel.fileno(), self._requests)
        while self._running:
            self._get_ahead()
            self._turn(None)
        self._dismiss_spares()
        for sandbox in list(self._sandboxes.values()):
            sandbox.close()
        while self._sandboxes and self._turn(_END_MILLISECONDS):
            pass

    def _turn(self, milliseconds: float | None) -> bool:
        events = self._poll.poll(milliseconds)
        for descriptor, _ in events:
            if work := self._ready.get(descriptor):
                work()
        return bool(events)

    def _requests(self) -> None:
        self._running = self._inbox.receive()
        if not self._running:
            self._poll.unregister(self._channel)
        for request, descriptors in self._inbox.messages():
            match request["do"]:
                case "open":
                    self._open(request, descriptors[0])
                case "measure":
                    self._measure(request["sandbox"], request["enough"])
                case "close":
                    self._close(request["sandbox"])

    def _open(self, request: dict[str, Any], portal: int) -> None:
        try:
            spare, self._spare = self._spare or self._new_spare(), None
            sandbox = self._sandboxes[request["sandbox"]] = SupervisedSandbox(self, request, spare)
            sandbox.open(portal)
        except OSError as error:  # no process could be started, or no group made
            self.say({"event": "failed", "sandbox": request["sandbox"], "reason": str(error)})
            self.say({"event": "closed", "sandbox": request["sandbox"], "home": ""})
        finally:
            os.close(portal)

    def _new_spare(self) -> Spare:
        group = ProcessGroup(self._hierarchy, next(self._group_names)) if self._hierarchy else None
        return Spare(group, self._kit)

    def root(self, lowers: Lowers) -> MountedRoot:
        """A fresh root of these layers: the one that was made ahead, where it is of the same."""
        self._lowers = lowers
        spare, self._spare_root = self._spare_root, None
        if spare is not None and spare.lowers == lowers:
            return spare
        if spare is not None:
            spare.umount()
        return MountedRoot(next(self._homes), lowers, as_root=self._as_root)

    def _get_ahead(self) -> None:
        """Start now what the next sandbox will need; what would keep one from opening waits until none is."""
        with suppress(OSError):  # then the next one tries again, and says so
            if self._spare is None:
                self._spare = self._new_spare()
            elif self._spare_root is None and self._lowers and not any(one.opening for one in self._sandboxes.values()):
                lowers, self._lowers = self._lowers, []
                self._spare_root = self.root(lowers)

    def _dismiss_spares(self) -> None:
        if self._spare_root is not None:
            self._spare_root.umount()
        if self._spare is not None:
            self._spare.close()
            for process in (self._spare.porter.process, self._spare.bwrap.process):
                os.waitpid(process, 0)
            if self._spare.group is not None:
                self._spare.group.remove()

    def _measure(self, key: int, enough: int) -> None:
        """Count in a process of its own, which has our rights and does not hold us up."""
        directories = self._sandboxes[key].uppers if key in self._sandboxes else []
        result, tell = os.pipe2(os.O_CLOEXEC)
        try:
            if os.fork() == 0:
                _count(directories, enough, tell)
        except OSError:
            pass  # then there is nothing to be told, and the next look will tell
        finally:
            os.close(tell)
        self.watch(result, lambda: self._measured(key, result))

    def _measured(self, key: int, result: int) -> None:
        taken = int(os.read(result, 64) or b"0")
        self.forget(result)
        self.say({"event": "measured", "sandbox": key, "bytes": taken})

    def _close(self, key: int) -> None:
        if sandbox := self._sandboxes.get(key):
            sandbox.close()
        else:
            self.say({"event": "closed", "sandbox": key, "home": ""})

    def _reap(self, woken: int) -> None:
        with suppress(BlockingIOError):
            os.read(woken, 4096)
        with suppress(ChildProcessError):
            while process := os.waitpid(-1, os.WNOHANG)[0]:
                if ended := self._children.pop(process, None):
                    ended()


def _count(directories: list[str], enough: int, tell: int) -> NoReturn:
    """In a forked child, which must never go on with its parent's work."""
    try:
        signal.set_wakeup_fd(-1)
        only_keep_open([tell])
        os.write(tell, b"%d" % (disk_bytes(directories, enough)))
    finally:
        os._exit(0)


def _isolate(as_root: bool) -> None:
    """Make the mount namespace in which sandboxes are put together; for an ordinary user, the user namespace first."""
    user, group = os.getuid(), os.getgid()
    unshare(CLONE_NEWNS if as_root else CLONE_NEWNS | CLONE_NEWUSER)
    if not as_root:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    mount("none", "/", "none", _MS_REC | _MS_SLAVE, "")


def _simplify() -> None:
    """Unmount what no sandbox needs, here only: bwrap reads the whole list of mounts again and again."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
        mounts = [line.partition(" - ") for line in lines]
    for left, _, right in reversed(mounts):
        place, kind = left.split(" ")[4], right.split(" ")[0]
        if (kind in _USELESS or place.startswith(_USELESS_PLACES)) and place not in _NEEDED:
            with suppress(OSError):
                umount(place)


def main() -> None:
    """Serve the backend whose socket and settings the arguments name."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    settings = json.loads(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends when the backend hangs up, whatever is typed at a terminal
    try:
        become_subreaper()
        _isolate(settings["as_root"])
        supervisor = Supervisor(channel, settings)
        _simplify()
    except OSError as error:
        send(channel, {"event": "unable", "reason": str(error)})
        return
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would touch every page that porters share with us
    send(channel, {"event": "ready"})
    supervisor.serve()
