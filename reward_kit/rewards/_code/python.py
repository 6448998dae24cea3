# SPDX-License-Identifier: Apache-2.0
"""Python code under its tests, in isolation: what the right answers are stays here.

values     each call in a copy of the process that has loaded the code
programs   each run in a copy of the process that has compiled it, with its standard input; the output is compared here
asserts    as values in one process, where the tests are no more than that; else the test program gets its own process

Each test is made once: no result is ever chosen of two. Code that can keep nothing from one test to the next, as its
source shows, makes all its tests in one process, which is the same and costs less.
"""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.rewards._code.cases import CallTests, GroundTruthError, ProgramTests, StdinTests, Tests
from reward_kit.rewards._code.compare import DEFAULT, OutputComparison, same_output, same_value
from reward_kit.rewards._code.programs import (
    AssertCheck,
    UndecidedError,
    built_in_tested,
    ends_itself,
    modules_in,
    stand_alone,
    take_apart,
)
from reward_kit.rewards._code.results import CaseResult, of_call, shown
from reward_kit.rewards._code.state import may_keep_state
from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.isolated_python import CallOutcome, IsolatedPython, JudgeOutcome
from reward_kit.sandbox.python.messages import lost

__all__ = ["MOST_LOST", "NOT_RUN", "Judge", "Options", "judge_python", "run_python"]

Judge: TypeAlias = Callable[[str, str, str], bool]
"""A special judge: whether an output is right, from input, expected output and output."""
_STARRED = ("collections", "itertools", "functools", "heapq", "bisect", "math", "builtins", "typing")
_IMPORTED = ("collections", "itertools", "functools", "heapq", "bisect", "math", "random", "re", "string", "sys")
_USUAL_IMPORTS = "".join([*(f"from {name} import *; " for name in _STARRED), f"import {', '.join(_IMPORTED)}\n"])
_LOOK_AFTER = 0.25
"""Seconds after which results are looked at before more calls are made, where the first failure decides."""


MOST_LOST = 150.0
"""Seconds that tests may lose by running out of time, before the others count as if they had: else code that never ends
would take its time for each of a hundred tests, and nobody waits for that verdict."""
NOT_RUN = CaseResult("timed_out", "was not run: too many others ran out of time")
"""The result of a test that comes after too many that ran out of time."""


@dataclass(frozen=True)
class Options:
    """How Python code is run under its tests: limits, and when to stop."""

    timeout: float = 10.0
    """Seconds of processor time, and of its own time, that each test may take."""
    memory_mb: int = 512
    stop_early: bool = False
    """Stop at the first test that fails."""
    comparison: OutputComparison = DEFAULT
    judge: Judge | None = None
    """Decides about outputs instead of a comparison."""
    python: str | None = None
    """The interpreter that runs Python code, by name or path; by default, the one that runs reward-kit."""

    @property
    def limits(self) -> Limits:
        """The same as a sandbox's limits."""
        return Limits(memory_mb=self.memory_mb, timeout=self.timeout, cpu_seconds=self.timeout)

    def right(self, given: str, expected: str, printed: str) -> bool:
        """Whether a program's output is right."""
        if self.judge is not None:
            return bool(self.judge(given, expected, printed))
        return same_output(expected, printed, self.comparison)


async def judge_python(python: IsolatedPython, code: str, tests: Tests, options: Options) -> list[CaseResult]:
    """One result a test, in order; fewer where the first failure was the last. A broken sandbox is a `SandboxError`."""
    match tests:
        case StdinTests():
            return await _stdin(python, code, tests, options)
        case CallTests():
            return await _calls(python, code, tests, options)
        case ProgramTests():
            return await _programs(python, code, tests, options)


async def run_python(python: IsolatedPython, code: str, stdin: str, options: Options, *, room: int = 0) -> ExecResult:
    """Run a program. `room`: bytes of output that must be kept."""
    limits = replace(options.limits, output_bytes=max(options.limits.output_bytes, 2 * room))
    return await python.run(code, stdin=stdin.encode(errors="surrogatepass"), timeout=options.timeout, limits=limits)


# ── standard input and output ────────────────────────────────────────────────────────────────────────────────────────


