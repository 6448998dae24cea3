"""The system calls that only a zygote needs, beside those of `syscalls`; Linux only, standard library only."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import platform
import signal
import socket
import struct
from typing import Final

__all__ = [
    "drop_capabilities",
    "own_shared_memory",
    "pivot",
    "process_cpu_clock",
    "protect_memory",
    "raise_loopback",
    "read_only",
    "set_hostname",
    "spawn_init",
]

_CLONE_VM: Final = 0x100
_CLONE_FILES: Final = 0x400
_MNT_DETACH: Final = 2
_PR_SET_DUMPABLE: Final = 4
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1
_SYS_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_SYS_MOUNT_SETATTR: Final = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID = 1, 2
_CAPABILITY_VERSION_3: Final = 0x2008_0522
_MAP_FIXED: Final = 0x10
_PROTECTIONS: Final = {"r": mmap.PROT_READ, "w": mmap.PROT_WRITE, "x": mmap.PROT_EXEC}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_STACK: Final = mmap.mmap(-1, 1 << 16, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
"""Private: Python's own choice is memory that every forked program could write to, and the next one read."""
_STACK_TOP: Final = ctypes.addressof(ctypes.c_char.from_buffer(_STACK)) + len(_STACK)


def _check(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def read_only(target: str) -> None:
    """Make a tree of mounts read-only and without set-user-id programs, whatever flags it already has."""
    attributes = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    call = (_SYS_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, ctypes.byref(attributes), size)
    _check(_libc.syscall(*call), f"mount_setattr {target}")


def pivot(root: str) -> None:
    """Make the mount at `root` the root, and let go of the old one."""
    number = _SYS_PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"pivot_root: unknown machine {platform.machine()!r}")
    os.chdir(root)
    _check(_libc.syscall(number, b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount2 of the old root")
    os.chdir("/")


def set_hostname(name: str) -> None:
    """Name this namespace's host."""
    _check(_libc.sethostname(name.encode(), len(name)), "sethostname")


def raise_loopback() -> None:
    """Let this network namespace reach itself, which is all that there is in it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def spawn_init() -> int:
    """Start a process that does nothing but be there until it is killed: the first of a process namespace just made.

    Processes whose parent is gone become its children, and are reaped because it ignores SIGCHLD. It runs `pause` of
    the C library on a stack of its own in this process's memory, so that nothing is copied to start it. It shares this
    process's descriptors, and so keeps none open. No signal may have a handler when this is called, for it would run
    in that shared memory.
    """
    previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        pause = ctypes.cast(_libc.pause, ctypes.c_void_p)
        return _check(_libc.clone(pause, _STACK_TOP, _CLONE_VM | _CLONE_FILES | signal.SIGCHLD, None), "clone")
    finally:
        signal.signal(signal.SIGCHLD, previous)


def own_shared_memory() -> None:
    """Put a private copy in the place of all memory that forked processes could write to together.

    Libraries have some, as OpenMP's; our own code has none. What it was shared for is lost with it.
    """
    for begin, size, permissions in _writable_together():
        protection = sum(_PROTECTIONS[letter] for letter in permissions[:3] if letter != "-")
        content = ctypes.string_at(begin, size) if "r" in permissions else b""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
        if _libc.mmap(begin, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != begin:
            raise OSError(ctypes.get_errno(), "mmap: memory that all programs share could not be replaced")
        ctypes.memmove(begin, content, len(content))
        _check(_libc.mprotect(begin, size, protection), "mprotect")


def _writable_together() -> list[tuple[int, int, str]]:
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


def protect_memory(protected: bool) -> None:
    """Whether other processes of the same user are kept from reading this one's memory and descriptors."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0 if protected else 1, 0, 0, 0), "prctl(PR_SET_DUMPABLE)")


def drop_capabilities() -> None:
    """Give up every capability for good."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def process_cpu_clock(pid: int) -> int:
    """The number of the clock that counts a process's CPU time, for `time.clock_gettime`."""
    return (~pid << 3) | 2
