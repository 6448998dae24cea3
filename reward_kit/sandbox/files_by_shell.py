# SPDX-License-Identifier: Apache-2.0
"""Files of a sandbox that is reached only by commands: the shell's part of `read` and `write`, and what it found wrong.

The commands run inside, so no link leads out. What is not a regular file is refused: it could hang, or have no end.
"""

from __future__ import annotations

import errno
import os
import posixpath
import shlex

from reward_kit.models import ExecResult

__all__ = ["check_file", "file_name", "to_read", "to_write"]

_CODES = {100 + code: code for code in (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.EISDIR, errno.EINVAL)}
"""Exit codes that stand for an error; a program's own exit codes are lower."""


def file_name(path: str, workdir: str | None) -> str:
    """The path as a word of a command; relative ones are under `workdir`, or the home directory where there is none."""
    if workdir is None and not posixpath.isabs(path):
        return f"~/{shlex.quote(path)}"
    return shlex.quote(posixpath.join(workdir or "/", path))


def to_read(name: str) -> str:
    """What goes before a command that reads the file."""
    readable = f"[ -r {name} ] || exit {_code(errno.EACCES)}"
    return f"[ -e {name} ] || exit {_code(errno.ENOENT)}; {_only_regular(name)}; {readable}"


def to_write(name: str) -> str:
    """Make the file empty, and the directories it is in."""
    directories = f'mkdir -p -- "$(dirname -- {name})" || exit {_code(errno.ENOTDIR)}'
    regular = f"if [ -e {name} ]; then {_only_regular(name)}; fi"
    return f"{directories}; {regular}; : > {name} || exit {_code(errno.EACCES)}"


def check_file(path: str, done: ExecResult) -> None:
    """Raise the OSError that such a command has found."""
    if done.ok:
        return
    code = _CODES.get(done.exit_code or 0)
    if code is not None:
        raise OSError(code, os.strerror(code), path)
    raise OSError(
        errno.EIO, f"{os.strerror(errno.EIO)} ({done.stderr.strip()[-500:] or done.output.strip()[-500:]})", path
    )


def _only_regular(name: str) -> str:
    directory = f"[ -d {name} ] && exit {_code(errno.EISDIR)}"
    return f"{directory}; [ -f {name} ] || exit {_code(errno.EINVAL)}"


def _code(number: int) -> int:
    return 100 + number
