# SPDX-License-Identifier: Apache-2.0
"""The git revision of the working directory, asked for in the background: in a large repository that takes seconds."""

from __future__ import annotations

import subprocess

__all__ = ["GitRevision"]

_REVISION = "# branch.oid "


class GitRevision:
    """A question to git, asked when this is made. Close it, answered or not."""

    def __init__(self) -> None:
        """Ask. Where there is no git, the answer is None."""
        # Without the lock that git takes to note what it has seen: killed while it holds it, git leaves it behind, and
        # the user's next commit is refused. (`git describe --dirty` takes it all the same.)
        command = ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
        try:
            self._process: subprocess.Popen[str] | None = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            self._process = None
        self._answer: str | None = None

    def answer(self, *, patience: float = 0.0) -> str | None:
        """The revision, marked when there were uncommitted changes; None where there is none, or not within seconds."""
        if self._process is not None:
            try:
                status, _ = self._process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                return None
            self._process = None
            self._answer = _revision(status)
        return self._answer

    def close(self) -> None:
        """End the process that asks git, if it is still running. What it has answered stays known."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _revision(status: str) -> str | None:
    """The revision that `git status` tells of, marked where a line about a file follows those about the branch."""
    about = [line.removeprefix(_REVISION) for line in status.splitlines() if line.startswith(_REVISION)]
    if not about or about[0] == "(initial)":
        return None
    is_changed = any(not line.startswith("#") for line in status.splitlines())
    return f"{about[0]}-dirty" if is_changed else about[0]
