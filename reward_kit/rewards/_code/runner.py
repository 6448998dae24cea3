# SPDX-License-Identifier: Apache-2.0
"""From an answer to results: which code, where it runs, and what the rewards say of it."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeVar

from reward_kit.answers.code import completed, find_code, parses
from reward_kit.errors import AuthError, ConfigError, MissingExtraError, SandboxError, SandboxUnavailableError
from reward_kit.models import EvaluateResult, ExecResult, MetricResult
from reward_kit.rewards._code.cases import CallTests, GroundTruthError, ProgramTests, StdinTests, Tests
from reward_kit.rewards._code.e2b import open_e2b
from reward_kit.rewards._code.languages import (
    compiler_limits,
    judge_in,
    language_of,
    program_limits,
    run_in,
)
from reward_kit.rewards._code.programs import names_tested
from reward_kit.rewards._code.python import Judge, Options, judge_python, run_python
from reward_kit.rewards._code.results import CaseResult, shown
from reward_kit.rewards._support.verdicts import check, no_verdict, wrong
from reward_kit.sandbox.contract import OpenSandbox
from reward_kit.sandbox.isolated_python import IsolatedPython
from reward_kit.sandbox.own import own_host, wait_on
from reward_kit.sandbox.python.by_commands import CommandSandbox, OpenCommandSandbox, PythonByCommands
from reward_kit.typed_interface import EarlyVerdict
from reward_kit.utils.module_loader import load_function
from reward_kit.utils.per_process import PerProcess

__all__ = [
    "NOT_JUDGED",
    "Environment",
    "Tested",
    "Where",
    "execute",
    "extracted",
    "judge_code",
    "load_judge",
    "not_judged",
    "pass_rate",
    "shown_results",
    "solution_in",
    "test_answer",
]

T = TypeVar("T")
Environment = Literal["local", "e2b"]
NOT_JUDGED = (SandboxError, SandboxUnavailableError, GroundTruthError, MissingExtraError, AuthError, ConfigError)
"""What keeps code from being judged, and is nobody's wrong answer."""
_SHOWN_TESTS = 50


class Where(NamedTuple):
    """What code is run with: what the reward was handed, or this process's own; or a rented sandbox."""

    sandbox: OpenSandbox | None = None
    isolated_python: IsolatedPython | None = None
    environment: Environment = "local"
    api_key: str | None = None
    """Of the service that rents sandboxes out, where its own variable does not hold it."""


HERE = Where()
"""With this process's own."""


def judge_code(
    code: str, tests: Tests, options: Options, where: Where, *, language: str = "python"
) -> list[CaseResult]:
    """One result a test. Anything of `NOT_JUDGED` where there can be none, which is never by the code's doing."""
    spoken = language_of(language)

    def broke(error: SandboxError) -> list[CaseResult]:
        return [CaseResult("died", shown(f"broke its sandbox twice: {error}"))] * _number_of(tests)

    return _or_its_doing(lambda: _judged(code, tests, options, where, spoken), broke, options, where, spoken)


def _judged(code: str, tests: Tests, options: Options, where: Where, spoken: str) -> list[CaseResult]:

    async def by_python(python: IsolatedPython) -> list[CaseResult]:
        chosen = _using(python, options.python)
        results = await judge_python(chosen, code, tests, options)
        return [_with_interpreter(result, chosen) for result in results]

    async def by_commands(open_place: OpenCommandSandbox) -> list[CaseResult]:
        async with _places(open_place, spoken, options) as (place, workshop):
            return await judge_in(place, workshop, spoken, code, tests, options)

    return _with_python(where, by_python) if spoken == "python" else _with_sandbox(where, by_commands)


def execute(code: str, options: Options, where: Where = HERE, *, language: str = "python", room: int = 0) -> ExecResult:
    """Run a program without input."""
    spoken = language_of(language)

    def broke(error: SandboxError) -> ExecResult:
        return ExecResult(exit_code=None, signal=signal.SIGKILL, stderr=str(error), output=str(error))

    return _or_its_doing(lambda: _executed(code, options, where, spoken, room), broke, options, where, spoken)


def _executed(code: str, options: Options, where: Where, spoken: str, room: int) -> ExecResult:

    async def by_python(python: IsolatedPython) -> ExecResult:
        return await run_python(_using(python, options.python), code, "", options, room=room)

    async def by_commands(open_place: OpenCommandSandbox) -> ExecResult:
        async with _places(open_place, spoken, options) as (place, workshop):
            return await run_in(place, workshop, spoken, code, "", options)

    return _with_python(where, by_python) if spoken == "python" else _with_sandbox(where, by_commands)


