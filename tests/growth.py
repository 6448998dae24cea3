# SPDX-License-Identifier: Apache-2.0
"""How work grows with its input: for tests that a pass is linear, on a machine that may be busy.

Work is counted in calls of functions where they do it, which is the same number on every machine, and in processor time
of this thread where regular expressions or other loops in C do it. A pass over a text of four times the length should
take four times the work; one that is quadratic takes sixteen times.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

_REPEATS = 5


def calls_made(work: Callable[[], object]) -> int:
    """The functions that `work` calls, in Python and in C."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def growth_of_calls(work: Callable[[int], object], size: int, times: int = 4) -> float:
    """How many times the calls of `work(size)` are made by `work(times * size)`."""
    return calls_made(lambda: work(times * size)) / max(1, calls_made(lambda: work(size)))


def growth_of_time(work: Callable[[int], object], size: int, times: int = 4, at_least: float = 0.0) -> float:
    """How many times the processor time of `work(size)` is taken by `work(times * size)`: the best of a few runs.

    Less than `at_least` seconds counts as that much: what is over so soon does not grow. The longer is run again only
    while it seems to take more than twice its share, which a busy machine can feign; the shorter always is, since noise
    in it would hide growth.
    """
    shorter = max(min(_processor_time(work, size) for _ in range(_REPEATS)), at_least / times, 1e-9)
    longer = float("inf")
    for _ in range(_REPEATS):
        longer = min(longer, _processor_time(work, times * size))
        if longer <= max(at_least, 2 * times * shorter):
            break
    return max(longer, at_least) / shorter


def _processor_time(work: Callable[[int], object], size: int) -> float:
    started = time.thread_time()
    work(size)
    return time.thread_time() - started
