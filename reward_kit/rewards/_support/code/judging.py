"""From an answer to results: which code, where it runs, and what the rewards say of it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal

from reward_kit.errors import AuthError, ConfigError, MissingExtraError, SandboxError, SandboxUnavailableError
from reward_kit.models import EvaluateResult, ExecResult, MetricResult
from reward_kit.rewards._support.code.cases import GroundTruthError, Tests
from reward_kit.rewards._support.code.e2b import open_e2b
from reward_kit.rewards._support.code.host import Host, run
from reward_kit.rewards._support.code.python_tests import Judge, Options, judge_python, run_python
from reward_kit.rewards._support.code.results import CaseResult
from reward_kit.rewards._support.code.sandboxed import (
    Place,
    compiler_limits,
    judge_in,
    language_of,
    run_in,
    with_room_for,
)
from reward_kit.rewards._support.verdicts import no_verdict
from reward_kit.sandbox.contract import SandboxSpec
from reward_kit.utils.module_loader import load_function

__all__ = [
    "NOT_JUDGED",
    "Environment",
    "execute",
    "extracted",
    "judge_code",
    "load_judge",
    "not_judged",
    "pass_rate",
    "shown_results",
]

Environment = Literal["local", "e2b"]
NOT_JUDGED = (SandboxError, SandboxUnavailableError, GroundTruthError, MissingExtraError, AuthError, ConfigError)
"""What keeps code from being judged, and is nobody's wrong answer."""
_SHOWN_TESTS = 50


def judge_code(
    code: str, tests: Tests, options: Options, *, language: str = "python", environment: Environment = "local"
) -> list[CaseResult]:
    """One result a test. Anything of `NOT_JUDGED` where there can be none."""
    spoken = language_of(language)

    async def work(host: Host) -> list[CaseResult]:
        if spoken == "python" and environment == "local":
            python = _interpreter(options.python)
            results = await judge_python(host.zygotes(python), code, tests, options)
            return [_with_interpreter(result, python) for result in results]
        async with _places(host, spoken, options, environment) as (place, workshop):
            return await judge_in(place, workshop, spoken, code, tests, options)

    return run(work)


def execute(
    code: str, options: Options, *, language: str = "python", environment: Environment = "local", room: int = 0
) -> ExecResult:
    """Run a program without input."""
    spoken = language_of(language)

    async def work(host: Host) -> ExecResult:
        if spoken == "python" and environment == "local":
            return await run_python(host.zygotes(_interpreter(options.python)), code, "", options, room=room)
        async with _places(host, spoken, options, environment) as (place, workshop):
            return await run_in(place, workshop, spoken, code, "", options)

    return run(work)


def _interpreter(named: object) -> str | None:
    """Where the interpreter is that a reward was told to use. The name may come from a column of a data set."""
    if named is None:
        return None
    found = shutil.which(named) if isinstance(named, str) and "\0" not in named else None
    if found is None or not os.path.basename(found).startswith(("python", "pypy")):
        raise ConfigError(
            f"'python' is {named!r:.100}. Give the path of a Python interpreter, or its name on the PATH."
        )
    return os.path.abspath(found)


def _with_interpreter(result: CaseResult, python: str | None) -> CaseResult:
    """A result that says who judged, where a module was missing."""
    if "ModuleNotFoundError" not in result.detail:
        return result
    note = f"(judged by {python or sys.executable}; the parameter 'python' names another interpreter)"
    return replace(result, detail=f"{result.detail} {note}")


@asynccontextmanager
async def _places(
    host: Host, language: str, options: Options, environment: Environment
) -> AsyncIterator[tuple[Place, Place]]:
    """Where the program runs, and where it is compiled."""
    if environment == "e2b":
        async with open_e2b() as rented:
            yield rented, rented
        return
    if environment != "local":
        raise ConfigError(f"There is no environment {environment!r} to run code in. Choose 'local' or 'e2b'.")
    backend = await host.backend("auto")
    compiling = compiler_limits(language)
    async with await backend.open(SandboxSpec(limits=with_room_for(language, options).limits)) as place:
        if compiling is None:
            yield place, place
            return
        async with await backend.open(SandboxSpec(limits=compiling)) as workshop:
            yield place, workshop


def load_judge(judge: Judge | str | None) -> Judge | None:
    """A special judge, by itself or by its import path."""
    return load_function(judge) if isinstance(judge, str) else judge


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