# ── whose doing it is that a sandbox breaks ──────────────────────────────────────────────────────────────────────────

_CONTROLS = {
    "python": "import time\nwhile time.process_time() < {}: pass\nprint(1)",
    "javascript": "while (process.cpuUsage().user < {} * 1e6);\nconsole.log(1);",
    "c": '#include <stdio.h>\n#include <time.h>\nint main() {{ while (clock() < {} * CLOCKS_PER_SEC); puts("1"); }}',
    "cpp": "#include <cstdio>\n#include <ctime>\n"
    'int main() {{ while (std::clock() < {} * CLOCKS_PER_SEC); std::puts("1"); }}',
}
"""A right program of each language, which takes some seconds of processor time."""
_CONTROL_SECONDS, _CONTROL_SHARE = 1.0, 0.8
_alone = PerProcess(threading.Lock)


def _or_its_doing(
    work: Callable[[], T], broke: Callable[[SandboxError], T], options: Options, where: Where, spoken: str
) -> T:
    """What comes of judging code. Where its sandbox breaks, it is tried once more, alone.

    If it breaks again and a program that is known to be right does not break its own, the code has done it.
    """
    try:
        return work()
    except SandboxError as error:
        if not error.retryable:
            raise
    with _alone.get():
        try:
            return work()
        except SandboxError as again:
            if not _control_passes(options, where, spoken):
                raise
            return broke(again)


def _control_passes(options: Options, where: Where, spoken: str) -> bool:
    seconds = min(_CONTROL_SECONDS, options.timeout)
    code = _CONTROLS[spoken].format(seconds * _CONTROL_SHARE)
    tests = StdinTests((("", "1"),))
    try:
        return _judged(code, tests, Options(seconds, python=options.python), where, spoken)[0].passed
    except SandboxError:
        return False


def _with_python(where: Where, work: Callable[[IsolatedPython], Coroutine[Any, Any, T]]) -> T:
    """Have something done with isolated Python, where it lives."""
    given = where.isolated_python
    if where.environment != "local":
        given = PythonByCommands(_rented(where))
    if given is not None:
        return wait_on(given.loop or own_host().loop, work(given))
    host = own_host()

    async def whole() -> T:
        return await work(await host.isolated_python())

    return host.wait(whole())


def _with_sandbox(where: Where, work: Callable[[OpenCommandSandbox], Coroutine[Any, Any, T]]) -> T:
    """Have something done with what opens sandboxes, where they live."""
    if where.environment != "local":
        return own_host().wait(work(_rented(where)))
    sandbox = where.sandbox or own_host().sandbox
    return wait_on(sandbox.loop or own_host().loop, work(lambda limits: sandbox(limits=limits)))


def _rented(where: Where) -> OpenCommandSandbox:
    """Opens what is not the run's own."""
    if where.environment != "e2b":
        raise ConfigError(f"There is no environment {where.environment!r} to run code in. Choose 'local' or 'e2b'.")
    return lambda limits: open_e2b(where.api_key)


def _using(python: IsolatedPython, named: object) -> IsolatedPython:
    """The interpreter that a reward was told to use."""
    if named is None:
        return python
    base = os.path.basename(named) if isinstance(named, str) and "\0" not in named else ""
    if not isinstance(named, str) or not base.startswith(("python", "pypy")):
        raise ConfigError(
            f"'python' is {named!r:.100}. Give the path of a Python interpreter, or its name on the PATH."
        )
    return python.using(named)


def _with_interpreter(result: CaseResult, python: IsolatedPython) -> CaseResult:
    """A result that says who judged, where a module was missing."""
    if "ModuleNotFoundError" not in result.detail:
        return result
    note = f"(judged by {python.interpreter}; the parameter 'python' names another interpreter)"
    return replace(result, detail=f"{result.detail} {note}")


@asynccontextmanager
async def _places(
    open_place: OpenCommandSandbox, language: str, options: Options
) -> AsyncIterator[tuple[CommandSandbox, CommandSandbox]]:
    """Where the program runs, and where it is compiled, by limits of its own."""
    compiling = compiler_limits(language)
    async with open_place(program_limits(language, options)) as place:
        if compiling is None:
            yield place, place
            return
        async with open_place(compiling) as workshop:
            yield place, workshop


