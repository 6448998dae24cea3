# SPDX-License-Identifier: Apache-2.0
"""What judging code costs: the code rewards, fully isolated, beside bubblewrap around a new interpreter.

python -m benchmarks rewards_code

CPU time of everything involved, reward-kit's own included; starting the zygotes is taken out by judging few programs
and many. Rates by the clock are of this machine as it is.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from benchmarks.orphans import await_orphans, children
from benchmarks.report import Report, Row
from reward_kit.models import Message
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from reward_kit.sandbox.linux.syscalls import become_subreaper
from reward_kit.sandbox.own import close_hosts

__all__ = ["main"]

FEW = 3
ROUNDS = 5
GOAL_CPU = 2.5
GOAL_TESTS = 3.0
GOAL_RATE = 100.0
CODE = "def solve(xs):\n    return sum(x * x for x in xs if x % 2 == 0)\n"
PROGRAM = "n = int(input())\nxs = map(int, input().split())\nprint(sum(x * x for x in xs if x % 2 == 0))\n"
ANSWERS = {
    code: [Message(role="assistant", content=f"```python\n{code}```")] for code in (CODE, PROGRAM)
}  # fmt: skip


def main(*, quick: bool = False) -> Report:
    """Measure everything."""
    become_subreaper()
    programs, rounds = (4, 1) if quick else (60, ROUNDS)
    one, five, twenty, check = by_values(1), by_values(5), by_values(20), by_check()
    ways: dict[str, Callable[[int], None]] = {
        "bubblewrap": bubblewrap,
        "five": lambda count: judge(count, CODE, five, "solve"),
        "one": lambda count: judge(count, CODE, one, "solve"),
        "twenty": lambda count: judge(count, CODE, twenty, "solve"),
        "check": lambda count: judge(count, CODE, check, "solve"),
        "one input": lambda count: judge(count, PROGRAM, by_input(1)),
        "twenty inputs": lambda count: judge(count, PROGRAM, by_input(20)),
    }
    costs: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            costs[name].append(cost(way, programs))
    found = {name: statistics.median(values) for name, values in costs.items()}
    rows = [
        _beside("5 function tests", found["five"], found["bubblewrap"]),
        _beside("a HumanEval check of 5 asserts", found["check"], found["bubblewrap"]),
        _more("20 function tests, beside one", found["twenty"], found["one"]),
        _more("20 tests by input, beside one", found["twenty inputs"], found["one input"]),
        _rate(20 if quick else 400, five),
    ]
    return Report("rewards_code", "judging small Python programs", rows)


def _beside(what: str, ours: float, theirs: float) -> Row:
    numbers = f"{ours:.1f} beside {theirs:.1f} CPU-ms"
    return Row(f"{what}, cheaper than bubblewrap + python", theirs / ours, numbers, at_least=GOAL_CPU)


def _more(what: str, many: float, one: float) -> Row:
    return Row(what, many / one, f"{many:.1f} beside {one:.1f} CPU-ms", at_most=GOAL_TESTS)


def _rate(programs: int, tests: str) -> Row:
    cores = os.cpu_count() or 1
    judge(2 * cores, CODE, tests, "solve")
    start = time.perf_counter()
    with ThreadPoolExecutor(2 * cores) as pool:
        list(pool.map(lambda _: judge(1, CODE, tests, "solve"), range(programs)))
    rate = programs / (time.perf_counter() - start)
    close_hosts()
    return Row(f"programs per second on {cores} cores", rate, "5 function tests each", at_least=GOAL_RATE, unit="/s")


# ── the tests ────────────────────────────────────────────────────────────────────────────────────────────────────────


def expected(size: int) -> int:
    """What the right program gives for the numbers below `size`."""
    return sum(x * x for x in range(size) if x % 2 == 0)


def by_values(count: int) -> str:
    """So many function tests."""
    sizes = range(count)
    return json.dumps([{"input": str([*range(n)]), "expected_output": str(expected(n))} for n in sizes])


def by_check() -> str:
    """A test program."""
    lines = [f"    assert candidate({[*range(n)]}) == {expected(n)}\n" for n in range(5)]
    return "def check(candidate):\n" + "".join(lines)


def by_input(count: int) -> str:
    """So many tests of a program that reads its input."""
    cases = [
        {"input": f"{n}\n{' '.join(map(str, range(n)))}\n", "expected_output": f"{expected(n)}\n"}
        for n in range(1, count + 1)
    ]
    return json.dumps(cases)


# ── the ways ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def judge(programs: int, code: str, tests: str, function: str | None = None) -> None:
    """Judge so many programs, one after the other."""
    for _ in range(programs):
        result = deepcoder_code_reward(messages=ANSWERS[code], ground_truth=tests, target_function=function)
        assert result.score == 1.0, result


def bubblewrap(programs: int) -> None:
    """The same function tests as a script, each program in a bubblewrap of its own."""
    checks = "".join(f"assert solve({[*range(n)]}) == {expected(n)}\n" for n in range(5))
    others = children()
    for _ in range(programs):
        subprocess.run([*_bubblewrap_command(), CODE + checks], check=True, capture_output=True)
        await_orphans(others)


def _bubblewrap_command() -> list[str]:
    program = shutil.which("bwrap")
    if program is None:
        sys.exit("bubblewrap is not installed: apt-get install bubblewrap")
    shown = [part for prefix in {sys.prefix, sys.base_prefix} for part in ("--ro-bind", prefix, prefix)]
    system = [part for name in ("bin", "lib", "lib64") for part in ("--symlink", f"usr/{name}", f"/{name}")]
    fresh = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/box", "--chdir", "/box"]
    apart = ["--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--uid", "65534", "--gid", "65534"]
    return [program, "--ro-bind", "/usr", "/usr", *system, *shown, *fresh, *apart, sys.executable, "-I", "-c"]


def cpu_seconds() -> float:
    """CPU time of this process and of every process it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def cost(way: Callable[[int], None], programs: int) -> float:
    """CPU milliseconds a program, without what starting takes."""

    def measured(count: int) -> float:
        before = cpu_seconds()
        way(count)
        close_hosts()  # what its processes used counts when they have ended
        return cpu_seconds() - before

    few, many = measured(FEW), measured(FEW + programs)
    return (many - few) / programs * 1000
