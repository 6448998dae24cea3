# SPDX-License-Identifier: Apache-2.0
"""What a sandbox sees as its root: the host's own programs without its secrets, or a root filesystem that is given."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reward_kit.errors import SandboxError

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterator

__all__ = ["Root", "host_root", "image_root"]

_PROGRAMS: Final = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Where programs and libraries are. Elsewhere the host's files are not seen."""

_DIRECTORIES: Final = {
    "dev": 0o755,
    "etc": 0o755,
    "home": 0o755,
    "media": 0o755,
    "mnt": 0o755,
    "opt": 0o755,
    "proc": 0o555,
    "root": 0o700,
    "run": 0o755,
    "srv": 0o755,
    "sys": 0o555,
    "tmp": 0o1777,
    "var": 0o755,
    "var/cache": 0o755,
    "var/lib": 0o755,
    "var/log": 0o755,
    "var/spool": 0o755,
    "var/tmp": 0o1777,
}

_SETTINGS: Final = (
    "alternatives",
    "bash.bashrc",
    "ca-certificates.conf",
    "debian_version",
    "gai.conf",
    "host.conf",
    "inputrc",
    "issue",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "profile",
    "protocols",
    "python3",
    "redhat-release",
    "rpc",
    "services",
    "shells",
    "skel",
    "ssl/certs/ca-certificates.crt",
    "ssl/openssl.cnf",
    "timezone",
)
"""The files of /etc that programs need and that hold no secrets."""

_SYSTEM_IDS: Final = 1000
_NOBODY: Final = 65534


@dataclass(frozen=True)
class Root:
    """The lower layers of a sandbox's root, and directories that get an overlay of their own in it."""

    lower: str
    mounts: tuple[str, ...] = ()
    """Directories of the host, by their path, that are stacked at the same path inside."""


def host_root(parent: str) -> Root:
    """A root that has the host's programs and nothing else of it; made in `parent` once, and anew when /etc changes."""
    directory = os.path.join(parent, f"host-{_identity()}")
    if not os.path.isdir(directory):
        os.makedirs(parent, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as temporary:
            _make_host_root(made := os.path.join(temporary, "root"))
            with suppress(OSError):  # somebody else was faster
                os.rename(made, directory)
    return Root(directory, tuple(f"/{name}" for name in _PROGRAMS if _is_directory(f"/{name}")))


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _identity() -> str:
    """Changes when what is copied changes."""
    seen = []
    for name in (*_SETTINGS, "passwd", "group"):
        with suppress(OSError):
            found = os.stat(f"/etc/{name}")
            seen.append((name, found.st_size, found.st_mtime_ns))
    return hashlib.sha256(repr((_DIRECTORIES, seen)).encode()).hexdigest()[:16]


def _make_host_root(directory: str) -> None:
    os.mkdir(directory, mode=0o755)
    for name, mode in _DIRECTORIES.items():
        path = os.path.join(directory, name)
        os.makedirs(path)
        os.chmod(path, mode)
    for name in _PROGRAMS:
        source, target = f"/{name}", os.path.join(directory, name)
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
        elif os.path.isdir(source):
            os.mkdir(target)
    _write_settings(os.path.join(directory, "etc"))


def _write_settings(etc: str) -> None:
    for name in _SETTINGS:
        source, target = f"/etc/{name}", os.path.join(etc, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with suppress(OSError, shutil.Error):
            if os.path.isdir(source):
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target)
    for name in ("passwd", "group"):
        _write(etc, name, _system_accounts(f"/etc/{name}"))
    _write(etc, "hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n")
    _write(etc, "hostname", "sandbox\n")


def _write(etc: str, name: str, text: str) -> None:
    with open(os.path.join(etc, name), "w", encoding="utf-8") as file:
        file.write(text)


def _system_accounts(path: str) -> str:
    """The accounts that come with a system: who uses this machine is nobody's business inside."""
    kept = []
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            fields = line.rstrip("\n").split(":")
            if len(fields) > 2 and fields[2].isdigit() and (int(fields[2]) < _SYSTEM_IDS or int(fields[2]) == _NOBODY):  # noqa: PLR2004
                # A group's members may be people.
                kept.append(":".join([*fields[:3], ""]) if path.endswith("group") else ":".join(fields))
    return "\n".join([*kept, ""])


def image_root(image: str, unpacked: str) -> Root:
    """The root that `image` names: a directory, or a tar archive that is unpacked to `unpacked`."""
    path = os.path.abspath(os.path.expanduser(image))
    if os.path.isfile(path):
        _unpack(path, unpacked)
        path = unpacked
    if not os.path.isdir(path):
        raise SandboxError(
            f"No root filesystem {image!r}: expected a directory or a tar archive, as debootstrap and `docker export` "
            "make them. Name one that exists, or leave the image out to use this machine's own programs.",
            retryable=False,
        )
    if not os.path.lexists(os.path.join(path, "bin/bash")):
        raise SandboxError(f"The root filesystem {image!r} has no /bin/bash. Add bash to it.", retryable=False)
    return Root(path)


def _unpack(archive: str, directory: str) -> None:
    import tarfile

    if os.path.isdir(directory):
        return
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(directory), ignore_cleanup_errors=True) as temporary:
        os.mkdir(made := os.path.join(temporary, "root"))
        try:
            with tarfile.open(archive) as tar:
                tar.extraction_filter = _as_it_is
                tar.extractall(made, _members(tar, made), numeric_owner=os.geteuid() == 0)
        except (tarfile.TarError, OSError) as error:
            raise SandboxError(f"The archive {archive!r} cannot be unpacked: {error}.", retryable=False) from error
        with suppress(OSError):  # somebody else was faster
            os.rename(made, directory)


def _members(tar: tarfile.TarFile, directory: str) -> Iterator[tarfile.TarInfo]:
    """What is unpacked, each member when its turn comes: those before it may have made links.

    Modes, such as that of /tmp, stay as they are. Devices are left out: a sandbox has its own, and an ordinary user may
    not make any. The filters of `tarfile` came only with Python 3.11.4, and are not needed.
    """
    import tarfile

    for member in tar:
        member.name = member.name.lstrip("/")
        if member.islnk():
            member.linkname = member.linkname.lstrip("/")
        for name in (member.name, member.linkname) if member.islnk() else (member.name,):
            if ".." in name.split("/") or not _is_inside(os.path.join(directory, name), directory):
                raise tarfile.ExtractError(f"{name!r} leads out of it")
        if not (member.ischr() or member.isblk()):
            yield member


def _is_inside(path: str, directory: str) -> bool:
    """Whether what is at a path, or will be made there, is in the directory. The kernel follows the links, as it will.

    A link to what is not there yet is refused: nobody knows where it leads.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            break
        except FileNotFoundError:
            if os.path.islink(path):
                return False
            path = os.path.dirname(path)
    try:
        real = os.readlink(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return (real + "/").startswith(os.path.realpath(directory) + "/")


def _as_it_is(member: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
    """All that has come so far may be unpacked."""
    return member
