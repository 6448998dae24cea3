# SPDX-License-Identifier: Apache-2.0
"""The floor of what worker processes can reach: plain processes with a pipe each, and nothing timed or isolated."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["bare_processes"]


@contextmanager
def bare_processes(work: Callable[[Any], object], count: int) -> Iterator[Callable[[Sequence[Any]], float]]:
    """Gives a function that has each process do `work` on its part, and tells the seconds until the last is done."""
    context = multiprocessing.get_context("forkserver")
    with ExitStack() as stack:
        connections: list[Connection] = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, work), daemon=True)
            process.start()
            theirs.close()
            stack.callback(process.join)
            connections.append(stack.enter_context(ours))

        def seconds(parts: Sequence[Any]) -> float:
            start = time.perf_counter()
            for connection, part in zip(connections, parts, strict=True):
                connection.send(part)
            for connection in connections:
                connection.recv()
            return time.perf_counter() - start

        yield seconds


def _serve(connection: Connection, work: Callable[[Any], object]) -> None:
    while True:
        try:
            part = connection.recv()
        except EOFError:
            return
        work(part)
        connection.send(None)
