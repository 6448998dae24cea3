# SPDX-License-Identifier: Apache-2.0
"""What the check of a command may trust: the programs and libraries of the root, whatever the command did to them.

    layers of the root ─▶ changes ── none that matters (nearly always) ─▶ the check runs as it is
                             └────▶ plan ─▶ a helper enters the sandbox ─▶ mounts ─▶ the check runs ─▶ what it reached

What was written in a sandbox lies apart from its root, so all that can have changed is seen without a look at the
rest, and nothing inside can hide it. Programs and libraries come from the root again. All else is as the command left
it, also what the setup wrote: that is what the task is about.

Part of the supervisor: standard library only.
"""

from __future__ import annotations

import functools
import glob
import itertools
import os
import signal
import socket
import stat
import sys
from contextlib import suppress

from reward_kit.sandbox.linux.syscalls import (
    CLONE_NEWNS,
    MS_NODEV,
    MS_NOSUID,
    ExecutionWatch,
    clone_mount,
    mount,
    place_mount,
    read_only,
    setns,
)
from reward_kit.sandbox.local.messages import Inbox, send
from reward_kit.sandbox.local.porter import IGNORED_BY_PYTHON
from reward_kit.sandbox.trust import (
    LIBRARIES,
    SEARCHED,
    THE_SAME_FOR_ALL,
    TRUSTED_PROGRAMS,
    USERS,
    has_packages,
    is_in,
    is_library,
    is_loaded_unasked,
    is_loaders,
    is_perl_module,
    is_shell,
    is_started_with,
    is_told,
    logs_in,
    may_be_read_first,
    module_of,
    names,
    only_asked_for,
    runs,
    stands_in,
    talks_to_a_process,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

__all__ = ["Helper", "Layers", "Plan", "changes", "main", "make_plan", "written"]

_MOST_LINKS: Final = 40
_WHITEOUT: Final = "gone"
_PRELOAD: Final = "/etc/ld.so.preload"
_PACKAGES_OF_PYTHON: Final = "python3*/*-packages"
_MODULES_OF_PERL: Final = ("perl*", "*-linux-*/perl*")
_PYCACHE: Final = "/__pycache__/"


class Layers:
    """The files of a sandbox, read from outside: links are followed in it, and never out of it."""

    def __init__(self, lowers: list[tuple[str, list[str]]], uppers: list[str], memory: str) -> None:
        """`lowers` and `uppers` as they were mounted; `memory` is what the sandbox has at /dev/shm."""
        self.stacks = [(place, [upper, *below]) for (place, below), upper in zip(lowers, uppers, strict=True)]
        self.memory = memory
        self._modules: set[str] | None = None
        self._by_length = sorted(self.stacks, key=lambda stack: -len(stack[0]))

    def in_base(self, path: str) -> str:
        """Where the root itself has a path, whether or not it does."""
        place, layers = self._stack(path)
        return layers[-1] + path[len(place) :]

    def as_written(self, path: str) -> str:
        """Where a path is that has been written."""
        place, layers = self._stack(path)
        return layers[0] + path[len(place) :]

    def _stack(self, path: str) -> tuple[str, list[str]]:
        return next(stack for stack in self._by_length if f"{path}/".startswith(f"{stack[0]}/"))

    def _target(self, path: str, *, base: bool) -> str | None:
        """Where a link leads; None where there is none."""
        place, layers = self._stack(path)
        for layer in layers[-1:] if base else layers:
            with suppress(OSError):
                found = os.lstat(layer + path[len(place) :])
                return os.readlink(layer + path[len(place) :]) if stat.S_ISLNK(found.st_mode) else None
        return None

    def resolve(self, path: str, *, base: bool) -> tuple[str, list[str]]:
        """Where a path leads, in the root or as it is now, and every step on the way that was a link."""
        here, left = "", path.split("/")[::-1]
        links: list[str] = []
        while left:
            part = left.pop()
            if part in ("", "."):
                continue
            if part == "..":
                here = here.rpartition("/")[0]
                continue
            step = f"{here}/{part}"
            target = self._target(step, base=base)
            if target is None or len(links) > _MOST_LINKS:
                here = step
                if step in ("/proc", "/dev"):  # what is in there is no file of the sandbox's, wherever it leads on to
                    return "/".join([step, *left[::-1]]), links
                continue
            links.append(step)
            here = "" if target.startswith("/") else here
            left += target.split("/")[::-1]
        return here or "/", links

    def program(self, path: str) -> bool:
        """Whether the root has a program there."""
        with suppress(OSError):
            found = os.lstat(self.in_base(self.resolve(path, base=True)[0]))
            return stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o111)
        return False

    def has_module(self, path: str) -> bool:
        """Whether the root has a module of this name, in Python's packages or among those of Perl."""
        if self._modules is None:
            packages = [name for place in self._folders(_PACKAGES_OF_PYTHON) for name in os.listdir(place)]
            self._modules = {module_of(f"/{name}") for name in packages}
            for folder in itertools.chain.from_iterable(map(self._folders, _MODULES_OF_PERL)):
                for _, _, files in os.walk(folder):
                    self._modules.update(name for name in files if is_perl_module(name))
        name = path.rpartition("/")[2]
        return (name.removesuffix("c") if is_perl_module(name) else module_of(path)) in self._modules

    def _folders(self, pattern: str) -> Iterator[str]:
        """The folders of the root's libraries that match."""
        places = dict.fromkeys(self.resolve(place, base=True)[0] for place in (*LIBRARIES, "/usr/share"))
        for folder in map(self.in_base, places):
            yield from (f"{folder}/{found}" for found in glob.iglob(pattern, root_dir=folder))


