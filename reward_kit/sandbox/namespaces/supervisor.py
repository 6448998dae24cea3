# SPDX-License-Identifier: Apache-2.0
"""The supervisor of sandboxes: a small process that mounts them, starts them, unmounts them, and outlives nothing.

    backend ── open · close ──────────────────────▶ supervisor ─┬─ bwrap ── first process
            ◀── opened · failed · closed ─────────────          └─ nursery ── porter ── bash …

Where the same kind of sandbox is asked for again and again, the next one is put together before it is asked for. It has
seen nobody's commands, and is thrown away when another kind is wanted.

It has a mount namespace of its own, so that no mount is ever seen outside and all are gone when it dies; it ends when
the backend hangs up, and every sandbox with it. As an ordinary user it first makes itself a user namespace in which it
is root.

It imports only the standard library and its neighbours here, and as little of that as it can: the nursery, and every
porter with it, is a fork of it.
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

from reward_kit.sandbox.linux.cgroups import Hierarchy
from reward_kit.sandbox.linux.disk_use import DiskUse, tree_use
from reward_kit.sandbox.linux.processes import only_keep_open
from reward_kit.sandbox.linux.syscalls import (
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MS_REC,
    MS_SLAVE,
    become_subreaper,
    mount,
    umount,
    unshare,
)
from reward_kit.sandbox.local.messages import Inbox, send
from reward_kit.sandbox.namespaces.bubblewrap import Launcher
from reward_kit.sandbox.namespaces.files import Workshop, remove_home
from reward_kit.sandbox.namespaces.nursery import Nursery
from reward_kit.sandbox.namespaces.trusted import Helper, Layers, changes, make_plan, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from reward_kit.sandbox.namespaces.bubblewrap import Bubblewrap, Launcher
    from reward_kit.sandbox.namespaces.files import MountedFiles, Workshop
    from reward_kit.sandbox.namespaces.nursery import PorterAhead

__all__ = ["Supervisor", "main"]

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
        seccomp = bytes.fromhex(settings["seccomp"]) or None
        self.launcher = Launcher(settings["bubblewrap"], seccomp)
        self.workshop = Workshop(settings["state"], as_root=settings["as_root"])
        hierarchy, pins = Hierarchy(*settings["hierarchy"]).pinned() if settings["hierarchy"] else (None, [])
        name = f"{os.path.basename(settings['state'])}-{os.getpid()}"
        names = (f"{name}-{number}" for number in itertools.count())
        self._nursery = Nursery(hierarchy, pins, names, seccomp)
        self._channel = channel
        self._inbox = Inbox(channel)
        self._sandboxes: set[_Sandbox] = set()
        self._given: dict[int, _Sandbox] = {}
        self._ahead: _Sandbox | None = None
        self._kind: dict[str, Any] = {}
        self._is_kind_wanted = False
        self._poll = select.poll()
        self._ready: dict[int, Callable[[], None]] = {}
        self._running = True

    # ── what its sandboxes need ──────────────────────────────────────────────────────────────────────────────────────

    def watch(self, descriptor: int, work: Callable[[], None]) -> None:
        """Call `work` whenever there is something to read."""
        self._ready[descriptor] = work
        self._poll.register(descriptor, select.POLLIN)

    def forget(self, descriptor: int) -> None:
        """Watch this descriptor no longer, and close it."""
        del self._ready[descriptor]
        self._poll.unregister(descriptor)
        os.close(descriptor)

    def _ignore(self, descriptor: int) -> None:
        """Stop watching what stays open."""
        if self._ready.pop(descriptor, None):
            self._poll.unregister(descriptor)

    def say(self, message: dict[str, Any]) -> None:
        """Tell the backend; where it is gone, nobody needs to know."""
        with suppress(BrokenPipeError, ConnectionResetError):
            send(self._channel, message)

    def drop(self, sandbox: _Sandbox) -> None:
        """A sandbox has closed. The files of one that nobody has asked for are nobody else's business."""
        self._sandboxes.discard(sandbox)
        self._given.pop(sandbox.key, None)
        if not sandbox.key and sandbox.home:
            remove_home(sandbox.home)

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def serve(self) -> None:
        """Answer until the backend hangs up, then end everything."""
        # The kernel reaps children, adopted ones too: a pid namespace ends only when all in it are reaped.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self._nursery.start()
        self.watch(self._nursery.descriptor, self._from_nursery)
        self.watch(self._channel.fileno(), self._requests)
        while self._running:
            self._get_ahead()
            self._turn(None)
        for sandbox in list(self._sandboxes):
            sandbox.close()
        while self._sandboxes and self._turn(_END_MILLISECONDS):
            pass
        self._nursery.close()  # last: until then it ends all of this where we are killed

    def _turn(self, milliseconds: float | None) -> bool:
        """Do what there is to do. A descriptor may be closed meanwhile, and its number mean another one."""
        events = [(descriptor, self._ready[descriptor]) for descriptor, _ in self._poll.poll(milliseconds)]
        for descriptor, work in events:
            if self._ready.get(descriptor) is work:
                work()
        return bool(events)

    def _from_nursery(self) -> None:
        try:
            self._nursery.receive()
        except OSError:  # without it nothing can be done here: let the backend go to another supervisor at once
            with suppress(OSError):  # it has gone by itself
                self._channel.shutdown(socket.SHUT_RDWR)
            self._running = False
            self._ignore(self._nursery.descriptor)

    def _requests(self) -> None:
        if not self._inbox.receive():
            self._running = False
            self._ignore(self._channel.fileno())
        for request, descriptors in self._inbox.messages():
            match request["do"]:
                case "open":
                    self._open(request, descriptors[0])
                case "measure":
                    self._measure(request["sandbox"], DiskUse(*request["most"]))
                case "look":
                    self._look(request["sandbox"], request["condition"])
                case "close":
                    self._close(request["sandbox"], keep=request.get("keep", False))

    def _open(self, request: dict[str, Any], porters_end: int) -> None:
        """`kind` is told where it is another one than the last."""
        kind = request.get("kind", self._kind)
        self._is_kind_wanted = kind is self._kind
        ahead, self._ahead, self._kind = self._ahead, None, kind
        if ahead is not None and ahead.kind is kind and not ahead.closing:
            self._given[request["sandbox"]] = ahead
            ahead.give_to(request["sandbox"], porters_end)
            return
        if ahead is not None:
            ahead.close()
        self._open_new(request["sandbox"], porters_end)

    def _open_new(self, key: int, porters_end: int) -> None:
        try:
            sandbox = self._given[key] = self._new_sandbox()
        except OSError as error:  # no process could be started, or no group made
            os.close(porters_end)
            self.say({"event": "failed", "sandbox": key, "reason": str(error)})
            self.say({"event": "closed", "sandbox": key, "home": "", "kept": False})
        else:
            sandbox.give_to(key, porters_end)
            sandbox.begin()

    def _new_sandbox(self) -> _Sandbox:
        sandbox = _Sandbox(self, self._kind, self._nursery.take())
        self._sandboxes.add(sandbox)
        return sandbox

    def _get_ahead(self) -> None:
        """Start now what the next sandbox will need, unless that would keep one from opening."""
        if any(sandbox.opening for sandbox in self._sandboxes):
            return
        with suppress(OSError):  # then the next one tries again, and says so
            self._nursery.refill()
            if self._is_kind_wanted and self._ahead is None:
                self._is_kind_wanted = False  # tried once for each that was asked for
                self._ahead = self._new_sandbox()
                self._ahead.begin()

    def _measure(self, key: int, most: DiskUse) -> None:
        """Count in a process of its own, which has our rights and does not hold us up."""
        directories = self._given[key].uppers if key in self._given else []
        result, tell = os.pipe2(os.O_CLOEXEC)
        try:
            if os.fork() == 0:
                _count(directories, most, tell)
        except OSError:
            pass  # then there is nothing to be told, and the next look will tell
        finally:
            os.close(tell)
        self.watch(result, lambda: self._measured(key, result))

    def _measured(self, key: int, result: int) -> None:
        use = [int(number) for number in os.read(result, 64).split()]
        self.forget(result)
        self.say({"event": "measured", "sandbox": key, "use": use})

    def _look(self, key: int, condition: str | None) -> None:
        if sandbox := self._given.get(key):
            sandbox.look(condition)

    def _close(self, key: int, *, keep: bool) -> None:
        if sandbox := self._given.get(key):
            sandbox.close(keep=keep)
        else:
            self.say({"event": "closed", "sandbox": key, "home": "", "kept": False})