async def _stdin(python: IsolatedPython, code: str, tests: StdinTests, options: Options) -> list[CaseResult]:
    async def run(cases: Sequence[tuple[str, str]]) -> list[CallOutcome]:
        return await _run_each(python, code, cases, options)

    def judged(outcome: CallOutcome, case: tuple[str, str]) -> CaseResult:
        given, expected = case
        return _of_output(outcome, outcome.ok and options.right(given, expected, outcome.value))

    return await _each_once(tests.cases, run, judged, options)


_Case = TypeVar("_Case")


async def _each_once(
    cases: Sequence[_Case],
    work: Callable[[Sequence[_Case]], Awaitable[list[CallOutcome]]],
    judged: Callable[[CallOutcome, _Case], CaseResult],
    options: Options,
) -> list[CaseResult]:
    """The results of all cases, as many at a time as `work` makes."""
    found: list[CaseResult] = []
    lost_time = 0.0
    while len(found) < len(cases):
        waiting = cases[len(found) :]
        for outcome, case in zip(await work(waiting), waiting, strict=True):
            if outcome.kind == "skipped":
                break
            found.append(judged(outcome, case))
            if options.stop_early and not found[-1].passed:
                return found
            if outcome.kind == "timed_out":
                lost_time += lost(options.timeout, outcome.wall_seconds)
            if lost_time >= MOST_LOST:
                return found + [NOT_RUN] * (len(cases) - len(found))
    return found


async def _run_each(
    python: IsolatedPython, code: str, cases: Sequence[tuple[str, str]], options: Options
) -> list[CallOutcome]:
    room = max(options.limits.output_bytes, *(2 * len(expected) for _, expected in cases))
    return await python.run_each(
        code,
        [given.encode(errors="surrogatepass") for given, _ in cases],
        isolated=len(cases) > 1 and may_keep_state(code, program=True),
        stop_early=options.stop_early,
        most_lost=MOST_LOST,
        look_after=_LOOK_AFTER if options.stop_early else 1e9,
        timeout=options.timeout,
        limits=replace(options.limits, output_bytes=room),
    )


def _of_output(outcome: CallOutcome, right: bool) -> CaseResult:
    if outcome.ok:
        return CaseResult("passed" if right else "wrong", f"printed {shown(outcome.value.strip())!r}")
    return of_call(outcome, right)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _calls(python: IsolatedPython, code: str, tests: CallTests, options: Options) -> list[CaseResult]:
    code, function = _reachable(code, tests.function)
    isolated = len(tests.cases) > 1 and may_keep_state(code, program=False)

    async def call(cases: Sequence[tuple[tuple[Any, ...], Any]]) -> list[CallOutcome]:
        return await _call(python, code, function, [arguments for arguments, _ in cases], isolated, options)

    def judged(outcome: CallOutcome, case: tuple[tuple[Any, ...], Any]) -> CaseResult:
        return of_call(outcome, outcome.ok and same_value(case[1], outcome.value, options.comparison.tolerance))

    return await _each_once(tests.cases, call, judged, options)


async def _call(
    python: IsolatedPython,
    code: str,
    function: str,
    arguments: Sequence[Sequence[Any]],
    isolated: bool,
    options: Options,
) -> list[CallOutcome]:
    try:
        return await python.call(
            code,
            function,
            arguments,
            isolated=isolated,
            stop_early=options.stop_early,
            most_lost=MOST_LOST,
            look_after=_LOOK_AFTER if options.stop_early else 1e9,
            loose=True,
            timeout=options.timeout,
            limits=options.limits,
        )
    except TypeError as error:  # from writing the arguments
        raise GroundTruthError(f"The arguments of a test cannot be handed over: {error}. Give plain values.") from error


