# SPDX-License-Identifier: Apache-2.0
"""The process that asks math-verify; run as a script, it knows nothing of this package.

It loads math-verify once, then forks for each question: a question has a number of steps, some memory and no future,
and whatever it does to its own process is gone with it. A step is a run of the garbage collector, which comes after so
many new objects: that is the same on every machine, busy or not, and costs nothing to count. Processor time only bounds
what makes no objects, such as one long multiplication. The process ends when nobody asks for a while, and with its
parent.

    {"gold": …, "answer": …} ──▶ 1 equal   0 not   - cannot tell
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
from typing import Any

STEPS = 900
"""About half a second of sympy on an idle core."""
OBJECTS_PER_STEP = 100
EVALUATIONS = 15_000
"""Numbers that sympy may compute, which makes few objects that stay: some tenths of a second of an integral."""
CPU_SECONDS = 3.0
MEMORY_BYTES = 256 << 20
IDLE_SECONDS = 120.0
EQUAL, DIFFERENT, UNKNOWN = 1, 0, 2
_WORDS = {EQUAL: b"1", DIFFERENT: b"0", UNKNOWN: b"-"}


def main() -> None:
    """Answer questions until standard input ends or falls silent."""
    import math_verify

    _warm(math_verify)
    os.write(1, b"ready\n")
    pending = b""
    while True:
        line, separator, rest = pending.partition(b"\n")
        if separator:
            pending = rest
            question = json.loads(line)
            os.write(1, _WORDS.get(_forked(math_verify, question), b"-") + b"\n")
            continue
        readable, _, _ = select.select([0], [], [], IDLE_SECONDS)
        more = os.read(0, 1 << 16) if readable else b""
        if not more:
            return
        pending += more


def _warm(math_verify: Any) -> None:
    """Load here what each question would load again, and leave it out of what is counted and collected."""
    _judge(math_verify, r"\sum_{k=1}^{3} k^2", r"\frac{1}{2} + x")
    gc.collect()
    gc.freeze()


def _forked(math_verify: Any, question: dict[str, str]) -> int:
    """The exit code of a child that judges; a child that was killed cannot tell."""
    child = os.fork()
    if child == 0:
        code = UNKNOWN
        try:
            _limit()
            code = _judge(math_verify, question["gold"], question["answer"])
        finally:
            os._exit(code)  # skips everything that could still happen here, exceptions too
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


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
    os.close(0)
    os.close(1)
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


if __name__ == "__main__":
    main()
