# SPDX-License-Identifier: Apache-2.0
"""Ask math-verify, in a process of its own that can be killed, about what this package cannot decide.

One such process per process, started by the first question. Without the extra `math` nobody is asked, and the answer is
`None`. A question costs a fork and about half a second at most, counted in steps and not in time.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from typing import Final

from reward_kit.mathematics import math_verify_process
from reward_kit.utils.per_process import PerProcess

__all__ = ["ask", "close", "worth_asking"]

_WAIT_SECONDS: Final = 60.0
"""Wall-clock time after which the process is thought to be lost; it bounds itself by steps."""
_LONGEST: Final = 1_000
_DEEPEST: Final = 30
_PROGRAM: Final = math_verify_process.__file__
_BEYOND: Final = re.compile(r"\\(?:i{0,3}nt|oint|sum|prod|lim|partial|det|begin)(?![A-Za-z])")
_FORMULA: Final = re.compile(r"\\[a-zA-Z]|\d|[=<>^]")
_COMMAND: Final = re.compile(r"\\(?:begin|end)\{[a-z]+\}|\\(?!forall|exists|text|mbox)[A-Za-z]+")
_TOWER: Final = re.compile(r"\^\{?\d{1,9}\^|!\){0,9}!|\d{5}!|\^\{?\d{5}")
"""Numbers that nobody can write down: powers of powers, factorials of factorials."""
_FRAGMENT: Final = re.compile(r"^\s*[=<>*/^,.]|[-+=<>*/^\\]\s*$|\d\s+\d")
_STATEMENT: Final = re.compile(r"[A-Za-z]{4}|forall|exists|\\text|\\mbox|[∀∃\n]")
_VERDICTS: Final = {b"1": True, b"0": False}


def worth_asking(gold: str, answer: str) -> bool:
    """Whether both are formulas, and one has something in it that math-verify knows and this package does not."""
    return bool(_BEYOND.search(gold) or _BEYOND.search(answer)) and _is_formula(gold) and _is_formula(answer)


def _is_formula(text: str) -> bool:
    """Whether `text` is one formula that another parser may understand as a whole.

    Of lists, sentences and quantified statements math-verify compares some part, and calls that the verdict.
    """
    if len(text) > _LONGEST or not _FORMULA.search(text) or _TOWER.search(text) or _FRAGMENT.search(text):
        return False
    if _STATEMENT.search(_COMMAND.sub("", text)):
        return False
    depth = deepest = 0
    for character in text:
        if character in "{([":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "})]":
            depth -= 1
        elif character in ",;" and not depth:
            return False
    return depth == 0 and deepest <= _DEEPEST


def ask(gold: str, answer: str) -> bool | None:
    """What math-verify says; `None` where it cannot tell, or is not installed."""
    if sys.platform != "linux" or importlib.util.find_spec("math_verify") is None:
        return None
    # Math-verify does other work for the same pair the other way round; the verdict must not depend on that.
    first, second = sorted((gold, answer), key=lambda text: (not _BEYOND.search(text), text))
    question = json.dumps({"gold": first, "answer": second}).encode() + b"\n"
    reply = _helpers.get().answer(question)
    return None if reply is None else _VERDICTS.get(reply)


def close() -> None:
    """End the process, if there is one."""
    _helpers.close()


class _Helper:
    """The process that answers: started by the first question, and replaced when it has fallen silent."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def answer(self, question: bytes) -> bytes | None:
        """What it replies; `None` where it cannot be started, or a second one falls silent too."""
        with self._lock:
            for _ in range(2):
                self.process = self.process or _started()
                if self.process is None:
                    return None
                reply = _exchange(self.process, question)
                if reply is not None:
                    return reply
                self.close()
        return None

    def close(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.hang_up()
            self.process.kill()
            self.process.wait()
            self.process = None

    def hang_up(self) -> None:
        """Close the pipes, and leave the process alone: in a fork it is the parent's."""
        if self.process is not None:
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


_helpers = PerProcess(_Helper, _Helper.close, _Helper.hang_up)


def _started() -> subprocess.Popen[bytes] | None:
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "PYTHONHASHSEED": "0"},  # the order of sets is part of what sympy does
        )
    except OSError:
        return None
    if _line(process) == b"ready":
        return process
    process.kill()
    process.wait()
    return None


def _exchange(process: subprocess.Popen[bytes], question: bytes) -> bytes | None:
    assert process.stdin is not None
    try:
        process.stdin.write(question)
    except OSError:
        return None
    return _line(process)


def _line(process: subprocess.Popen[bytes]) -> bytes | None:
    """The next line the process writes; `None` if it ends, or writes nothing for too long."""
    assert process.stdout is not None
    deadline = time.monotonic() + _WAIT_SECONDS
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    line = b""
    while not line.endswith(b"\n"):
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        more = os.read(process.stdout.fileno(), 64) if ready else b""
        if not more:
            return None
        line += more
    return line.strip()
