"""The few system calls a sandbox needs that Python does not offer, by ctypes; Linux only.

Nothing here imports anything heavy: the supervisor, of which every porter is a fork, stays small.
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = [
    "CLONE_NEWCGROUP",
    "CLONE_NEWIPC",
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUSER",
    "CLONE_NEWUTS",
    "CONTAINER_CAPABILITIES",
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
    "become_subreaper",
    "bound_capabilities",
    "die_with_parent",
    "keep_capabilities",
    "load_seccomp",
    "mount",
    "no_new_privileges",
    "setns",
    "umount",
    "unshare",
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

CONTAINER_CAPABILITIES: Final = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_RAW": 13,
    "CAP_SYS_CHROOT": 18,
    "CAP_MKNOD": 27,
    "CAP_AUDIT_WRITE": 29,
    "CAP_SETFCAP": 31,
}
"""What root may do in a container of the usual engines, and in a sandbox here: name to number."""

_MNT_DETACH: Final = 2
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_SECCOMP: Final = 22
_PR_CAPBSET_DROP: Final = 24
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_MODE_FILTER: Final = 2

_libc = ctypes.CDLL(None, use_errno=True)
_text, _word = ctypes.c_char_p, ctypes.c_ulong


def _function(name: str, *kinds: Any) -> Any:
    """A function of the C library. All are looked up at once: else every fork would look up its own."""
    function = _libc[name]
    function.argtypes = kinds
    return function


_mount = _function("mount", _text, _text, _text, _word, _text)
_umount = _function("umount2", _text, ctypes.c_int)
_unshare = _function("unshare", ctypes.c_int)
_setns = _function("setns", ctypes.c_int, ctypes.c_int)
_prctl = _function("prctl", ctypes.c_int, _word, _word, _word, _word)
_capset = _function("capset", _text, _text)
_CAPABILITY_HEADER: Final = struct.pack("=Ii", 0x2008_0522, 0)
"""Version 3, this process."""


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    """mount(2)."""
    done = _mount(source.encode(), target.encode(), kind.encode(), flags, options.encode())
    _check(done, f"mount {kind} on {target}")


def umount(target: str) -> None:
    """Unmount now for everyone who comes, and for those inside when they leave."""
    _check(_umount(target.encode(), _MNT_DETACH), f"umount {target}")


def unshare(flags: int) -> None:
    """unshare(2)."""
    _check(_unshare(flags), "unshare")


def setns(descriptor: int, flags: int) -> None:
    """setns(2), with a pidfd or a namespace's file."""
    _check(_setns(descriptor, flags), "setns")


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
    """Keep only these capabilities."""
    mask = sum(1 << number for number in kept)
    low, high = mask & 0xFFFF_FFFF, mask >> 32
    sets = struct.pack("=6I", low, low, 0, high, high, 0)  # effective, permitted, inheritable; twice 32 bits
    _check(_capset(_CAPABILITY_HEADER, sets), "capset")


class _Program(ctypes.Structure):
    """What the kernel calls struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def load_seccomp(program: bytes) -> None:
    """Put this filter before every system call of this process and its children. It cannot be taken off."""
    value = _Program(len(program) // 8, program)
    done = _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(value), 0, 0)
    _check(done, "prctl(PR_SET_SECCOMP)")
