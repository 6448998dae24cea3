# SPDX-License-Identifier: Apache-2.0
"""Judge code by running it: by what it prints, or by tests, in any of the languages that can be run.

    answer ─▶ the code in it ─▶ a sandbox ─▶ what it printed or returned ─▶ compared here with what is expected

Python runs in zygotes (each test as if no other had run before it), JavaScript, C and C++ in the sandbox.
Expected values never enter the process that runs the code. Where no sandbox works, there is no verdict; code is never
run without one.
"""

from __future__ import annotations

from typing import Any, Literal

from reward_kit.answers.code import code_blocks, find_code
from reward_kit.models import EvaluateResult, ExecResult, Message, MetricResult
from reward_kit.rewards._code.cases import GroundTruthError, Tests, read_tests
from reward_kit.rewards._code.compare import OutputComparison, same_output, similarity
from reward_kit.rewards._code.python import Judge, Options
from reward_kit.rewards._code.results import of_run
from reward_kit.rewards._code.runner import (
    NOT_JUDGED,
    Environment,
    Where,
    execute,
    extracted,
    load_judge,
    not_judged,
    test_answer,
)
from reward_kit.rewards._support.verdicts import check, no_verdict, no_verdict_if_unreadable, reply_of, wrong
from reward_kit.sandbox.contract import OpenSandbox
from reward_kit.sandbox.isolated_python import IsolatedPython
from reward_kit.typed_interface import Operator, reward_function

__all__ = [
    "compare_outputs",
    "e2b_code_execution_reward",
    "execute_javascript_code",
    "execute_python_code",
    "extract_code_blocks",
    "fractional_code_reward",
    "local_code_execution_reward",
    "string_similarity",
]

Whitespace = Literal["tokens", "lines", "exact"]


# ── parts that are useful by themselves ──────────────────────────────────────────────────────────────────────────────


def extract_code_blocks(text: str, language: str | None = None) -> list[dict[str, str]]:
    """The fenced blocks of a text, as `{"code", "language"}`; of one language, those that name it or none.

    >>> extract_code_blocks("See:\\n```python\\nprint(1)\\n```")
    [{'code': 'print(1)', 'language': 'python'}]
    """
    wanted = {None, "", language.lower()} if language else None
    return [
        {"code": block.code, "language": block.language or "unknown"}
        for block in code_blocks(text)
        if wanted is None or block.language in wanted or find_code(f"```{block.language}\nx = 0\n```", language or "")
    ]


def execute_python_code(code: str, timeout: float = 5) -> dict[str, Any]:
    """Run a Python program in a sandbox: `{"success", "output", "error"}`.

    >>> execute_python_code("print(6 * 7)")
    {'success': True, 'output': '42', 'error': None}
    """
    return _executed(execute(code, Options(timeout=timeout)))


def execute_javascript_code(code: str, timeout: float = 5) -> dict[str, Any]:
    """Run a JavaScript program by node in a sandbox: `{"success", "output", "error"}`."""
    return _executed(execute(code, Options(timeout=timeout), language="javascript"))


def _executed(result: ExecResult) -> dict[str, Any]:
    if result.ok:
        return {"success": True, "output": result.stdout.strip(), "error": None}
    detail = of_run(result, False).detail
    return {"success": False, "output": result.stdout.strip() or None, "error": result.stderr.strip() or detail}


def string_similarity(one: str, other: str) -> float:
    """How alike two texts are, in [0, 1]; 1.0 only where they are equal. Linear in their length.

    >>> string_similarity("abc", "abc"), string_similarity("abc", "xyz")
    (1.0, 0.0)
    """
    return similarity(one, other)


def compare_outputs(actual: str, expected: str) -> float:
    """1.0 where an output is the expected one, white space aside; else how alike the two are, below 1.

    >>> compare_outputs("1  2\\n", "1 2")
    1.0
    """
    return 1.0 if same_output(expected, actual) else similarity(actual.strip(), expected.strip())


