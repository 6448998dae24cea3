"""The files of one sandbox: overlays whose lower layers are shared and whose upper is its own, on a real disk."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from contextlib import suppress

from reward_kit.sandbox.linux.syscalls import mount, umount

TYPE_CHECKING = False
if TYPE_CHECKING:
    Lowers = list[tuple[str, list[str]]]

__all__ = ["MountedRoot", "remove_home", "remove_tree", "upper_directories"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEPTH = 40
"""How far down `remove_tree` goes before it carries what is below to the top."""


def upper_directories(home: str, count: int) -> list[str]:
    """Where a root of `count` overlays takes what is written, in the order of the overlays."""
    return [os.path.join(home, f"upper-{number}") for number in range(count)]


class MountedRoot:
    """The root of one sandbox: an overlay, and further ones on directories in it.

    `lowers` says for each where in the root it is (the first is the root itself: "") and what it shows: directories
    that are only read, the uppermost first.
    """

    def __init__(self, home: str, path: str, lowers: Lowers, *, as_root: bool) -> None:
        """Mount the root at `path`, which is made. What is written comes to lie in the empty directory `home`."""
        self.home = home
        self.path = path
        self.uppers = upper_directories(home, len(lowers))
        self._as_root = as_root
        os.mkdir(path)
        try:
            for number, (place, layers) in enumerate(lowers):
                self._mount(number, path + place, layers)
        except OSError:
            self.umount()
            raise

    def _mount(self, number: int, target: str, layers: list[str]) -> None:
        """Nothing is synced to disk for it: a sandbox does not outlive its process.

        The layers are named by descriptors: whoever is inside can read the names in /proc/mounts.
        """
        upper, work = self.uppers[number], os.path.join(self.home, f"work-{number}")
        os.mkdir(upper)
        os.mkdir(work)
        os.chmod(upper, stat.S_IMODE(os.stat(layers[0]).st_mode))
        places: list[int] = []
        try:
            for path in (upper, work, *layers):
                places.append(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
            names = [f"/proc/self/fd/{place}" for place in places]
            options = f"lowerdir={':'.join(names[2:])},upperdir={names[0]},workdir={names[1]},volatile"
            mount("overlay", target, "overlay", 0, options if self._as_root else f"{options},userxattr")
        finally:
            for place in places:
                os.close(place)

    def umount(self) -> None:
        """Unmount all of it. The files stay."""
        with suppress(OSError):  # nothing may have been mounted yet
            umount(self.path)
        with suppress(OSError):
            os.rmdir(self.path)


_LEFT_BY_OVERLAY = ("work/incompat/volatile/dirty", "work/incompat/volatile", "work/incompat", "work", "")
"""What a closed sandbox mostly leaves of an overlay's work directory, which nobody inside can reach."""


def remove_home(home: str) -> None:
    """Remove what a sandbox has left. Most of it is known by its name, and need not be looked for."""
    with suppress(OSError):  # there are no more, or their modes have to be changed first
        for number in itertools.count():
            work = f"{home}/work-{number}/"
            os.unlink(work + _LEFT_BY_OVERLAY[0])
            for name in _LEFT_BY_OVERLAY[1:]:
                os.rmdir(work + name)
    remove_tree(home)


def remove_tree(path: str) -> None:
    """Remove a directory and everything below it, whatever modes were set there. Links are never followed."""
    try:
        top = os.open(path, _DIRECTORY)
    except FileNotFoundError:
        return
    try:
        while names := os.listdir(top):
            for name in names:
                _remove(name, top, top, 0)
    finally:
        os.close(top)
    os.rmdir(path)


def _remove(name: str, parent: int, top: int, depth: int) -> None:
    """Most of what a sandbox leaves are empty directories, so that is tried first."""
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        _unlink(name, parent)
    except PermissionError:
        os.fchmod(parent, 0o700)  # not root: the mode of the directory keeps us out
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            _remove_directory(name, parent, top, depth)
        else:
            _unlink(name, parent)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        _remove_directory(name, parent, top, depth)


def _carry(name: str, parent: int, top: int) -> None:
    target = f"deep-{os.urandom(8).hex()}"
    try:
        os.rename(name, target, src_dir_fd=parent, dst_dir_fd=top)
    except PermissionError:  # a directory that gets another parent is written to, too
        os.chmod(name, 0o700, dir_fd=parent)
        os.rename(name, target, src_dir_fd=parent, dst_dir_fd=top)


def _unlink(name: str, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except PermissionError:
        os.fchmod(parent, 0o700)
        os.unlink(name, dir_fd=parent)


def _remove_directory(name: str, parent: int, top: int, depth: int) -> None:
    if depth >= _DEPTH:  # a hostile tree may be deeper than descriptors or the stack allow: carry the rest to the top
        _carry(name, parent, top)
        return
    try:
        directory = os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=parent)
        directory = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        for child in os.listdir(directory):
            _remove(child, directory, top, depth + 1)
    finally:
        os.close(directory)
    os.rmdir(name, dir_fd=parent)