# ── what was changed ─────────────────────────────────────────────────────────────────────────────────────────────────


def changes(layers: Layers, *, setup: bool = False) -> dict[str, str]:
    """What was written that a check may trip over, by its path, and what it is now.

    `setup`: with what a snapshot of the setup holds.
    """
    found: dict[str, str] = {}
    for place, stack in layers.stacks:
        for upper in reversed(stack[:-1] if setup else stack[:1]):
            found.update(_below(upper, place, stack[-1]))
    found.update(_below(layers.memory, "/dev/shm", ""))
    return found


def _below(upper: str, place: str, base: str) -> Iterator[tuple[str, str]]:
    waiting = [(upper, place, base)]
    while waiting:
        directory, path, below = waiting.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            name, was = f"{path}/{entry.name}", below and f"{below}/{entry.name}"
            old = _mode(was)
            if entry.is_dir(follow_symlinks=False):
                is_new = not stat.S_ISDIR(old) or _is_opaque(entry.path)
                waiting.append((entry.path, name, "" if is_new else was))
                if old and is_new:
                    yield name, "directory"
            elif (is_link := entry.is_symlink()) or _matters(name, old):
                new = entry.stat(follow_symlinks=False)
                if is_link:
                    yield name, f"link {os.readlink(entry.path)}"
                elif stat.S_ISCHR(new.st_mode) and not new.st_rdev:
                    yield name, _WHITEOUT
                elif not (stat.S_ISREG(old) and _is_same(entry.path, was)):
                    yield name, f"file {new.st_ino} {new.st_ctime_ns}"


def _mode(path: str) -> int:
    if path:
        with suppress(OSError):
            return os.lstat(path).st_mode
    return 0


def _matters(path: str, old: int) -> bool:
    if old and (not stat.S_ISREG(old) or old & 0o111):
        return True
    return bool(
        (is_in(path, LIBRARIES) and (old or is_library(path)))
        or path.rpartition("/")[0] in SEARCHED
        or is_loaders(path)
        or may_be_read_first(path)
        or has_packages(path)
        or path == USERS
    )


def _is_opaque(directory: str) -> bool:
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        with suppress(OSError):
            if os.getxattr(directory, name) == b"y":
                return True
    return False


def _is_same(one: str, other: str) -> bool:
    """Whether two files are the same program: to be linked or touched changes nothing."""
    a, b = os.lstat(one), os.lstat(other)
    if (a.st_size, a.st_mode) != (b.st_size, b.st_mode):
        return False
    with suppress(OSError), open(one, "rb") as left, open(other, "rb") as right:
        while (part := left.read(1 << 20)) == right.read(1 << 20):
            if not part:
                return True
    return False


# ── what to do about it ──────────────────────────────────────────────────────────────────────────────────────────────