def _count(directories: list[str], most: DiskUse, tell: int) -> NoReturn:
    """In a forked child, which must never go on with its parent's work."""
    try:
        only_keep_open([tell])
        use = tree_use(directories, most)
        os.write(tell, b"%d %d" % (use.size, use.files))
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
    mount("none", "/", "none", MS_REC | MS_SLAVE, "")


def _simplify(state: str) -> None:
    """Unmount what no sandbox needs, here only: bwrap reads the whole list of mounts again and again."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
        mounts = [line.partition(" - ") for line in lines]
    for left, _, right in reversed(mounts):
        place, kind = left.split(" ")[4], right.split(" ")[0]
        is_ours = state.startswith(f"{place}/") or place.startswith(f"{state}/")
        if (kind in _USELESS or place.startswith(_USELESS_PLACES)) and place not in _NEEDED and not is_ours:
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
        if os.getpgrp() != os.getpid():
            os.setpgid(0, 0)  # who is in it ends with us
        become_subreaper()
        _isolate(settings["as_root"])
        supervisor = Supervisor(channel, settings)
        _simplify(settings["state"])
    except OSError as error:
        send(channel, {"event": "unable", "reason": str(error)})
        return
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection would touch every page that porters share with us
    send(channel, {"event": "ready"})
    supervisor.serve()


# ── one sandbox ──────────────────────────────────────────────────────────────────────────────────────────────────────

_READY = b"\n"
"""What the first process of a sandbox says when it runs."""


class _Sandbox:
    """One sandbox, from its mounts to its unmounting. It may be put together before anybody asks for it."""

    def __init__(self, supervisor: Supervisor, kind: dict[str, Any], porter: PorterAhead) -> None:
        """Take the description and the process that will serve it; `begin` does the work."""
        self.kind = kind
        self.key = 0
        """By what the backend knows it; 0 where nobody has asked for it yet."""
        self._supervisor = supervisor
        self._porter = porter
        self._porters_end = -1
        self._files: MountedFiles | None = None
        self._bwrap: Bubblewrap | None = None
        self._bwrap_output = b""
        self._first = 0  # by its number outside
        self._living: dict[str, int] = {}  # by their pidfds
        self._mark: dict[str, str] = {}
        self._written: dict[str, tuple[int, int]] = {}
        self._meanwhile = ""  # what has been written there while a check ran
        self._helper: Helper | None = None
        self._is_mounted = True
        self._made = self._open = self._closing = self._keep = False

    @property
    def opening(self) -> bool:
        """Whether it is still being put together."""
        return not (self._open or self._closing)

    @property
    def closing(self) -> bool:
        """Whether it is of no more use."""
        return self._closing

    @property
    def home(self) -> str:
        """Where its files are; nowhere, when it has not come so far."""
        return self._files.home if self._files else ""

    @property
    def uppers(self) -> list[str]:
        """Where what is written in it comes to lie."""
        return self._files.root.uppers if self._files else []

    # ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Put the sandbox together: limit its group, mount its files, and have its porter enter it."""
        self._watch("porter", self._porter.pidfd)
        try:
            if self._porter.group is not None:
                self._porter.group.limit(memory_bytes=self.kind["memory_bytes"], processes=self.kind["processes"])
            self._files = files = self._supervisor.workshop.make(self.kind)
            self._bwrap = self._supervisor.launcher.start(files.root.path, files.devices, self.kind["options"])
            if self._bwrap.pidfd >= 0:  # else it has ended, and has said why
                self._watch("bwrap", self._bwrap.pidfd)
            self._supervisor.watch(self._bwrap.output_end, self._hear)
        except OSError as error:
            self._fail(str(error))

    def _watch(self, name: str, pidfd: int) -> None:
        self._living[name] = pidfd
        self._supervisor.watch(pidfd, lambda: self._ended(name))

    def _hear(self) -> None:
        """The first process says an empty line when it runs; anything else is bwrap complaining."""
        assert self._bwrap is not None
        data = os.read(self._bwrap.output_end, 4096)
        self._bwrap_output += data
        if data and self._bwrap_output != _READY:
            return
        self._made = True
        self._supervisor.forget(self._bwrap.output_end)
        found = self._bwrap_output == _READY and self._find_first(self._bwrap.first())
        if self._closing:
            self._kill()
        elif found:
            self._enter()
        else:
            self._fail(self._complaint)

    @property
    def _complaint(self) -> str:
        return self._bwrap_output.decode(errors="replace").strip() or "bwrap ended without a word"

    def _find_first(self, first: int) -> bool:
        self._first = first
        try:
            self._watch("first", os.pidfd_open(first))
        except ProcessLookupError:
            return False
        return True

    def _enter(self) -> None:
        """It is all there: let the porter in. What bwrap was given is its own by now, and here only in the way."""
        self._open = True
        with suppress(BrokenPipeError):  # it has ended, and that will be heard of
            self._porter.enter(self._first, self.kind)
        self._introduce()
        self._umount()

    def give_to(self, key: int, porters_end: int) -> None:
        """Somebody asks for it, and talks to its porter through `porters_end`, which is taken over."""
        self.key, self._porters_end = key, porters_end
        self._introduce()

    def _introduce(self) -> None:
        if self._open and self.key:
            group = self._porter.group.name if self._porter.group else ""
            is_bounded = self._files is not None and self._files.is_bounded
            facts = {"group": group, "home": self.home, "first": self._first, "bounded": is_bounded}
            with suppress(BrokenPipeError):
                self._porter.serve(self._porters_end)
            self._close_porters_end()
            self._supervisor.say({"event": "opened", "sandbox": self.key, **facts})

    def _close_porters_end(self) -> None:
        if self._porters_end >= 0:
            os.close(self._porters_end)
        self._porters_end = -1

    def _umount(self) -> None:
        if self._files is not None and self._is_mounted:
            self._is_mounted = False
            self._files.umount()

    def _fail(self, reason: str) -> None:
        self._report({"event": "failed", "reason": reason})
        self.close()

    def _report(self, event: dict[str, Any]) -> None:
        """Tell who has asked for it, if anybody has."""
        if self.key:
            self._supervisor.say({**event, "sandbox": self.key})

    # ── checking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def look(self, condition: str | None) -> None:
        """See to it that a check of this condition can be trusted; None: what is there now is what it may trust.

        Told are the programs that it has to use instead of those that were changed; or what it must not reach, once
        the check is over and this is asked for again.
        """
        assert self._files is not None
        layers = Layers(self.kind["lowers"], self._files.written(), f"/proc/{self._first}/root/dev/shm")
        if self._helper is not None:
            self._meanwhile = next(iter(dict(written(layers).items() ^ self._written.items())), "")
            self._helper.close()  # upon which it says what the check has reached
            return
        if condition is None:
            self._mark = changes(layers, setup=True)
            self._report({"event": "looked"})
            return
        plan = make_plan(layers, self._mark, condition)
        if plan.refused or not plan:
            self._report({"event": "looked", "refused": plan.refused})
            return
        self._helper = Helper(self._first, plan)
        self._helper_says(self._helper, layers)

    def _helper_says(self, helper: Helper, layers: Layers) -> None:
        def say() -> None:
            said = helper.next_word()
            if "programs" in said:
                self._written = written(layers)
            elif self._meanwhile and not said.get("refused"):
                said = {"refused": self._meanwhile}
            self._report({"event": "looked", **said})
            if "programs" not in said:
                self._helper = None
                self._supervisor.forget(helper.descriptor)

        self._supervisor.watch(helper.descriptor, say)

    # ── closing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, *, keep: bool = False) -> None:
        """Kill everything in it; the rest follows when the last one is dead. `keep`: what was written is wanted."""
        if self._closing:
            return
        self._closing = True
        self._keep = keep
        if self._helper is not None:
            self._helper.close()
        self._kill()
        self._finish()

    def _kill(self) -> None:
        """A bwrap that is still at work is let finish: by now it may have a child that nobody else knows of."""
        for name, pidfd in self._living.items():
            if name != "bwrap" or self._made:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def _ended(self, who: str) -> None:
        """One of its three processes is no more. When it is not closing, the sandbox has died."""
        self._supervisor.forget(self._living.pop(who))
        if not self._closing:
            self._fail(self._last_words() if who == "bwrap" else f"its {who} process ended")
        else:
            self._finish()

    def _last_words(self) -> str:
        """What bwrap has said before it ended; that matters only to who waits for the sandbox to open."""
        if self._bwrap is not None and not self._made:
            os.set_blocking(self._bwrap.output_end, False)
            with suppress(BlockingIOError):
                while data := os.read(self._bwrap.output_end, 4096):
                    self._bwrap_output += data
            self._made = True
            self._supervisor.forget(self._bwrap.output_end)
        return self._complaint

    def _finish(self) -> None:
        if self._living:
            return
        self._close_porters_end()
        if self._bwrap is not None:
            self._bwrap.close()
        self._umount()
        self._porter.remove()
        if self._keep and self._files is not None and self._files.is_bounded:
            self._copy(self._files)
        else:
            self._end(is_kept=self._keep)

    def _copy(self, files: MountedFiles) -> None:
        """What is wanted goes to where other supervisors find it, too."""
        try:
            result = files.copy()
        except OSError:
            self._end(is_kept=False)
            return

        def copied() -> None:
            is_kept = files.is_copied(result)
            self._supervisor.forget(result)
            self._end(is_kept=is_kept)

        self._supervisor.watch(result, copied)

    def _end(self, *, is_kept: bool) -> None:
        if self._files is not None:
            self._files.release()
        self._supervisor.drop(self)
        self._report({"event": "closed", "home": self.home, "kept": is_kept})
