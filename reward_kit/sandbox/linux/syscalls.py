# SPDX-License-Identifier: Apache-2.0
"""The system calls that sandboxes need and Python does not offer, by ctypes; Linux only.

Nothing here imports anything heavy: a supervisor, of which every porter is a fork, stays small.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import signal
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

__all__ = [
    "CLONE_NEWCGROUP",
    "CLONE_NEWIPC",
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUSER",
    "CLONE_NEWUTS",
    "MS_BIND",
    "MS_NODEV",
    "MS_NOEXEC",
    "MS_NOSUID",
    "MS_PRIVATE",
    "MS_RDONLY",
    "MS_REC",
    "MS_REMOUNT",
    "MS_SILENT",
    "MS_SLAVE",
    "ExecutionWatch",
    "become_subreaper",
    "bound_capabilities",
    "clone_mount",
    "die_with_parent",
    "drop_capabilities",
    "keep_capabilities",
    "load_seccomp",
    "mount",
    "no_new_privileges",
    "own_shared_memory",
    "pivot",
    "place_mount",
    "process_cpu_clock",
    "protect_memory",
    "raise_loopback",
    "read_only",
    "set_hostname",
    "setns",
    "spawn_init",
    "umount",
    "unshare",
    "writable_together",
]

CLONE_NEWNS: Final = 0x0002_0000
CLONE_NEWCGROUP: Final = 0x0200_0000
CLONE_NEWUTS: Final = 0x0400_0000
CLONE_NEWIPC: Final = 0x0800_0000
CLONE_NEWUSER: Final = 0x1000_0000
CLONE_NEWPID: Final = 0x2000_0000
CLONE_NEWNET: Final = 0x4000_0000

MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REMOUNT: Final = 0x20
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_SILENT: Final = 0x8000
MS_PRIVATE: Final = 0x4_0000
MS_SLAVE: Final = 0x8_0000

_MNT_DETACH: Final = 2
_CLONE_VM: Final = 0x100
_CLONE_FILES: Final = 0x400
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_SECCOMP: Final = 22
_PR_CAPBSET_DROP: Final = 24
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_MODE_FILTER: Final = 2
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1
_SYS_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE, _MOVE_MOUNT_EMPTY_SOURCE, _AT_SYMLINK_NOFOLLOW = 1, 4, 0x100
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID = 1, 2
_FAN_NONBLOCK, _FAN_MARK_ADD, _FAN_OPEN, _FAN_OPEN_EXEC, _IN_OPEN = 2, 1, 0x20, 0x1000, 0x20
_MAP_FIXED: Final = 0x10
_PROTECTIONS: Final = {"r": mmap.PROT_READ, "w": mmap.PROT_WRITE, "x": mmap.PROT_EXEC}
_STACK_BYTES: Final = 1 << 16

_libc = ctypes.CDLL(None, use_errno=True)
_int, _long, _word, _size = ctypes.c_int, ctypes.c_long, ctypes.c_ulong, ctypes.c_size_t
_text, _address = ctypes.c_char_p, ctypes.c_void_p


def _function(name: str, *kinds: Any, returns: Any = _int) -> Any:
    """A function of the C library. All are looked up at once: else every fork would look up its own."""
    function = _libc[name]
    function.argtypes = kinds
    function.restype = returns
    return function


_mount = _function("mount", _text, _text, _text, _word, _text)
_umount = _function("umount2", _text, _int)
_unshare = _function("unshare", _int)
_setns = _function("setns", _int, _int)
_prctl = _function("prctl", _int, _word, _word, _word, _word)
_capset = _function("capset", _text, _text)
_pivot_root = _function("syscall", _long, _text, _text, returns=_long)
_mount_setattr = _function("syscall", _long, _long, _text, _long, _address, _size, returns=_long)
_open_tree = _function("syscall", _long, _long, _text, _long, returns=_long)
_move_mount = _function("syscall", _long, _long, _text, _long, _text, _long, returns=_long)
_fanotify_init = _function("fanotify_init", _int, _int)
_fanotify_mark = _function("fanotify_mark", _int, _int, ctypes.c_uint64, _int, _text)
_inotify_init = _function("inotify_init1", _int)
_inotify_add_watch = _function("inotify_add_watch", _int, _text, ctypes.c_uint32)
_sethostname = _function("sethostname", _text, _size)
_pause = _function("pause")
_clone = _function("clone", _address, _address, _int, _address)
_mmap = _function("mmap", _address, _size, _int, _int, _int, _long, returns=_address)
_mprotect = _function("mprotect", _address, _size, _int)
_CAPABILITY_HEADER: Final = struct.pack("=Ii", 0x2008_0522, 0)
"""Version 3, this process."""


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    """Mount a file system, as mount(2) does; an `OSError` that names the target where that fails."""
    done = _mount(source.encode(), target.encode(), kind.encode(), flags, options.encode())
    _check(done, f"mount {kind} on {target}")


def umount(target: str) -> None:
    """Unmount now for everyone who comes, and for those inside when they leave."""
    _check(_umount(target.encode(), _MNT_DETACH), f"umount {target}")


def unshare(flags: int) -> None:
    """Move this process into new namespaces, as unshare(2) does."""
    _check(_unshare(flags), "unshare")


def setns(descriptor: int, flags: int) -> None:
    """setns(2), with a pidfd or a namespace's file."""
    _check(_setns(descriptor, flags), "setns")