class Plan:
    """What a check needs."""

    def __init__(self) -> None:
        """It needs nothing."""
        self.refused = ""
        """What has changed so that no check can be made."""
        self.programs: dict[str, str] = {}
        """The programs of the root that would not be found any more, and where they are."""
        self.restored: dict[str, str] = {}
        """The libraries that are to be as in the root, and where they are; nowhere: they are to be empty."""
        self.watched: list[str] = []
        """The programs that a check must not reach."""
        self.opened: list[str] = []
        """The files that a check must not read, for they would stand in for what the root has."""
        self.dangling: list[str] = []
        """The links that must lead nowhere."""

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return any(vars(self).values())


def make_plan(layers: Layers, mark: dict[str, str], condition: str) -> Plan:
    """What it needs to check a condition, after what was changed since the `mark`."""
    plan = Plan()
    is_installed = any(has_packages(path) for path in mark)
    now = changes(layers, setup=is_installed)
    changed = {path: kind for path, kind in now.items() if path not in mark}
    changed = {path: kind for path, kind in changed.items() if kind != _WHITEOUT or _mode(layers.in_base(path))}
    for path, kind in mark.items():
        # What the setup wrote is what the task is about; what it installed is no more than a part of the root.
        new = now.get(path, _WHITEOUT)
        if kind == new:
            continue
        if new.startswith("link ") or path == USERS:
            changed[path] = new
        elif is_installed and (is_in(path, LIBRARIES) or names(condition, path.rpartition("/")[2])):
            plan.refused = plan.refused or path
    touched = {path for path, kind in sorted(changed.items()) if _judge(plan, layers, path, kind, condition)}
    links = [path for path, kind in changed.items() if kind.startswith("link ")]
    plan.opened = [path for path in plan.opened if not _in_a_venv(layers, path, links)]
    if USERS in changed and logs_in(condition) and _is_shell_forged(layers):
        plan.refused = USERS
    if touched and not plan.refused:
        _find_programs(plan, layers, mark, touched, condition)
    if talks_to_a_process(condition):  # what goes on meanwhile must not change it after this look
        plan.restored.setdefault(_PRELOAD, layers.in_base(_PRELOAD) if _mode(layers.in_base(_PRELOAD)) else "")
    return plan


def _judge(plan: Plan, layers: Layers, path: str, kind: str, condition: str) -> bool:
    """Say of one change what it asks for. True: it is one of a program, which others may lead to."""
    base = layers.in_base(path)
    old = _mode(base)
    name = path.rpartition("/")[2]
    is_link = kind.startswith("link ")
    if is_link and _leads_out(layers, path):
        plan.dangling.append(path)
    if (old or is_link) and any(place == path or place.startswith(f"{path}/") for place in (*SEARCHED, *LIBRARIES)):
        plan.refused = path  # a directory that everything is in
    elif is_loaders(path):
        plan.restored[path] = base if old else ""
    elif is_in(path, LIBRARIES) or is_started_with(path):
        if old:
            plan.restored[path] = base
        elif is_loaded_unasked(path) or (is_library(name) and _is_known_library(layers, name)):
            plan.refused = path
        elif _PYCACHE in path and stands_in(path):
            plan.restored[path] = ""  # Python writes such files by itself, and does without them
    elif old:
        return stat.S_ISDIR(old) or layers.program(path)
    is_news = not old and path not in plan.restored and may_be_read_first(path) and not is_told(path, condition)
    if is_news and (stands_in(path) or layers.has_module(path)):
        plan.opened.append(path)
    return path.rpartition("/")[0] in SEARCHED and not old


def _in_a_venv(layers: Layers, path: str, links: list[str]) -> bool:
    """Whether a file belongs to a virtual environment, which only its own Python reads."""
    home = path.partition("/lib/python")[0]
    if "/.local/" in path or home == path or is_in(home, ("/usr", "/lib")):
        return False
    if any(is_in(path, (layers.resolve(link, base=False)[0],)) for link in links):
        return False
    return os.path.lexists(layers.as_written(f"{home}/pyvenv.cfg"))


def _is_shell_forged(layers: Layers) -> bool:
    """Whether a user's shell is no shell of the root."""
    with suppress(OSError), open(layers.as_written(USERS), encoding="utf-8", errors="replace") as lines:
        shells = {line.rstrip("\n").rpartition(":")[2] for line in lines}
        return not all(is_shell(shell) and (not shell or layers.program(shell)) for shell in shells)
    return False


