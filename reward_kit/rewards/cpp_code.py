# SPDX-License-Identifier: Apache-2.0
"""Judge C++ and C programs, as contests do: compiled once in a sandbox, run once per test, compared by their output."""

from __future__ import annotations

from typing import Any

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._code.cases import read_tests
from reward_kit.rewards._code.compare import OutputComparison
from reward_kit.rewards._code.languages import with_usual_includes
from reward_kit.rewards._code.python import Judge, Options
from reward_kit.rewards._code.runner import Tested, Where, load_judge, test_answer
from reward_kit.rewards._support.verdicts import check, no_verdict_if_unreadable, reply_of
from reward_kit.rewards.code_execution import extract_code_blocks
from reward_kit.sandbox.contract import OpenSandbox
from reward_kit.typed_interface import Operator, reward_function

__all__ = [
    "add_c_includes", "add_cpp_includes", "binary_cpp_code_reward", "extract_code_blocks", "ioi_cpp_code_reward",
]  # fmt: skip

_MEGABYTE = 1_000_000


@reward_function(timeout=600)
def ioi_cpp_code_reward(
    messages: list[Message],
    ground_truth: Any = None,
    language: str = "cpp",
    timeout: float = 5000,
    memory_limit: int = 512 * _MEGABYTE,
    *,
    tolerance: float = 0.0,
    special_judge: Operator[Judge | str | None] = None,
    sandbox: OpenSandbox | None = None,
    **kwargs: Any,
) -> EvaluateResult:
    """The share of tests (`{input, expected_output}`) that the C++ program in the answer passes.

    `language` may be `"c"`. `timeout` is in milliseconds per test, `memory_limit` in bytes. Without a compiler
    (`g++`, `gcc` for C) in the sandbox, and where no sandbox works, there is no verdict.

    Metrics: `extracted_code`, `test_results`, `pass_rate`; `error`.
    Needs: program `g++`; sandbox.
    Cost: about a second to compile, then one process per test.
    Does not detect: code that knows the tests. Interactive problems cannot be judged.

    >>> code = "#include <iostream>\\nint main() { int n; std::cin >> n; std::cout << 2 * n; }"
    >>> answer = Message(role="assistant", content=f"```cpp\\n{code}\\n```")
    >>> ioi_cpp_code_reward(messages=[answer], ground_truth=[{"input": "4", "expected_output": "8"}]).score
    1.0
    """
    options = _options(timeout, memory_limit, tolerance, special_judge)
    tested = _tested(messages, ground_truth, language, options, sandbox)
    return EvaluateResult(score=tested.rate, reason=tested.reason, metrics=tested.with_rate)


@reward_function(timeout=600)
def binary_cpp_code_reward(  # noqa: PLR0913 - each is the inherited signature's, or a choice of its own
    messages: list[Message],
    ground_truth: Any = None,
    language: str = "cpp",
    timeout: float = 5000,
    memory_limit: int = 512 * _MEGABYTE,
    pass_threshold: float = 0.99,
    *,
    tolerance: float = 0.0,
    special_judge: Operator[Judge | str | None] = None,
    sandbox: OpenSandbox | None = None,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if at least `pass_threshold` of the tests pass, else 0.0; otherwise as `ioi_cpp_code_reward`.

    Metrics: `extracted_code`, `test_results`, `pass_rate`, `binary_result`; `error`.
    Needs: program `g++`; sandbox.
    Cost: about a second to compile, then one process per test.
    Does not detect: code that knows the tests. Interactive problems cannot be judged.

    >>> code = "#include <iostream>\\nint main() { int n; std::cin >> n; std::cout << 2 * n; }"
    >>> answer = Message(role="assistant", content=f"```cpp\\n{code}\\n```")
    >>> binary_cpp_code_reward(messages=[answer], ground_truth=[{"input": "4", "expected_output": "8"}]).score
    1.0
    """
    options = _options(timeout, memory_limit, tolerance, special_judge)
    tested = _tested(messages, ground_truth, language, options, sandbox)
    passed = tested.rate >= pass_threshold
    reason = f"{tested.reason} {tested.rate:.0%} passed, and {pass_threshold:.0%} were asked for."
    return EvaluateResult(
        score=float(passed), reason=reason, metrics={**tested.with_rate, "binary_result": check(passed, reason)}
    )


def _options(timeout: float, memory_limit: int, tolerance: float, special_judge: Judge | str | None) -> Options:
    megabytes = max(1, memory_limit // _MEGABYTE)
    return Options(timeout / 1000, megabytes, False, OutputComparison(tolerance=tolerance), load_judge(special_judge))


def _tested(
    messages: list[Message], ground_truth: Any, language: str, options: Options, sandbox: OpenSandbox | None
) -> Tested:
    reply = reply_of(messages, "pass_rate")
    with no_verdict_if_unreadable("Not judged: "):
        tests = read_tests(ground_truth)
    return test_answer(reply.text, tests, options, Where(sandbox), language=language)


# ── inherited names; the rewards do the same by themselves ───────────────────────────────────────────────────────────


def add_cpp_includes(code: str) -> str:
    """C++ code that includes nothing, with what such programs usually include; other code as it is."""
    return with_usual_includes(code, "cpp")


def add_c_includes(code: str) -> str:
    """The same for C."""
    return with_usual_includes(code, "c")