def read_only(target: str) -> None:
    """Make a tree of mounts read-only and without set-user-id programs, whatever flags it already has."""
    attributes = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    place = (_AT_FDCWD, os.fsencode(target), _AT_RECURSIVE)
    done = _mount_setattr(_SYS_MOUNT_SETATTR, *place, ctypes.addressof(attributes), ctypes.sizeof(attributes))
    _check(done, f"mount_setattr {target}")


def clone_mount(path: str) -> int:
    """A descriptor of a file or a tree as a mount of its own, which `place_mount` can put elsewhere."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | _AT_SYMLINK_NOFOLLOW | os.O_CLOEXEC
    return _check(_open_tree(_SYS_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags), f"open_tree {path}")


def place_mount(descriptor: int, target: str) -> None:
    """Put a cloned mount where it is to be seen."""
    place = (_AT_FDCWD, os.fsencode(target))
    _check(_move_mount(_SYS_MOVE_MOUNT, descriptor, b"", *place, _MOVE_MOUNT_EMPTY_SOURCE), f"move_mount {target}")


class ExecutionWatch:
    """Tells whether programs were executed, or files opened. Not everybody is told of the first by the kernel.

    Who is not is told that a program was opened.
    """

    def __init__(self, executed: list[str], opened: Sequence[str] = ()) -> None:
        """Watch these files from now on."""
        self._names: dict[tuple[int, int] | int, str] = {}
        self._descriptor = -1
        if not executed and not opened:
            return
        self._descriptor = _fanotify_init(_FAN_NONBLOCK, os.O_RDONLY | os.O_CLOEXEC)
        self._is_exact = self._descriptor >= 0
        if not self._is_exact:
            self._descriptor = _check(_inotify_init(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1")
        for path in executed:
            self._watch(path, _FAN_OPEN_EXEC)
        for path in opened:
            self._watch(path, _FAN_OPEN)

    def _watch(self, path: str, event: int) -> None:
        if self._is_exact:
            done = _fanotify_mark(self._descriptor, _FAN_MARK_ADD, event, _AT_FDCWD, os.fsencode(path))
            _check(done, f"fanotify_mark {path}")
            found = os.stat(path)
            self._names.setdefault((found.st_dev, found.st_ino), path)
        else:
            number = _check(_inotify_add_watch(self._descriptor, os.fsencode(path), _IN_OPEN), "inotify_add_watch")
            self._names.setdefault(number, path)

    def reached(self) -> str:
        """One of those that were; empty where none was."""
        try:
            events = os.read(self._descriptor, 4096) if self._descriptor >= 0 else b""
        except BlockingIOError:
            return ""
        if not events:
            return ""
        if not self._is_exact:
            return self._names.get(struct.unpack_from("=i", events)[0], "")
        found = os.fstat(struct.unpack_from("=IBBHQii", events)[5])
        return self._names[found.st_dev, found.st_ino]


def pivot(root: str) -> None:
    """Make the mount at `root` the root, and let go of the old one."""
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(f"pivot_root: unknown machine {os.uname().machine!r}")
    os.chdir(root)
    _check(_pivot_root(number, b".", b"."), "pivot_root")
    umount(".")
    os.chdir("/")


def become_subreaper() -> None:
    """Adopt orphaned descendants, so that every one can be waited for."""
    _check(_prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this signal when the parent dies."""
    _check(_prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def no_new_privileges() -> None:
    """Neither set-uid files nor file capabilities give anything from here on."""
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def bound_capabilities(kept: frozenset[int]) -> None:
    """Let nothing that is executed from here on have other capabilities than these."""
    for number in range(64):
        if number not in kept and _prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break  # beyond the last one that this kernel knows


def keep_capabilities(kept: frozenset[int]) -> None:
    """Give up all capabilities of this process except the `kept` ones."""
    mask = sum(1 << number for number in kept)
    low, high = mask & 0xFFFF_FFFF, mask >> 32
    sets = struct.pack("=6I", low, low, 0, high, high, 0)  # effective, permitted, inheritable; twice 32 bits
    _check(_capset(_CAPABILITY_HEADER, sets), "capset")


def drop_capabilities() -> None:
    """Give up every capability for good."""
    keep_capabilities(frozenset())


def protect_memory(protected: bool) -> None:
    """Whether other processes of the same user are kept from reading this one's memory and descriptors."""
    _check(_prctl(_PR_SET_DUMPABLE, 0 if protected else 1, 0, 0, 0), "prctl(PR_SET_DUMPABLE)")


class _Program(ctypes.Structure):
    """What the kernel calls struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def load_seccomp(program: bytes) -> None:
    """Put this filter before every system call of this process and its children. It cannot be taken off."""
    value = _Program(len(program) // 8, program)
    done = _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(value), 0, 0)
    _check(done, "prctl(PR_SET_SECCOMP)")


def set_hostname(name: str) -> None:
    """Set the host name that programs in this process's UTS namespace see."""
    _check(_sethostname(name.encode(), len(name)), "sethostname")


def raise_loopback() -> None:
    """Let this network namespace reach itself, which is all that there is in it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


_stacks: list[mmap.mmap] = []


def _stack_top() -> int:
    """Where the stack of a first process begins; it is one for all, since none of them ever uses more than a word.

    Private: Python's own choice is memory that every forked program could write to, and the next one read.
    """
    if not _stacks:
        _stacks.append(mmap.mmap(-1, _STACK_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    return ctypes.addressof(ctypes.c_char.from_buffer(_stacks[0])) + _STACK_BYTES


def spawn_init() -> int:
    """Start a process that does nothing but be there until it is killed: the first of a process namespace just made.

    Processes whose parent is gone become its children, and are reaped because it ignores SIGCHLD. It runs `pause` of
    the C library on a stack of its own in this process's memory, so that nothing is copied to start it. It shares this
    process's descriptors, and so keeps none open. No signal may have a handler when this is called, for it would run
    in that shared memory.
    """
    previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        pause = ctypes.cast(_pause, ctypes.c_void_p)
        return _check(_clone(pause, _stack_top(), _CLONE_VM | _CLONE_FILES | signal.SIGCHLD, None), "clone")
    finally:
        signal.signal(signal.SIGCHLD, previous)


def own_shared_memory() -> None:
    """Put a private copy in the place of all memory that forked processes could write to together.

    Libraries have some, as OpenMP's; our own code has none. What it was shared for is lost with it.
    """
    for begin, size, permissions in writable_together():
        protection = sum(_PROTECTIONS[letter] for letter in permissions[:3] if letter != "-")
        content = ctypes.string_at(begin, size) if "r" in permissions else b""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
        if _mmap(begin, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != begin:
            raise OSError(ctypes.get_errno(), "mmap: memory that all programs share could not be replaced")
        ctypes.memmove(begin, content, len(content))
        _check(_mprotect(begin, size, protection), "mprotect")


def writable_together() -> list[tuple[int, int, str]]:
    """Where, how large and with which permissions there is shared memory that is writable or can be made so."""
    found, here = [], (0, 0, "")
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            first, *others = line.split()
            if "-" in first:
                begin, end = (int(part, 16) for part in first.split("-"))
                here = (begin, end - begin, others[0])
            elif first == "VmFlags:" and {"sh", "mw"} <= set(others):
                found.append(here)
    return found


def process_cpu_clock(pid: int) -> int:
    """The number of the clock that counts a process's CPU time, for `time.clock_gettime`."""
    return (~pid << 3) | 2