def _leads_out(layers: Layers, path: str) -> bool:
    """Whether a link leads to what is no file of the sandbox: to say something else to each who reads it."""
    end = layers.resolve(path, base=False)[0]
    return is_in(end, ("/proc", "/dev")) and end not in THE_SAME_FOR_ALL


def _is_known_library(layers: Layers, name: str) -> bool:
    """Whether the loader finds a library of this name in the root."""
    for place in LIBRARIES:
        directory = layers.in_base(layers.resolve(place, base=True)[0])
        with suppress(OSError):
            if name in (there := os.listdir(directory)):
                return True
            if any("-linux-" in sub and os.path.lexists(f"{directory}/{sub}/{name}") for sub in there):
                return True
    return False


def _find_programs(plan: Plan, layers: Layers, mark: dict[str, str], touched: set[str], condition: str) -> None:
    """Which names mean another program than in the root, and which programs must not be reached by their paths."""
    searched = dict.fromkeys(layers.resolve(place, base=True)[0] for place in SEARCHED)
    known: dict[str, tuple[str, set[str]]] = {}
    for directory in searched:
        with suppress(OSError):
            for name in os.listdir(layers.in_base(directory)):
                end, links = layers.resolve(f"{directory}/{name}", base=True)
                known.setdefault(name, (end, {*links, end}))
    asked = only_asked_for(condition)
    shadows = {path.rpartition("/")[2] for path in touched if not _mode(layers.in_base(path))}
    for name, (end, steps) in known.items():
        is_changed = any(above in touched for step in steps for above in _parents(step))
        if name in asked or not (name in shadows or is_changed):
            continue
        if not steps & set(mark) and layers.program(end):
            plan.programs[name] = layers.in_base(end)
            plan.watched += [f"{directory}/{name}" for directory in searched if name not in shadows]
    plan.watched += sorted(path for path in touched if _mode(layers.in_base(path)))
    for path in dict.fromkeys(plan.watched):
        name = layers.resolve(path, base=False)[0].rpartition("/")[2]
        if name not in asked and name in known and layers.program(known[name][0]):  # it stands in for another one
            plan.programs.setdefault(name, layers.in_base(known[name][0]))
    # What is asked for is where the command left it, and not to be run.
    plan.watched += sorted(path for path in touched if path.rpartition("/")[2] in asked & known.keys())
    removed = [path for path in dict.fromkeys(plan.watched) if layers.program(path) and runs(condition, path)]
    plan.refused = plan.refused or next(iter(sorted(removed)), "")


def _parents(path: str) -> Iterator[str]:
    """A path, and the directories above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def written(layers: Layers) -> dict[str, tuple[int, int]]:
    """What has been written where programs and libraries are, and when: no one can take that back without a trace."""
    found: dict[str, tuple[int, int]] = {}
    places = (*SEARCHED, *LIBRARIES, "/etc/alternatives")
    for place, stack in layers.stacks:
        for above in dict.fromkeys(layers.resolve(place, base=True)[0] for place in places):
            if not is_in(above, (place,)):
                continue
            for directory, _, files in os.walk(stack[0] + above[len(place) :]):
                for path in (directory, *(f"{directory}/{name}" for name in files)):
                    with suppress(OSError):
                        now = os.lstat(path)
                        found[place + path[len(stack[0]) :]] = (now.st_ino, now.st_ctime_ns)
    return found


# ── doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────
#
#     supervisor ── plan ──▶ helper ── programs ──▶ … the check runs … ── hang up ──▶ what it has reached
#
# The helper is a program of its own, started only where there is something to do. It enters the mount namespace of the
# sandbox, which nobody in the sandbox can change.

_ROOT: Final = os.path.abspath(__file__).rsplit("/", 4)[0]
_START: Final = f"import sys; sys.path.insert(0, {_ROOT!r}); from {__name__} import main; main()"


class Helper:
    """The process that carries out a plan, as its supervisor sees it."""

    def __init__(self, first: int, plan: Plan) -> None:
        """Start it, for the sandbox whose first process is `first`."""
        self._ours, theirs = socket.socketpair()
        self._inbox = Inbox(self._ours)
        os.set_inheritable(theirs.fileno(), True)
        with theirs:
            arguments = [sys.executable, "-I", "-S", "-c", _START, str(theirs.fileno())]
            os.posix_spawn(sys.executable, arguments, {"PATH": os.defpath}, setsigdef=IGNORED_BY_PYTHON)
        self.descriptor = os.dup(self._ours.fileno())
        """Where there is something to read when `next_word` will find something."""
        send(self._ours, {"first": first, **vars(plan)})

    def next_word(self) -> dict[str, Any]:
        """`programs` when it is ready; `refused` when it is over: what a check must not use, or did; else `failed`."""
        while self._inbox.receive():
            for message, _ in self._inbox.messages():
                return message
        return {"failed": "the process that prepares a check has ended"}

    def close(self) -> None:
        """Let it say what the check has reached, and end."""
        self._ours.shutdown(socket.SHUT_WR)


def main() -> None:
    """Carry out the plan that comes through the socket whose number is the argument."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox = Inbox(channel)
    order = next(_messages(inbox))
    try:
        refused, watch = _carry_out(order)
    except OSError as error:
        send(channel, {"failed": str(error)})
        return
    if refused:
        send(channel, {"refused": refused})
        return
    send(channel, {"programs": sorted(order["programs"])})
    for _ in _messages(inbox):
        pass
    send(channel, {"refused": watch.reached()})


