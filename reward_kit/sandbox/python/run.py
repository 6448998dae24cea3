"""The request `run`: a program with its input and files in, its output and how it ended out.

Standard library only.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from reward_kit.sandbox.capture import Captured, Output
from reward_kit.sandbox.python.cell import Cell, Ending, Forker, OwnerGoneError, Part, Patience, Watch, file_of
from reward_kit.sandbox.python.messages import Message, pack

__all__ = ["run"]

_CHUNK = 1 << 16


class _Pipes:
    """The two output streams of a program."""

    def __init__(self, most: int) -> None:
        self._output = Output(most)
        (out, out_writer), (err, err_writer) = os.pipe(), os.pipe()
        self.writers = [out_writer, err_writer]
        self._take = {out: self._output.from_stdout, err: self._output.from_stderr}

    @property
    def readers(self) -> list[int]:
        return list(self._take)

    def read(self, reader: int) -> bool:
        """Read once; False at the end of the stream."""
        data = os.read(reader, _CHUNK)
        self._take[reader](data)
        return bool(data)

    def finish(self) -> Captured:
        """Read what is left, now that nobody can write any more."""
        for reader in self.readers:
            while self.read(reader):
                pass
            os.close(reader)
        return self._output.captured()


def run(forker: Forker, request: Message) -> bytes:
    """Run one program; the answer to send."""
    header = request.header
    stdin, *task = request.blobs
    pipes = _Pipes(header["limits"]["output_bytes"])
    source = file_of(stdin)
    try:
        cell = Cell(forker, header["limits"], Part([source, *pipes.writers], pack(header, *task)))
    finally:
        for descriptor in (source, *pipes.writers):
            os.close(descriptor)
    in_time = _watch(cell, forker, pipes, Patience(cell, header["timeout"]))
    ending = cell.end()
    captured = pipes.finish()
    both = captured.output if captured.stdout and captured.stderr else ""  # else it is one of the two
    texts = [text.encode() for text in (captured.stdout, captured.stderr, both)]
    return pack({**_ending(ending, in_time), "truncated": captured.truncated}, *texts)


def _watch(cell: Cell, forker: Forker, pipes: _Pipes, patience: Patience) -> bool:
    """Until the program ends, keep its pipes empty; False when its time is over."""
    watch = Watch(forker, cell)
    for reader in pipes.readers:
        watch.also(reader)
    try:
        while (ready := watch.wait(patience.deadline)) or not patience.is_over():
            for reader in pipes.readers:
                if reader in ready and not pipes.read(reader):
                    watch.no_more(reader)
            if watch.ended(ready):
                return True
    except OwnerGoneError:
        cell.end()
        raise
    return False


def _ending(ending: Ending, in_time: bool) -> dict[str, Any]:
    """An ending, as it is sent. What was ended for its time did not end by itself."""
    timed_out = not in_time or ending.signal == signal.SIGXCPU
    return {
        "exit_code": None if timed_out else ending.exit_code,
        "signal": ending.signal,
        "timed_out": timed_out,
        "oom_killed": ending.oom_killed and in_time,
        "wall_seconds": ending.wall_seconds,
        "cpu_seconds": ending.cpu_seconds,
        "peak_memory_bytes": ending.peak_memory_bytes,
    }
