"""The first process of a sandbox: says that it is there, buries orphans, and waits for its supervisor to hang up.

It could be a shell, and is one (`_SHELL`) where this program is not written for the machine. But every sandbox
waits for it, and a shell takes as long to start as a third of all the rest. As the first process of its namespace it
ignores every signal from inside by itself.
"""

from __future__ import annotations

import fcntl
import os
import struct

__all__ = ["PLACE", "first_command", "first_program"]

PLACE = 6
"""The descriptor from which the program is executed."""

_CODE = {
    "x86_64": bytes.fromhex(
        "b80d000000 bf11000000 488d3564000000 31d2 41ba08000000 0f05"  # rt_sigaction(SIGCHLD, &act, NULL, 8)
        "b801000000 bf01000000 488d3569000000 ba01000000 0f05"  # write(1, newline, 1)
        "b803000000 bf01000000 0f05"  # close(1)
        "b803000000 bf02000000 0f05"  # close(2)
        "b803000000 bf06000000 0f05"  # close(6)
        "31c0 31ff 488d742480 ba01000000 0f05"  # again: read(0, below the stack, 1)
        "4885c0 75eb"  # until it is at its end
        "b83c000000 31ff 0f05"  # exit(0)
        "0100000000000000 0000000000000000 0000000000000000 0000000000000000"  # act: SIG_IGN, so that the kernel buries
        "0a"  # newline
    )
}
"""What it does, as the machine reads it."""

_SHELL = "trap '' HUP INT QUIT USR1 USR2 PIPE ALRM TERM; echo; exec >&- 2>&-; while read -r _; do :; done"
"""What the first process of a sandbox runs: it says that it is there, and waits for its supervisor to hang up.

Signals from inside do not reach a first process that has no handler for them. bash, unlike a smaller shell, buries
orphans while it reads."""

_MACHINES = {"x86_64": 62}
_LOADED_AT = 0x40_0000
_HEADERS = 64 + 56
_MFD_EXEC = 0x10


def _elf(machine: str, code: bytes) -> bytes:
    """A program of one segment: header, one program header, code."""
    size, entry = _HEADERS + len(code), _LOADED_AT + _HEADERS
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, _MACHINES[machine], 1, entry, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _LOADED_AT, _LOADED_AT, size, size, 0x1000)
    return identity + header + segment + code


def first_program() -> int | None:
    """A file in memory that holds the program and that nobody can change; None where it cannot be had."""
    code = _CODE.get(os.uname().machine)
    if code is None:
        return None
    try:
        file = _executable_memory()
        os.write(file, _elf(os.uname().machine, code))
        fcntl.fcntl(
            file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        )
        readable = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
        os.close(file)
    except OSError:  # a machine where memory may not be executed
        return None
    return readable


def _executable_memory() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create("init", flags | _MFD_EXEC)
    except OSError:  # a kernel from before there was the flag
        return os.memfd_create("init", flags)


def first_command(*, program: bool) -> list[str]:
    """How it is started in a sandbox: from the descriptor, or as a shell."""
    return [f"/proc/self/fd/{PLACE}"] if program else ["/bin/bash", "--noprofile", "--norc", "-c", _SHELL, "init"]