def _reachable(code: str, function: str) -> tuple[str, str]:
    """The code, and how the function is called in it.

    Tests name a method of the class `Solution` by itself. Such code is written for a place where the usual modules are
    there already, so they are.
    """
    try:
        ast.parse(function, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise GroundTruthError(f"The function to be tested is {function!r}. Give its name in the code.") from error
    inside = "class Solution" in code and not any(line.startswith(f"def {function}") for line in code.splitlines())
    if not inside or not (function.isidentifier() or function.startswith("Solution(")):
        return code, function
    code = code if "from __future__" in code else _USUAL_IMPORTS + code
    return code, f"Solution().{function}" if function.isidentifier() else function


# ── test programs ────────────────────────────────────────────────────────────────────────────────────────────────────


async def _programs(python: IsolatedPython, code: str, tests: ProgramTests, options: Options) -> list[CaseResult]:
    if not tests.entry_point:
        tests = replace(tests, entry_point=built_in_tested(tests.tests))
    if tests.entry_point:
        code, entry_point = _reachable(code, tests.entry_point)
        tests = replace(tests, entry_point=entry_point)
    together = len(tests.tests) == 1 or bool(tests.setup) or not stand_alone(tests.tests)
    if together or not may_keep_state(code, program=False):
        return await _program(python, code, tests, options)
    results: list[CaseResult] = []
    for each in tests.tests:
        results += await _program(python, code, replace(tests, tests=(each,)), options)
        if options.stop_early and not results[-1].passed:
            break
    return results


async def _program(python: IsolatedPython, code: str, tests: ProgramTests, options: Options) -> list[CaseResult]:
    """Tests that share a process, as they would in a file."""
    taken = take_apart(tests.tests, tests.entry_point)
    if taken is not None:
        results = await _checks(python, code, *taken, options)
        if results is not None:
            return results
    outcome = await python.judge(
        code,
        tests.tests,
        entry_point=tests.entry_point,
        setup=tests.setup,
        modules=modules_in((tests.setup, *tests.tests)),
        stop_early=options.stop_early,
        timeout=options.timeout,
        limits=options.limits,
    )
    return _judged(outcome, tests)


async def _checks(
    python: IsolatedPython, code: str, function: str, checks: list[AssertCheck], options: Options
) -> list[CaseResult] | None:
    """The asserts of test programs; None where what came back is not for here to decide."""
    arguments = [call for check in checks for call in check.calls]
    outcomes = await python.call(
        code,
        function,
        arguments,
        isolated=False,
        stop_early=options.stop_early,
        most_lost=MOST_LOST,
        timeout=options.timeout,
        limits=options.limits,
    )
    given = iter(outcomes)
    found: list[CaseResult] = []
    for check in checks:
        mine = [next(given) for _ in check.calls]
        if any("is not plain" in outcome.error for outcome in mine):
            return None
        try:
            found.append(_checked(check, mine))
        except UndecidedError:
            return None
        if options.stop_early and not found[-1].passed:
            break
    return found


def _checked(check: AssertCheck, outcomes: list[CallOutcome]) -> CaseResult:
    broken = next((outcome for outcome in outcomes if not outcome.ok), None)
    if broken is not None:
        return NOT_RUN if broken.kind == "skipped" else of_call(broken, False)
    right = check.holds([outcome.value for outcome in outcomes])
    values = ", ".join(shown(outcome.value) for outcome in outcomes)
    return CaseResult("passed" if right else "wrong", f"{check.name}: returned {shown(values)}")


def _judged(outcome: JudgeOutcome, program: ProgramTests) -> list[CaseResult]:
    tests = len(program.tests)
    if outcome.kind == "unjudgeable":
        raise GroundTruthError(f"The tests cannot be run: {outcome.error}")
    if outcome.kind == "timed_out":
        return [CaseResult("timed_out", "ran out of time")] * tests
    if outcome.oom_killed:
        return [CaseResult("memory", "ran out of memory")] * tests
    if outcome.kind == "died" and outcome.exposed:
        return [CaseResult("died", shown(outcome.error))] * tests
    if outcome.kind == "died" and ends_itself((program.setup, *program.tests)):
        raise GroundTruthError("The tests end their own process. Let them raise an exception where something is wrong.")
    if outcome.kind == "died":
        raise SandboxError(f"The process of the tests ended: {outcome.error}. Try again.")
    results = [
        CaseResult("passed", name) if error is None else CaseResult("wrong", f"{name}: {shown(error)}")
        for name, error in outcome.verdicts
    ]
    loading = any(name == "loading" for name, _ in outcome.verdicts)
    return results * tests if loading else results
