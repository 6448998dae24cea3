# SPDX-License-Identifier: Apache-2.0
"""Removing what a sandbox wrote, which may be made to resist: too deep, closed to us, full of links."""

from __future__ import annotations

import errno
import os
import stat

__all__ = ["remove_tree"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEPTH = 40
"""How far down `remove_tree` goes before it carries what is below to the top."""


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
