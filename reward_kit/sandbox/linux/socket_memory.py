"""What is in the buffers of all sockets of a network namespace, as the kernel tells it to who is in there.

Control groups count it. Where there are none, somebody has to ask: it is no process's memory, and sockets that are on
their way through other sockets are in nobody's table of open files.

Standard library only, and little of it: porters use it.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["socket_bytes"]

_SOCK_DIAG: Final = 4
_BY_FAMILY, _DUMP = 20, 0x301
_ERROR, _DONE = 2, 3
_EVERY_STATE: Final = 0xFFFF_FFFF
_NO_COOKIE: Final = b"\xff" * 8
_HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_UNIX_REQUEST: Final = struct.pack("=BBHIII", socket.AF_UNIX, 0, 0, _EVERY_STATE, 0, 0x20) + _NO_COOKIE
_UNIX_MESSAGE, _UNIX_MEMORY = 16, 5
_INET_MESSAGE, _INET_MEMORY = 72, 7
_INET: Final = tuple(
    (family, protocol)
    for family in (socket.AF_INET, socket.AF_INET6)
    for protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP)
)
_RECEIVED, _SENDING, _QUEUED, _OPTIONS, _BACKLOG = 0, 2, 5, 6, 7
"""Where in a socket's account of memory these are."""
_CHUNK: Final = 1 << 18
_SECONDS: Final = 1.0
_NONE: Final = 0


def socket_bytes(proc: int, enough: int) -> int:
    """What the sockets take in the network namespace of this process, up to about `enough`.

    `proc` is a /proc whose first process is in the same one. It says at once where there are no sockets, as mostly.
    """
    first = _read(proc, "1/net/sockstat").split()
    if first[:2] != [b"sockets:", b"used"] or int(first[2]) == _NONE:
        return 0
    total = _queues(proc)
    requests = [(_UNIX_REQUEST, _UNIX_MESSAGE, _UNIX_MEMORY)]
    for family, protocol in _INET:
        request = struct.pack("=BBBBI", family, protocol, 1 << (_INET_MEMORY - 1), 0, _EVERY_STATE) + bytes(48)
        requests.append((request, _INET_MESSAGE, _INET_MEMORY))
    for request, skipped, attribute in requests:
        if total > enough:
            break
        with suppress(OSError):  # a kernel that does not tell
            total += _told(request, skipped, attribute, enough)
    return total


def _told(request: bytes, skipped: int, attribute: int, enough: int) -> int:
    """Ask the kernel for sockets with their memory, which is an attribute behind so many bytes of each answer."""
    total = 0
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 1, 0) + request)
        while total <= enough:
            data, place = kernel.recv(_CHUNK), 0
            while place < len(data):
                length, kind, *_ = _HEADER.unpack_from(data, place)
                if kind in (_ERROR, _DONE):
                    return total
                total += _memory(data, place + _HEADER.size + skipped, place + length, attribute)
                place += _aligned(length)
    return total


def _memory(data: bytes, place: int, end: int, attribute: int) -> int:
    while place < end:
        length, kind = _ATTRIBUTE.unpack_from(data, place)
        if kind == attribute:
            account = struct.unpack_from(f"={(length - _ATTRIBUTE.size) // 4}I", data, place + _ATTRIBUTE.size)
            sent = max(account[_SENDING], account[_QUEUED])
            return int(account[_RECEIVED] + sent + account[_OPTIONS] + account[_BACKLOG])
        place += _aligned(length)
    return 0


def _aligned(length: int) -> int:
    return max(4, (length + 3) & ~3)


def _queues(proc: int) -> int:
    """What is in sockets of the kinds that are told in text only: raw ones, and those to the kernel itself."""
    total = 0
    for name in ("raw", "raw6"):
        for line in _read(proc, f"1/net/{name}").splitlines()[1:]:
            total += sum(int(queue, 16) for queue in line.split()[4].split(b":"))
    for line in _read(proc, "1/net/netlink").splitlines()[1:]:
        total += sum(int(queue) for queue in line.split()[4:6])
    return total


def _read(proc: int, path: str) -> bytes:
    parts = []
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
        try:
            while part := os.read(descriptor, _CHUNK):
                parts.append(part)
        finally:
            os.close(descriptor)
    return b"".join(parts)
