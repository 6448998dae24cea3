"""The process that asks math-verify; run as a script, it knows nothing of this package.

It loads math-verify once, then forks for each question: a question has one second of processor time, some memory and no
future, and whatever it does to its own process is gone with it. Processor time, not wall-clock time: the verdict is the
same on a busy machine. It ends when nobody asks for a while, and when its parent is gone.

    {"gold": …, "answer": …} ──▶ 1 equal   0 not   - cannot tell
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
from typing import Any

CPU_SECONDS = 1.0
MEMORY_BYTES = 256 << 20
IDLE_SECONDS = 120.0
EQUAL, DIFFERENT, UNKNOWN = 1, 0, 2
_WORDS = {EQUAL: b"1", DIFFERENT: b"0", UNKNOWN: b"-"}


def main() -> None:
    """Answer questions until standard input ends or falls silent."""
    import math_verify

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


def _limit() -> None:
    os.close(0)
    os.close(1)
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
