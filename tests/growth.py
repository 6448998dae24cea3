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

    Less than `at_least` seconds counts as that much: what is over so soon does not grow.
    """
    longer, shorter = _processor_time(lambda: work(times * size)), _processor_time(lambda: work(size))
    return max(longer, at_least) / max(shorter, at_least / times)


def _processor_time(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.thread_time()
        work()
        best = min(best, time.thread_time() - started)
    return max(best, 1e-9)
