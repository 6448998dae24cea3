# SPDX-License-Identifier: Apache-2.0
"""The system-call filter of a sandbox, as the bytes the kernel takes; for x86_64 and aarch64.

Everything is allowed but this, which is refused with EPERM as the usual container engines refuse it:

- mounting and namespaces: mount, umount2, pivot_root, the new mount calls, unshare, setns, clone with any CLONE_NEW*
- the kernel itself: modules, kexec, reboot, swap, bpf, perf_event_open, userfaultfd, io_uring, its log, quotas
- clocks: settimeofday, clock_settime, clock_adjtime, adjtimex
- other processes' insides: ptrace, process_vm_readv and writev, process_madvise, pidfd_getfd, kcmp
- what namespaces do not divide: the kernel's keyrings and audit log, sockets of families other than unix, IP, netlink
- asking what of a file is in memory, which one program could choose and another see: cachestat, preadv2 with RWF_NOWAIT
- files by handle (open_by_handle_at), fanotify, memory policies, I/O ports, typing into a terminal (TIOCSTI, TIOCLINUX)
- execution domains other than Linux's own

Programs of a zygote, which need less, are also refused watching files (inotify: of which a user has few, and which sees
what others do with a file) and asynchronous I/O (io_setup: it could ask what is in memory, too).

clone3 and every call newer than this list are ENOSYS, so that a C library falls back to what it knows; so is every call
of another architecture (32-bit programs, x32).
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import Final

__all__ = ["compile_filter"]

_ABSENT: Final = -1
_NEWEST: Final = 470
"""The last system call number this list was written for."""

_REFUSED: Final = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "create_module": (174, _ABSENT),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "get_kernel_syms": (177, _ABSENT),
    "query_module": (178, _ABSENT),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "uselib": (134, _ABSENT),
    "sysfs": (139, _ABSENT),
    "_sysctl": (156, _ABSENT),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "get_mempolicy": (239, 236),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "iopl": (172, _ABSENT),
    "ioperm": (173, _ABSENT),
    "vhangup": (153, 58),
}

_REFUSED_TO_PROGRAMS: Final = {"inotify_init": (253, _ABSENT), "inotify_init1": (294, 26), "io_setup": (206, 0)}

_CLONE: Final = (56, 220)
_CLONE3: Final = 435
_SOCKET: Final = (41, 198)
_IOCTL: Final = (16, 29)
_PERSONALITY: Final = (135, 92)
_PREADV2: Final = (327, 286)
_CACHESTAT: Final = 451

_NEW_NAMESPACES: Final = 0x7E02_0080
"""Every CLONE_NEW* flag."""
_FAMILIES: Final = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""
_NETLINK, _AUDIT = 16, 9
_RWF_NOWAIT: Final = 8
_TERMINAL_IOCTLS: Final = (0x5412, 0x541C)
"""TIOCSTI, TIOCLINUX."""
_PERSONALITIES: Final = (0x0, 0x8, 0x2_0000, 0x2_0008, 0xFFFF_FFFF)
"""Linux, 32-bit addresses, and asking which one is set."""

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW: Final = 0x7FFF_0000
_ERRNO: Final = 0x0005_0000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_MACHINES: Final = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}

_Code = list[tuple[int, int, int, int]]
_Cases = list[tuple[int, _Code]]


def _argument(index: int) -> tuple[int, int, int, int]:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _refuse(code: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERRNO | code)


def _one_of(values: tuple[int, ...], argument: int) -> _Code:
    """Allow the call where an argument is one of `values`, refuse it elsewhere."""
    tests = [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(argument), *tests, _refuse(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _none_of(values: tuple[int, ...], argument: int) -> _Code:
    """Refuse the call where an argument is one of `values`, allow it elsewhere."""
    tests = [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(argument), *tests, (_RETURN, 0, 0, _ALLOW), _refuse(errno.EPERM)]


def _decide(cases: _Cases) -> _Code:
    """Find the case by halves: the kernel tries every system call there is when it takes a filter on."""
    if len(cases) == 1:
        return cases[0][1]
    middle = len(cases) // 2
    below, above = _decide(cases[:middle]), _decide(cases[middle:])
    return [(_JUMP_AT_LEAST, len(below), 0, cases[middle][0]), *below, *above]


def _socket() -> _Code:
    """Netlink's audit is absent, in the words by which programs know a kernel without it; else by the family."""
    audit = [_argument(2), (_JUMP_EQUAL, 0, 1, _AUDIT), _refuse(errno.EPROTONOSUPPORT)]
    return [_argument(0), (_JUMP_EQUAL, 0, len(audit), _NETLINK), *audit, *_one_of(_FAMILIES, 0)]


def _cases(column: int, *, for_programs: bool) -> _Cases:
    """What to do from a system call's number on, until the next case. Each ends in a return on every path."""
    allow, absent, refused = [(_RETURN, 0, 0, _ALLOW)], [_refuse(errno.ENOSYS)], [_refuse(errno.EPERM)]
    names = {**_REFUSED, **_REFUSED_TO_PROGRAMS} if for_programs else _REFUSED
    codes = {pair[column]: refused for pair in names.values() if pair[column] != _ABSENT}
    codes[_CLONE3] = codes[_CACHESTAT] = absent
    codes[_PREADV2[column]] = [_argument(5), (_JUMP_ANY, 0, 1, _RWF_NOWAIT), _refuse(errno.EOPNOTSUPP), *allow]
    codes[_CLONE[column]] = [_argument(0), (_JUMP_ANY, 0, 1, _NEW_NAMESPACES), *refused, *allow]
    codes[_SOCKET[column]] = _socket()
    codes[_IOCTL[column]] = _none_of(_TERMINAL_IOCTLS, 1)
    codes[_PERSONALITY[column]] = _one_of(_PERSONALITIES, 0)
    cases = [(0, allow)]
    for number in range(_NEWEST + 1):
        code = codes.get(number, allow)
        if code != cases[-1][1]:
            cases.append((number, code))
    return [*cases, (_NEWEST + 1, absent)]


def compile_filter(machine: str | None = None, *, for_programs: bool = False) -> bytes | None:
    """The filter for a machine (this one when left out), ready for the kernel; None for one it is not written for.

    `for_programs`: of a zygote, which need less than a shell and its commands.
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    column, architecture = known
    code: _Code = [(_LOAD, 0, 0, _ARCHITECTURE), (_JUMP_EQUAL, 1, 0, architecture), _refuse(errno.ENOSYS)]
    code += [(_LOAD, 0, 0, _NUMBER), *_decide(_cases(column, for_programs=for_programs))]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
