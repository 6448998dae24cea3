# SPDX-License-Identifier: Apache-2.0
"""A line of JSON about each request: when, who, what, how long, with which outcome. Never a body, never a credential.

Lines are gathered for a moment and written by a thread of their own: a slow disk or terminal holds nobody up. Where it
is so slow that lines pile up, they are left out, and counted.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any

import orjson

__all__ = ["AccessLog"]

_GATHER_SECONDS = 0.1
_MOST_WAITING = 256
"""Blocks of lines that may wait for the file."""
_BLOCK_LINES = 1024
_CLOSE_SECONDS = 5.0


class AccessLog:
    """Writes to a file, which is made where it is not there, or to standard error."""

    def __init__(self, target: str) -> None:
        """`-` is standard error."""
        self._own = target != "-"
        self._file = _open(Path(target)) if self._own else _standard_error()
        self._lines: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._blocks: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self.left_out = 0
        """Lines that were not written, because the file could not keep up."""
        self._writer = threading.Thread(target=self._write, name="reward-kit access log", daemon=True)
        self._writer.start()

    def add(self, fields: dict[str, Any]) -> None:
        """Write a line, soon."""
        self._lines.append(orjson.dumps(fields))
        if len(self._lines) >= _BLOCK_LINES:
            self._hand_over()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._hand_over)

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        if not lines:
            return
        try:
            self._blocks.put_nowait(b"\n".join(lines) + b"\n")
        except queue.Full:
            self.left_out += len(lines)

    def _write(self) -> None:
        while (block := self._blocks.get()) is not None:
            rest = memoryview(block)
            try:
                while rest:
                    rest = rest[os.write(self._file, rest) :]
            except OSError:  # a full disk, a closed terminal: the log is lost, the server is not
                self.left_out += block.count(b"\n")
        if self._own:
            os.close(self._file)

    def close(self) -> None:
        """Write what is left; not for longer than a few seconds."""
        self._hand_over()
        try:
            self._blocks.put(None, timeout=_CLOSE_SECONDS)
        except queue.Full:
            return
        self._writer.join(_CLOSE_SECONDS)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)


def _standard_error() -> int:
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):  # it was replaced by something without a descriptor
        return 2
