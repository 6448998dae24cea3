# SPDX-License-Identifier: Apache-2.0
"""What is kept of a command's output: everything up to a bound, then the beginning and the end."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Captured", "CommandOutput"]


class _Kept:
    """The first and the last half of a stream; what is between them is counted and dropped."""

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        if room := self._half - len(self._head):
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._half:  # twice, so that bytes are not moved for every line
            self._trim()

    def _trim(self) -> None:
        over = len(self._tail) - self._half
        if over > 0:
            self._left_out += over
            del self._tail[:over]

    def text(self) -> str:
        self._trim()
        head = self._head.decode(errors="replace")
        if not self._tail:
            return head
        if not self._left_out:
            return (self._head + self._tail).decode(errors="replace")
        return f"{head}\n[... {self._left_out} bytes left out ...]\n{self._tail.decode(errors='replace')}"

    @property
    def empty(self) -> bool:
        return not self._head

    @property
    def truncated(self) -> bool:
        self._trim()
        return self._left_out > 0


class Captured(NamedTuple):
    """The streams as text; bytes that are not UTF-8 are replaced."""

    output: str
    stdout: str
    stderr: str
    truncated: bool


_NOTHING = Captured("", "", "", False)


class CommandOutput:
    """Standard output and standard error, each for itself and both as they came."""

    def __init__(self, most: int) -> None:
        """Keep at most about `most` bytes of each."""
        self._merged, self._stdout, self._stderr = _Kept(most), _Kept(most), _Kept(most)

    def from_stdout(self, data: bytes) -> None:
        """Take what came on standard output."""
        self._stdout.add(data)
        self._merged.add(data)

    def from_stderr(self, data: bytes) -> None:
        """Take what came on standard error."""
        self._stderr.add(data)
        self._merged.add(data)

    @property
    def empty(self) -> bool:
        """Whether nothing has come yet."""
        return self._merged.empty

    def captured(self) -> Captured:
        """What has been kept so far."""
        if self.empty:
            return _NOTHING
        truncated = self._merged.truncated or self._stdout.truncated or self._stderr.truncated
        return Captured(self._merged.text(), self._stdout.text(), self._stderr.text(), truncated)
