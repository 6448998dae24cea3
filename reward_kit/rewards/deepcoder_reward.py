# SPDX-License-Identifier: Apache-2.0
"""DeepCoder's reward: code earns 1.0 where it passes every test, and nothing otherwise."""

from __future__ import annotations

from typing import Any

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._code.cases import read_tests
from reward_kit.rewards._code.compare import OutputComparison
from reward_kit.rewards._code.python import Judge, Options
from reward_kit.rewards._code.runner import (
    Environment,
    Where,
    load_judge,
    shown_results,
    test_answer,
)
from reward_kit.rewards._support.verdicts import check, no_verdict_if_unreadable, reply_of
from reward_kit.sandbox.contract import OpenSandbox
from reward_kit.sandbox.isolated_python import IsolatedPython
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["deepcoder_code_reward"]


@reward_function(timeout=600)
def deepcoder_code_reward(  # noqa: PLR0913 - each is the inherited signature's, or a choice of its own
    messages: list[Message],
    ground_truth: Any = None,
    language: str = "python",
    timeout: float = 10,
    environment: Operator[Environment] = "local",
    target_function: str | None = None,
    *,
    entry_point: str | None = None,
    function_to_call: str | None = None,
    prompt: str | None = None,
    max_memory_mb: int = 512,
    tolerance: float = 0.0,
    special_judge: Operator[Judge | str | None] = None,
    python: Operator[str | None] = None,
    sandbox: OpenSandbox | None = None,
    isolated_python: IsolatedPython | None = None,
    api_key: Operator[str | None] = None,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if the code in the answer passes all tests, else 0.0; it stops at the first test that fails.

    Tests, `prompt`, `special_judge`, `python` and `api_key` are as for `fractional_code_reward`. `target_function`,
    `function_to_call` and `entry_point` are three names for the function that is called.

    Metrics: `extracted_code`, `overall_status`; `error`.
    Needs: sandbox.
    Cost: one isolated process, and about 10 ms of CPU beside the code's own, for all tests of a program.
    Does not detect: code that knows the tests.

    >>> from reward_kit import Message
    >>> answer = Message(role="assistant", content="```python\\nprint(int(input()) ** 2)\\n```")
    >>> tests = [{"input": "3", "expected_output": "9"}, {"input": "4", "expected_output": "16"}]
    >>> deepcoder_code_reward(messages=[answer], ground_truth=tests, language="python").score
    1.0
    """
    reply = reply_of(messages, "overall_status")
    how = OutputComparison(tolerance=tolerance)
    options = Options(timeout, max_memory_mb, True, how, load_judge(special_judge), python)
    with no_verdict_if_unreadable("Not judged: "):
        tests = read_tests(ground_truth, target_function or function_to_call or entry_point)
    where = Where(sandbox, isolated_python, environment, api_key)
    tested = test_answer(reply.text, tests, options, where, language=language, prompt=prompt)
    passed = bool(tested.results) and all(result.passed for result in tested.results)
    return EvaluateResult(
        score=float(passed),
        reason=tested.reason,
        metrics={
            **tested.metrics,
            "overall_status": check(passed, tested.reason),
            "test_results": check(passed, shown_results(tested.results)),
        },
    )