# ── by output ────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function(timeout=600)
def local_code_execution_reward(  # noqa: PLR0913 - each is the inherited signature's, or a choice of its own
    messages: list[Message],
    ground_truth: str | None = None,
    language: str = "python",
    timeout: float = 5,
    max_memory_mb: int = 100,
    similarity_credit: bool = False,
    whitespace: Whitespace = "tokens",
    tolerance: float = 0.0,
    *,
    python: Operator[str | None] = None,
    sandbox: OpenSandbox | None = None,
    isolated_python: IsolatedPython | None = None,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if the program in the answer runs and prints `ground_truth`, else 0.0.

    Without a ground truth, 1.0 if it runs and exits with 0. `timeout` is in seconds of processor time. With
    `similarity_credit`, a wrong output gets a score for its similarity to the right one, as in the older package. That
    rewards 12 where 13 is right, so it is off by default. `python` is the interpreter that runs Python code, by path or
    name; by default, the one that runs reward-kit.

    Metrics: `extracted_code`, `execution_result`, `expected_output`, `output_match`; `error`.
    Needs: sandbox.
    Cost: one isolated process, about 10 ms of CPU beside the program's own.
    Does not detect: a program that prints a known answer instead of working it out.

    >>> from reward_kit import Message
    >>> answer = Message(role="assistant", content="```python\\nprint(sum(range(5)))\\n```")
    >>> local_code_execution_reward(messages=[answer], ground_truth="10").score
    1.0
    """
    how = OutputComparison(whitespace, tolerance)
    options = Options(timeout=timeout, memory_mb=max_memory_mb, comparison=how, python=python)
    return _by_output(messages, ground_truth, language, options, Where(sandbox, isolated_python), similarity_credit)


@reward_function(timeout=600)
def e2b_code_execution_reward(
    messages: list[Message],
    ground_truth: str | None = None,
    language: str = "python",
    timeout: float = 30,
    api_key: Operator[str | None] = None,
    similarity_credit: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if the program in the answer runs in a rented sandbox of E2B and prints `ground_truth`, else 0.0.

    The same as `local_code_execution_reward`, but the program runs at E2B. The key is `api_key`, or it is read from
    `E2B_API_KEY`. If E2B cannot be reached, there is no verdict.

    Metrics: `extracted_code`, `execution_result`, `expected_output`, `output_match`; `error`.
    Needs: extra `e2b`.
    Cost: a sandbox of E2B for each answer, which is paid for, and some seconds.
    Does not detect: a program that prints a known answer instead of working it out.

    >>> e2b_code_execution_reward(messages=[Message(role="user", content="Print 10.")], ground_truth="10").score
    0.0
    """
    where = Where(environment="e2b", api_key=api_key)
    return _by_output(messages, ground_truth, language, Options(timeout=timeout), where, similarity_credit)


def _by_output(
    messages: list[Message],
    expected: object,
    language: str,
    options: Options,
    where: Where,
    similarity_credit: bool,
) -> EvaluateResult:
    reply = reply_of(messages, "execution_result")
    if expected is not None and not isinstance(expected, (str, int, float)):
        return no_verdict(
            f"The ground truth is a {type(expected).__name__}. Give the output that is expected, as text."
        )
    expected = None if expected is None else str(expected)
    code = find_code(reply.text, language)
    if code is None:
        reason = f"There is no {language} code in the answer."
        return wrong(reason, {"error": check(False, reason)})
    metrics = {"extracted_code": extracted(code)}
    try:
        done = execute(code, options, where, language=language, room=len(expected or ""))
    except NOT_JUDGED as error:
        return not_judged(error, metrics)
    right = done.ok and (expected is None or same_output(expected, done.stdout, options.comparison))
    result = of_run(done, right)
    metrics["execution_result"] = check(done.ok, result.detail)
    if expected is None or not done.ok:
        return EvaluateResult(score=float(right), reason=f"The program {result.detail}", metrics=metrics)
    credit = compare_outputs(done.stdout, expected) if similarity_credit else float(right)
    return EvaluateResult(
        score=1.0 if right else credit,
        reason=f"The program {result.detail}; expected was {expected[:200]!r}",
        metrics={
            **metrics,
            "expected_output": MetricResult(score=1.0, reason=f"Expected: {expected[:1000]}"),
            "output_match": MetricResult(score=1.0 if right else credit, reason=result.detail, is_score_valid=right),
        },
    )


# ── by tests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@reward_function(timeout=600)
def fractional_code_reward(  # noqa: PLR0913 - each is the inherited signature's, or a choice of its own
    messages: list[Message],
    ground_truth: Any = None,
    language: str = "python",
    timeout: float = 30,
    environment: Operator[Environment] = "local",
    function_to_call: str | None = None,
    *,
    entry_point: str | None = None,
    prompt: str | None = None,
    max_memory_mb: int = 512,
    whitespace: Whitespace = "tokens",
    tolerance: float = 0.0,
    special_judge: Operator[Judge | str | None] = None,
    python: Operator[str | None] = None,
    sandbox: OpenSandbox | None = None,
    isolated_python: IsolatedPython | None = None,
    api_key: Operator[str | None] = None,
    **kwargs: Any,
) -> EvaluateResult:
    """The share of tests that the code in the answer passes.

    `ground_truth`: a list of `{input, expected_output}` or its JSON (see docs/code-rewards.md for all shapes). With
    `function_to_call`, `input` is one JSON value per line, one line per argument, and `expected_output` the value;
    without, they are standard input and output. Test code (asserts, `check(candidate)`, pytest) is run in a process of
    its own. Text that is none of these is the output expected of the program. Each test may take `timeout` seconds.
    `prompt` is code that the answer continues; `special_judge`, a function of input, expected output and output, or its
    import path, decides instead of a comparison. `python` is the interpreter that runs Python code, by path or name; by
    default, the one that runs reward-kit. `environment="e2b"` runs it in a rented sandbox of E2B, with `api_key` or the
    key in `E2B_API_KEY`.

    Metrics: `extracted_code`, `test_results`, `pass_rate`; `error`.
    Needs: sandbox.
    Cost: one isolated process, and about 10 ms of CPU beside the code's own, for all tests of a program.
    Does not detect: code that knows the tests.

    >>> from reward_kit import Message
    >>> answer = Message(role="assistant", content="```python\\ndef double(x): return x + x\\n```")
    >>> tests = [{"input": "2", "expected_output": "4"}, {"input": '"a"', "expected_output": '"aa"'}]
    >>> fractional_code_reward(messages=[answer], ground_truth=tests, function_to_call="double").score
    1.0
    """
    reply = reply_of(messages, "pass_rate")
    how = OutputComparison(whitespace, tolerance)
    options = Options(timeout, max_memory_mb, False, how, load_judge(special_judge), python)
    where = Where(sandbox, isolated_python, environment, api_key)
    with no_verdict_if_unreadable("Not judged: "):
        tests = _tests_or_output(ground_truth, function_to_call or entry_point)
    if isinstance(tests, str):
        return _by_output(messages, tests, language, options, where, False)
    tested = test_answer(reply.text, tests, options, where, language=language, prompt=prompt)
    return EvaluateResult(score=tested.rate, reason=tested.reason, metrics=tested.with_rate)


def _tests_or_output(ground_truth: Any, function: str | None) -> Tests | str:
    """The tests; or text, where it is the output that is expected of a program."""
    try:
        return read_tests(ground_truth, function)
    except GroundTruthError:
        text = ground_truth if isinstance(ground_truth, str) else ""
        looks_like_tests = text.lstrip().startswith(("[{", "{")) or "expected_output" in text
        if function is None and text.strip() and not looks_like_tests:
            return text
        raise
