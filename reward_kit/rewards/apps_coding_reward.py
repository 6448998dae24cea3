# SPDX-License-Identifier: Apache-2.0
"""The reward of APPS problems: the share of a problem's tests that a program or a function passes."""

from __future__ import annotations

import json
from typing import Any

from reward_kit.answers.code import parses
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._code.cases import CallTests, ProgramTests, read_tests
from reward_kit.rewards._code.compare import OutputComparison
from reward_kit.rewards._code.python import Judge, Options
from reward_kit.rewards._code.runner import (
    Where,
    load_judge,
    shown_results,
    solution_in,
    test_answer,
)
from reward_kit.rewards._support.verdicts import check, no_verdict_if_unreadable, reply_of, wrong
from reward_kit.sandbox.isolated_python import IsolatedPython
from reward_kit.typed_interface import EarlyVerdict, Operator, reward_function

__all__ = ["evaluate_apps_solution"]


@reward_function(timeout=600)
def evaluate_apps_solution(
    messages: list[Message],
    ground_truth: Any = None,
    execution_timeout: float = 10,
    *,
    max_memory_mb: int = 512,
    tolerance: float = 0.0,
    special_judge: Operator[Judge | str | None] = None,
    python: Operator[str | None] = None,
    isolated_python: IsolatedPython | None = None,
    **kwargs: Any,
) -> EvaluateResult:
    """The share of the tests in `ground_truth` that the Python code in the answer passes.

    `ground_truth` is `{"inputs": […], "outputs": […]}` or its JSON. With `fn_name`, inputs are lists of arguments (or
    text, one JSON value per line) of that function or method of `Solution`; without, standard input and output.
    `execution_timeout` is in seconds per test. `python` is the interpreter that runs the code, by path or name; by
    default, the one that runs reward-kit.

    Metrics: `pass_rate`, `execution_metadata`, `raw_results`, `parsability`; `execution_error`, `error`.
    Needs: sandbox.
    Cost: one isolated process, and about 10 ms of CPU beside the code's own, for all tests of a program.
    Does not detect: code that knows the tests.

    >>> from reward_kit import Message
    >>> answer = Message(role="assistant", content="```python\\nprint(input()[::-1])\\n```")
    >>> evaluate_apps_solution(messages=[answer], ground_truth='{"inputs": ["ab"], "outputs": ["ba"]}').score
    1.0
    """
    reply = reply_of(messages, "pass_rate")
    with no_verdict_if_unreadable("Not judged: "):
        tests = read_tests(ground_truth)
    function = tests.function if isinstance(tests, CallTests) else None
    code, _ = solution_in(reply.text, tests, "python")
    if code is not None and not parses(code):
        return wrong("The code is not valid Python.", {"parsability": check(False, "The code is not valid Python.")})
    how = OutputComparison(tolerance=tolerance)
    options = Options(execution_timeout, max_memory_mb, False, how, load_judge(special_judge), python)
    try:
        tested = test_answer(reply.text, tests, options, Where(isolated_python=isolated_python))
    except EarlyVerdict as early:
        tried = early.result
        if tried.is_score_valid:
            raise
        failed = check(False, tried.reason or "not judged")
        return tried.model_copy(update={"metrics": {**tried.metrics, "execution_error": failed}})
    facts = {"fn_name": function, "kind": "tests" if isinstance(tests, ProgramTests) else "cases"}
    return EvaluateResult(
        score=tested.rate,
        reason=tested.reason,
        metrics={
            **tested.metrics,
            "pass_rate": MetricResult(score=tested.rate, reason=tested.reason, is_score_valid=tested.all_passed),
            "execution_metadata": check(True, json.dumps(facts)),
            "raw_results": check(tested.all_passed, shown_results(tested.results)),
        },
    )
