# SPDX-License-Identifier: Apache-2.0
"""What asks math-verify, in a process of its own.

It loads math-verify once, then forks for each question: a question has a number of steps, some memory and no future,
and whatever it does to its own process is gone with it. A step is a run of the garbage collector, which comes after so
many new objects: that is the same on every machine, busy or not, and costs nothing to count. Processor time only bounds
what makes no objects, such as one long multiplication. The process ends when nobody asks for a while.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

from reward_kit.workers.forks import in_a_fork

STEPS = 900
"""About half a second of sympy on an idle core."""
OBJECTS_PER_STEP = 100
EVALUATIONS = 15_000
"""Numbers that sympy may compute, which makes few objects that stay: some tenths of a second of an integral."""
CPU_SECONDS = 3.0
MEMORY_BYTES = 256 << 20
IDLE_SECONDS = 120
EQUAL, DIFFERENT, UNKNOWN = 1, 0, 2
_VERDICTS = {EQUAL: True, DIFFERENT: False}


def questions() -> Callable[[str, str], bool | None]:
    """What answers them: whether both are equal; None where that cannot be told."""
    import math_verify

    def answer(gold: str, given: str) -> bool | None:
        signal.alarm(0)
        code = in_a_fork(lambda: _limited(math_verify, gold, given), UNKNOWN)
        signal.alarm(IDLE_SECONDS)
        return _VERDICTS.get(code)

    _judge(math_verify, r"\sum_{k=1}^{3} k^2", r"\frac{1}{2} + x")  # loads what each question would load again
    gc.collect()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(IDLE_SECONDS)
    return answer


def _limited(math_verify: Any, gold: str, answer: str) -> int:
    _limit()
    return _judge(math_verify, gold, answer)


def _count_steps() -> None:
    """End this process after so many steps, or so many numbers that were computed: it cannot tell."""
    numeric: Any = importlib.import_module("sympy.core.evalf")
    steps = evaluations = 0
    evaluate = numeric.evalf

    def evaluated(*arguments: Any, **options: Any) -> Any:
        nonlocal evaluations
        evaluations += 1
        if evaluations > EVALUATIONS:
            os._exit(UNKNOWN)
        return evaluate(*arguments, **options)

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal steps
        steps += phase == "start"
        if steps > STEPS:
            os._exit(UNKNOWN)

    numeric.evalf = evaluated
    gc.set_threshold(OBJECTS_PER_STEP, 50, 50)
    gc.collect()
    gc.callbacks.append(count)


def _limit() -> None:
    _count_steps()
    # The default action of this signal ends the process, even in the middle of one long multiplication.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm", encoding="ascii") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))


def _judge(math_verify: Any, gold: str, answer: str) -> int:
    sys.setrecursionlimit(3000)
    right, given = (
        math_verify.parse(f"\\boxed{{{text}}}", parsing_timeout=None, raise_on_error=True) for text in (gold, answer)
    )
    if not right or not given:
        return UNKNOWN
    if math_verify.verify(right, given, timeout_seconds=None, raise_on_error=True):
        return EQUAL
    # A text that stayed a text was not understood.
    understood = all(any(not isinstance(found, str) for found in side) for side in (right, given))
    return DIFFERENT if understood else UNKNOWN
