# SPDX-License-Identifier: Apache-2.0
"""Ask math-verify, in a process of its own that can be killed, about what this package cannot decide.

One such process per process, started by the first question. Without the extra `math` nobody is asked, and the answer is
`None`. A question costs a fork and about half a second at most, counted in steps and not in time.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from reward_kit.utils.per_process import PerProcess

if TYPE_CHECKING:
    from reward_kit.workers.host import Host

__all__ = ["ask", "close", "worth_asking"]

_WAIT_SECONDS: Final = 60.0
"""Wall-clock time after which the process is thought to be lost; it bounds itself by steps."""
_LONGEST: Final = 1_000
_DEEPEST: Final = 30
_BEYOND: Final = re.compile(r"\\(?:i{0,3}nt|oint|sum|prod|lim|partial|det|begin)(?![A-Za-z])")
_FORMULA: Final = re.compile(r"\\[a-zA-Z]|\d|[=<>^]")
_COMMAND: Final = re.compile(r"\\(?:begin|end)\{[a-z]+\}|\\(?!forall|exists|text|mbox)[A-Za-z]+")
_TOWER: Final = re.compile(r"\^\{?\d{1,9}\^|!\){0,9}!|\d{5}!|\^\{?\d{5}")
"""Numbers that nobody can write down: powers of powers, factorials of factorials."""
_FRAGMENT: Final = re.compile(r"^\s*[=<>*/^,.]|[-+=<>*/^\\]\s*$|\d\s+\d")
_STATEMENT: Final = re.compile(r"[A-Za-z]{4}|forall|exists|\\text|\\mbox|[∀∃\n]")


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
    return _helpers.get().answer(first, second)


def close() -> None:
    """End the process, if there is one."""
    _helpers.close()


class _Helper:
    """The process that answers: started by the first question, and replaced when it has fallen silent."""

    def __init__(self) -> None:
        self.host: Host | None = None
        self._lock = threading.Lock()

    def answer(self, gold: str, answer: str) -> bool | None:
        """What it replies; `None` where it cannot be started, or a second one falls silent too."""
        from reward_kit.workers.outcomes import Done

        with self._lock:
            for _ in range(2):
                try:
                    self.host = self.host or _started()
                except OSError:
                    return None
                outcome = self.host.call(gold, answer, within=_WAIT_SECONDS)
                if not self.host.has_ended():
                    return outcome.value if isinstance(outcome, Done) else None
                self.close()
        return None

    def close(self) -> None:
        """End the process, if there is one."""
        if self.host is not None:
            self.host.close()
            self.host = None

    def hang_up(self) -> None:
        """Leave the process alone: in a fork it is the parent's."""
        if self.host is not None:
            self.host.let_go()


def _started() -> Host:
    # Most answers are decided without it: what it needs is loaded for those that are not.
    from reward_kit.mathematics.math_verify_process import questions
    from reward_kit.workers.host import Host

    variables = {"PYTHONHASHSEED": "0"}  # the order of sets is part of what sympy does
    return Host(questions, name="math-verify", output=subprocess.DEVNULL, variables=variables)


_helpers = PerProcess(_Helper, _Helper.close, _Helper.hang_up)
