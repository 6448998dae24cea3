"""The verdict of tests on an answer, which several rewards word differently."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from reward_kit.answers.code import completed, find_code, parses
from reward_kit.models import EvaluateResult, MetricResult
from reward_kit.rewards._support.code.cases import CallTests, ProgramTests, StdinTests, Tests
from reward_kit.rewards._support.code.judging import (
    NOT_JUDGED,
    Environment,
    extracted,
    judge_code,
    not_judged,
    pass_rate,
)
from reward_kit.rewards._support.code.python_tests import Options
from reward_kit.rewards._support.code.results import CaseResult
from reward_kit.rewards._support.code.test_sources import names_tested
from reward_kit.rewards._support.verdicts import check, wrong

__all__ = ["Tested", "number_of", "solution_in", "test_answer"]


class Tested(NamedTuple):
    """What tests said of an answer."""

    results: list[CaseResult]
    rate: float
    """The share of tests that passed."""
    metrics: dict[str, MetricResult]
    reason: str

    @property
    def all_passed(self) -> bool:
        """Whether every test did."""
        return self.rate == 1.0


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


def number_of(tests: Tests) -> int:
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
    *,
    language: str = "python",
    environment: Environment = "local",
    prompt: str | None = None,
) -> Tested | EvaluateResult:
    """What the tests say of the code in an answer; a result where there is no code, or no verdict."""
    code, tests = solution_in(answer, tests, language, prompt)
    if code is None:
        reason = f"There is no {language} code in the answer."
        return wrong(reason, {"error": check(False, reason)})
    shown = {"extracted_code": extracted(code)}
    try:
        results = judge_code(code, tests, options, language=language, environment=environment)
    except NOT_JUDGED as error:
        return not_judged(error, shown)
    rate = pass_rate(results, number_of(tests) if options.stop_early else len(results))
    return Tested(results, rate, shown, _reason(results, rate))


def _reason(results: list[CaseResult], rate: float) -> str:
    passed = sum(result.passed for result in results)
    failed = next(((number, each) for number, each in enumerate(results, 1) if not each.passed), None)
    if failed is None:
        return f"All {passed} tests passed."
    number, result = failed
    return f"{passed} of {len(results)} tests that were run passed; test {number}: {result.status}, {result.detail}"