def _messages(inbox: Inbox) -> Iterator[dict[str, Any]]:
    while inbox.receive():
        yield from (message for message, _ in inbox.messages())


def _carry_out(order: dict[str, Any]) -> tuple[str, ExecutionWatch]:
    programs = {name: clone_mount(source) for name, source in order["programs"].items()}
    restored = {path: _take(source) for path, source in order["restored"].items()}
    descriptor = os.pidfd_open(order["first"])
    setns(descriptor, CLONE_NEWNS)
    if programs or None in restored.values():
        mount("tmpfs", TRUSTED_PROGRAMS, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    for path, mend in [(path, _dangle) for path in order["dangling"]] + [
        (path, functools.partial(_restore, source=source)) for path, source in restored.items()
    ]:
        try:
            mend(path)
        except OSError:
            return path, ExecutionWatch([])
    for name, program in programs.items():
        _make_empty(f"{TRUSTED_PROGRAMS}/{name}")
        place_mount(program, f"{TRUSTED_PROGRAMS}/{name}")
    if programs:
        read_only(TRUSTED_PROGRAMS)
    try:
        return "", ExecutionWatch(_files(order["watched"]), _files(order["opened"]))
    except OSError:  # no more can be watched: that is the doing of who changed so much
        return next(iter([*order["watched"], *order["opened"]])), ExecutionWatch([])


def _files(paths: list[str]) -> list[str]:
    """Those that are files, by whatever links; of a package, what is read of it first."""
    found = [f"{path}/__init__.py" if os.path.isdir(path) else path for path in paths]
    return [path for path in found if os.path.isfile(path)]


def _dangle(path: str) -> None:
    target = os.readlink(path)
    os.unlink(path)
    os.symlink(f"/dev/null/{target}", path)


def _take(source: str) -> str | int | None:
    """What is put in the place of something: where a link leads, a mount that is nowhere yet, or an empty file."""
    if not source:
        return None
    return os.readlink(source) if os.path.islink(source) else clone_mount(source)


def _restore(path: str, source: str | int | None) -> None:
    kind = stat.S_IFMT(os.fstat(source).st_mode) if isinstance(source, int) else stat.S_IFREG
    if isinstance(source, str) or not os.path.lexists(path) or stat.S_IFMT(os.lstat(path).st_mode) != kind:
        with suppress(FileNotFoundError):
            os.rename(path, f"{path}.changed")
        if isinstance(source, str):
            os.symlink(source, path)
            return
        os.mkdir(path) if kind == stat.S_IFDIR else _make_empty(path)
    if source is None:
        _make_empty(nothing := f"{TRUSTED_PROGRAMS}/.nothing")
        source = clone_mount(nothing)
    place_mount(source, path)
    read_only(path)


def _make_empty(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o755))