def load_judge(judge: Judge | str | None) -> Judge | None:
    """A special judge, by itself or by its import path."""
    return load_function(judge) if isinstance(judge, str) else judge


# ── an answer under its tests ───────────────────────────────────────────────────────────────────────────────────────


class Tested(NamedTuple):
    """What tests said of an answer."""

    results: list[CaseResult]
    rate: float
    """The share of tests that passed."""
    metrics: dict[str, MetricResult]
    reason: str

    @property
    def all_passed(self) -> bool:
        """Whether every test passed."""
        return self.rate == 1.0

    @property
    def with_rate(self) -> dict[str, MetricResult]:
        """The metrics, with what each test said and the share that passed."""
        rate = MetricResult(score=self.rate, reason=self.reason, is_score_valid=self.all_passed)
        results = check(self.all_passed, shown_results(self.results))
        return {**self.metrics, "test_results": results, "pass_rate": rate}


def solution_in(answer: str, tests: Tests, language: str, prompt: str | None = None) -> tuple[str | None, Tests]:
    """The code of an answer, and its tests as they apply to it."""
    names = _names(tests)
    if language.lower() not in ("python", "py", "python3"):
        return find_code(answer, language, *names), tests
    if isinstance(tests, ProgramTests) and prompt is not None and not tests.setup and parses(prompt):
        tests = replace(tests, setup=prompt)
    return completed(answer, prompt, *names), tests


def _names(tests: Tests) -> tuple[str, ...]:
    """What the code must define."""
    match tests:
        case CallTests(function):
            return (function,)
        case ProgramTests(entry_point=str(entry_point)):
            return (entry_point,)
        case ProgramTests(sources):
            return names_tested(sources)
    return ()


def _number_of(tests: Tests) -> int:
    """How many tests there are, as far as that is known before they run."""
    match tests:
        case StdinTests(cases) | CallTests(cases=cases):
            return len(cases)
        case ProgramTests(sources):
            return len(sources)


def test_answer(
    answer: str,
    tests: Tests,
    options: Options,
    where: Where,
    *,
    language: str = "python",
    prompt: str | None = None,
) -> Tested:
    """What the tests say of the code in an answer. Where there is no code, or no verdict, the reward ends with that."""
    code, tests = solution_in(answer, tests, language, prompt)
    if code is None:
        reason = f"There is no {language} code in the answer."
        raise EarlyVerdict(wrong(reason, {"error": check(False, reason)}))
    shown = {"extracted_code": extracted(code)}
    try:
        results = judge_code(code, tests, options, where, language=language)
    except NOT_JUDGED as error:
        raise EarlyVerdict(not_judged(error, shown)) from error
    rate = pass_rate(results, _number_of(tests) if options.stop_early else len(results))
    return Tested(results, rate, shown, _reason(results, rate))


def _reason(results: list[CaseResult], rate: float) -> str:
    passed = sum(result.passed for result in results)
    failed = next(((number, each) for number, each in enumerate(results, 1) if not each.passed), None)
    if failed is None:
        return f"All {passed} tests passed."
    number, result = failed
    return f"{passed} of {len(results)} tests that were run passed; test {number}: {result.status}, {result.detail}"


# ── what rewards say ─────────────────────────────────────────────────────────────────────────────────────────────────


def extracted(code: str) -> MetricResult:
    """The metric that shows the code."""
    return MetricResult(score=1.0, reason=f"The code that was run:\n{code}", is_score_valid=True)


def not_judged(error: Exception, metrics: dict[str, MetricResult] | None = None) -> EvaluateResult:
    """No verdict, because of this. A sandbox that broke and may work next time is raised: a run owes that answer."""
    if isinstance(error, SandboxError) and error.retryable:
        raise error
    return no_verdict(f"Not judged: {error}", metrics)


def pass_rate(results: Sequence[CaseResult], tests: int) -> float:
    """The share of all tests that passed."""
    return sum(result.passed for result in results) / max(tests, len(results), 1)


def shown_results(results: Sequence[CaseResult]) -> str:
    """The results as JSON, for a metric."""
    rows: list[dict[str, Any]] = [
        {"test_number": number, "passed": result.passed, "status": result.status, "details": result.detail}
        for number, result in enumerate(results[:_SHOWN_TESTS], 1)
    ]
    return json.dumps(rows)
