# SPDX-License-Identifier: Apache-2.0
"""Code judged by running it: right programs pass, wrong ones do not, and what cannot be judged is no zero."""

from __future__ import annotations

import doctest
import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reward_kit.errors import SandboxError
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards import apps_coding_reward, code_execution, deepcoder_reward
from reward_kit.rewards._code import python as python_code
from reward_kit.rewards._code import runner
from reward_kit.rewards.apps_coding_reward import evaluate_apps_solution
from reward_kit.rewards.code_execution import (
    compare_outputs,
    execute_python_code,
    extract_code_blocks,
    fractional_code_reward,
    local_code_execution_reward,
    string_similarity,
)
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from reward_kit.sandbox import own
from tests.rewards.code_parts import answer, require_zygote
from tests.sandbox.python.zygotes import control_groups


@pytest.fixture(autouse=True)
def a_zygote() -> None:
    require_zygote()


def by_calls(code: str, function: str, *cases: tuple[list[Any], Any], **options: Any) -> EvaluateResult:
    tests = [
        {"input": "\n".join(map(json.dumps, given)), "expected_output": json.dumps(expected)}
        for given, expected in cases
    ]
    return fractional_code_reward(messages=answer(code), ground_truth=tests, function_to_call=function, **options)


def by_input(code: str, *cases: tuple[str, str], **options: Any) -> EvaluateResult:
    tests = [{"input": given, "expected_output": expected} for given, expected in cases]
    return fractional_code_reward(messages=answer(code), ground_truth=json.dumps(tests), **options)


# ── programs that are right ──────────────────────────────────────────────────────────────────────────────────────────

READS_TWO_NUMBERS = {
    "plainly": "print(int(input()) + int(input()))",
    "and leaves": "import sys; print(int(input()) + int(input())); sys.exit(0)",
    "and ends at once": "import os; print(int(input()) + int(input()), flush=True); os._exit(0)",
    "in a thread": """
        import sys, threading
        sys.setrecursionlimit(1 << 20); threading.stack_size(1 << 26)
        def main(): print(sum(map(int, sys.stdin.buffer.read().split())))
        t = threading.Thread(target=main); t.start(); t.join()""",
    "from descriptor 0": "print(sum(map(int, open(0))), end=' \\n\\n')",
    "by way of a file": """
        import tempfile, sys
        with tempfile.TemporaryFile('w+') as f:
            f.write(sys.stdin.read()); f.seek(0); print(sum(map(int, f)))""",
    "while talking to itself": "import sys; print('hm', file=sys.stderr); print(int(input()) + int(input()))",
    "as a float": "print(float(input()) + float(input()))",
    "when it is the main program": "if __name__ == '__main__': print(int(input()) + int(input()))",
}


@pytest.mark.parametrize("how", READS_TWO_NUMBERS)
def test_a_right_program_passes(how: str) -> None:
    result = by_input(READS_TWO_NUMBERS[how], ("3\n4\n", "7\n"), ("-1\n1", "0"))
    assert (result.score, result.is_score_valid) == (1.0, True), result.reason


RETURNS_PAIRS = {
    "a list": "def f(n): return [[i, i * i] for i in range(n)]",
    "tuples": "def f(n): return [(i, i * i) for i in range(n)]",
    "a generator": "def f(n):\n    for i in range(n): yield i, i * i",
    "a zip": "def f(n): return zip(range(n), (i * i for i in range(n)))",
    "with noise": "def f(n):\n    print('called', n)\n    return [[i, i * i] for i in range(n)]",
    "of a subclass": "class L(list): pass\ndef f(n): return L([i, i * i] for i in range(n))",
    "by a method": "class Solution:\n    def f(self, n): return [[i, i ** 2] for i in range(n)]",
    "by a method with usual imports": """
        class Solution:
            def f(self, n: int) -> List[List[int]]:
                return [[i, pow(i, 2, 1000)] for i in takewhile(lambda i: i < n, count())]""",
    "with state kept": "seen = []\ndef f(n):\n    seen.append(n); return [[i, i * i] for i in range(seen[0])]",
    "async style names": "import math\nf = lambda n: [[i, int(math.pow(i, 2))] for i in range(n)]",
}


@pytest.mark.parametrize("how", RETURNS_PAIRS)
def test_a_right_function_passes(how: str) -> None:
    result = by_calls(RETURNS_PAIRS[how], "f", ([0], []), ([2], [[0, 0], [1, 1]]), ([1], [[0, 0]]))
    assert (result.score, result.is_score_valid) == (1.0, True), result.reason


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("{1: 'a'}", {"1": "a"}),
        ("None", None),
        ("0.1 + 0.2", 0.30000000000000004),
        ("10 ** 30", 10**30),
        ("'ü'", "ü"),
        ("True", True),
        ("__import__('decimal').Decimal('2.5')", 2.5),
    ],
)
def test_values_of_many_kinds(returned: str, expected: Any) -> None:
    assert by_calls(f"def f(): return {returned}", "f", ([], expected)).score == 1.0


def test_a_set_is_no_list() -> None:
    tests = [{"input": "[2, 1]", "expected_output": "{1, 2}"}, {"input": "[2, 1]", "expected_output": "[1, 2]"}]
    result = fractional_code_reward(
        messages=answer("def f(xs): return set(xs)"), ground_truth=tests, function_to_call="f"
    )
    assert result.score == 0.5


def test_numbers_may_be_near_where_that_is_asked_for() -> None:
    code = "def f(): return [0.1 + 0.2]"
    assert by_calls(code, "f", ([], [0.3])).score == 0.0
    assert by_calls(code, "f", ([], [0.3]), tolerance=1e-6).score == 1.0
    assert by_input("print(1 / 3)", ("", "0.333333"), tolerance=1e-4).score == 1.0
    assert by_input("print(1 / 3)", ("", "0.333333")).score == 0.0


def test_a_special_judge_decides() -> None:
    def any_divisor(given: str, expected: str, printed: str) -> bool:
        return int(given) % int(printed) == 0

    code = "print(3)"
    assert by_input(code, ("12", "2"), ("7", "1"), special_judge=any_divisor).score == 0.5


def test_a_thousand_tests_are_no_more_than_many() -> None:
    cases = [(f"{n}\n", f"{n + 1}\n") for n in range(1500)]
    assert by_input("print(int(input()) + 1)", *cases).score == 1.0


# ── programs that are not ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "code",
    [
        "print(12)",
        "print(13); raise SystemExit(1)",
        "print(13); 1 / 0",
        "print('13x')",
        "print(13, 13)",
        "print('\\uff11\\uff13')",
        "print('13' * 2_000_000)",
        "import sys; sys.stderr.write('13')",
        "print(13",
        "",
        "while True: pass",
        "x = []\nwhile True: x.append(bytearray(1 << 24))",
    ],
)
def test_what_is_wrong_earns_nothing(code: str) -> None:
    result = local_code_execution_reward(messages=answer(code), ground_truth="13", timeout=1)
    assert (result.score, result.is_score_valid) == (0.0, True)


def test_similar_output_earns_something_only_where_that_is_asked_for() -> None:
    given: dict[str, Any] = {"messages": answer("print('hello worle')"), "ground_truth": "hello world"}
    assert local_code_execution_reward(**given).score == 0.0
    assert 0.5 < local_code_execution_reward(**given, similarity_credit=True).score < 1.0


def test_the_share_of_tests_is_the_score_or_all_of_them_are_needed() -> None:
    tests = [{"input": str(n), "expected_output": str(n % 2)} for n in range(4)]
    messages = answer("print(int(input()) // 2 * 0)")
    part = fractional_code_reward(messages=messages, ground_truth=tests)
    assert part.score == 0.5 and not part.metrics["pass_rate"].is_score_valid
    assert [row["passed"] for row in json.loads(part.metrics["test_results"].reason)] == [True, False, True, False]
    whole = deepcoder_code_reward(messages=messages, ground_truth=tests)
    assert whole.score == 0.0 and len(json.loads(whole.metrics["test_results"].reason)) == 2


def test_a_slow_test_after_a_wrong_one_is_not_run() -> None:
    code = "import time\ndef f(n):\n    if n == 9: time.sleep(30)\n    time.sleep(0.2); return n + 1"
    tests = [{"input": str(n), "expected_output": str(n)} for n in (1, 2, 3, 9)]
    result = deepcoder_code_reward(messages=answer(code), ground_truth=tests, target_function="f", timeout=60)
    assert result.score == 0.0 and "test 1" in (result.reason or "")


CASES = [{"input": str(n), "expected_output": str(n)} for n in range(100)]


@pytest.mark.parametrize(
    ("function", "tests"), [("f", CASES), (None, CASES), (None, [f"assert f({n}) == {n}" for n in range(100)])]
)
def test_code_that_never_ends_is_wrong_and_not_waited_for_in_every_test(
    monkeypatch: pytest.MonkeyPatch, function: str | None, tests: Any
) -> None:
    monkeypatch.setattr(python_code, "MOST_LOST", 2.5)
    code = "import time\ndef f(x): time.sleep(60)\nif __name__ == '__main__': f(input())"
    result = fractional_code_reward(messages=answer(code), ground_truth=tests, function_to_call=function, timeout=1)
    assert (result.score, result.is_score_valid) == (0.0, True)
    rows = json.loads(result.metrics["test_results"].reason)
    assert [row["status"] for row in rows] == ["timed_out"] * 50
    assert [("not run" in row["details"]) for row in rows[:4]] == [False, False, False, True]


def test_what_an_earlier_run_left_behind_is_not_held_against_a_program() -> None:
    spinning = "import threading\ndef spin():\n    while True: pass\nprint(input(), flush=True)\n"
    code = spinning + "for _ in range(8): threading.Thread(target=spin, daemon=True).start()"
    tests = [{"input": str(n), "expected_output": str(n)} for n in range(3)]
    result = fractional_code_reward(messages=answer(code), ground_truth=tests, timeout=1)
    assert result.score == 1.0, result.reason


# ── no verdict ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "tests",
    [
        None,
        "",
        [],
        {},
        [{"input": "1"}],
        [1, 2],
        '[{"input": "1", "expected_output": ',
        {"inputs": ["1"], "outputs": 1},
    ],
)
@pytest.mark.parametrize("reward", [fractional_code_reward, deepcoder_code_reward, evaluate_apps_solution])
def test_tests_that_cannot_be_read_judge_nothing(reward: Any, tests: Any) -> None:
    result = reward(messages=answer("print(1)"), ground_truth=tests)
    assert not result.is_score_valid and "error" in result.metrics


@pytest.mark.parametrize("truth", [["1"], {"a": 1}, b"1", object()])
def test_an_output_that_is_no_text_judges_nothing(truth: Any) -> None:
    result = local_code_execution_reward(messages=answer("print(1)"), ground_truth=truth)
    assert not result.is_score_valid and type(truth).__name__ in (result.reason or "")
    assert local_code_execution_reward(messages=answer("print(1)"), ground_truth=1).score == 1.0  # type: ignore[arg-type]


def test_arguments_that_cannot_be_read_judge_nothing() -> None:
    tests = [{"input": "one two", "expected_output": "1"}]
    result = fractional_code_reward(messages=answer("def f(x): return 1"), ground_truth=tests, function_to_call="f")
    assert not result.is_score_valid and "one JSON value per line" in (result.reason or "")


def test_a_sandbox_that_cannot_start_judges_nothing_and_leaves_the_answer_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    own.close_hosts()
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(SandboxError, match="/nowhere/python") as failed:
        local_code_execution_reward(messages=answer("print(1)"), ground_truth="1")
    assert failed.value.retryable
    own.close_hosts()


def test_an_unknown_language_judges_nothing() -> None:
    result = local_code_execution_reward(messages=answer("x", "cobol"), ground_truth="1", language="cobol")
    assert not result.is_score_valid and "cobol" in (result.reason or "")


@pytest.mark.parametrize("reward", [local_code_execution_reward, fractional_code_reward, deepcoder_code_reward])
def test_without_a_reply_there_is_an_error(reward: Any) -> None:
    result = reward(messages=[Message(role="user", content="Write it.")], ground_truth="1")
    assert result.score == 0.0 and "error" in result.metrics


# ── APPS ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "truth",
    [
        {"inputs": ["2\n", "5\n"], "outputs": ["4\n", "10\n"]},
        {"inputs": [["2"], ["5"]], "outputs": [["4"], ["10"]]},
        {"fn_name": "f", "inputs": [[2], [5]], "outputs": [4, 10]},
        {"fn_name": "f", "inputs": [[2], [5]], "outputs": [[4], [10]]},
        {"fn_name": "f", "inputs": ["2", "5"], "outputs": ["4", "10"]},
    ],
)
def test_apps_problems(truth: dict[str, Any]) -> None:
    code = "def f(x): return 2 * x" if "fn_name" in truth else "print(2 * int(input()))"
    result = evaluate_apps_solution(messages=answer(code), ground_truth=json.dumps(truth))
    assert result.score == 1.0 and {"pass_rate", "execution_metadata", "raw_results"} <= result.metrics.keys()


def test_apps_code_that_is_not_python() -> None:
    result = evaluate_apps_solution(messages=answer("print(1"), ground_truth={"inputs": [""], "outputs": ["1"]})
    assert result.score == 0.0 and "parsability" in result.metrics


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_parts_by_themselves() -> None:
    assert execute_python_code("print(1)\nprint(2)") == {"success": True, "output": "1\n2", "error": None}
    failed = execute_python_code("1 / 0")
    assert not failed["success"] and "ZeroDivisionError" in failed["error"]
    assert execute_python_code("while True: pass", timeout=1)["error"] == "ran out of time"
    text = "```python\na\n```\n```js\nb\n```\n```\nc\n```"
    assert [block["code"] for block in extract_code_blocks(text)] == ["a", "b", "c"]
    assert [block["code"] for block in extract_code_blocks(text, "python")] == ["a", "c"]
    assert compare_outputs("1 2\n3", "1 2 3\n") == 1.0 > compare_outputs("12", "13") > 0.0
    assert string_similarity("same", "same") == 1.0 > string_similarity("same", "some") > string_similarity("a", "b")


# ── processes and threads ────────────────────────────────────────────────────────────────────────────────────────────


def test_threads_share_the_zygotes() -> None:
    scores: list[float] = []

    def one(number: int) -> None:
        scores.append(by_calls("def f(x): return x", "f", ([number], number)).score)

    threads = [threading.Thread(target=one, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scores == [1.0] * 6


async def test_inside_a_running_loop() -> None:
    assert by_calls("def f(x): return x", "f", ([1], 1)).score == 1.0


SCRIPT = """
import os, sys, warnings
warnings.simplefilter("error")
from reward_kit.rewards.code_execution import execute_python_code
print(execute_python_code("print('parent')")["output"], flush=True)
if pid := os.fork():
    assert os.waitpid(pid, 0)[1] == 0
    print(execute_python_code("print('parent again')")["output"], flush=True)
else:
    print(execute_python_code("print('child')")["output"], flush=True)
"""


def processes_of(mark: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "environ").read_bytes():
                found.append(place.name)
        except OSError:
            continue
    return found


def test_a_forked_process_starts_its_own_and_nothing_is_left() -> None:
    groups = control_groups("*")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=100, check=False, env=dict(os.environ)
    )
    assert done.stdout.splitlines() == ["parent", "child", "parent again"], done.stderr
    assert done.stderr == ""
    pids = {Path(path).name.split("-")[3] for path in control_groups("*") - groups}
    assert not {pid for pid in pids if not Path(f"/proc/{pid}").exists()}


def test_a_killed_process_leaves_nothing() -> None:
    script = (
        "import os\nfrom reward_kit.rewards.code_execution import execute_python_code\n"
        "execute_python_code('pass')\nprint(os.getpid(), flush=True)\nos.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    pid = done.stdout.strip()
    assert pid and done.returncode == -9
    gone = threading.Event()
    for _ in range(200):
        if not control_groups(pid):
            return
        gone.wait(0.05)
    pytest.fail("the zygote's control group is still there")


@pytest.mark.parametrize("module", [code_execution, deepcoder_reward, apps_coding_reward])
def test_the_examples_of_the_docstrings(module: ModuleType) -> None:
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner()
    for name in module.__all__:
        for test in finder.find(inspect.unwrap(vars(module)[name]), name, module):
            runner.run(test)
    assert runner.tries and not runner.failures


# ── whose doing it is ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("breaks", "control", "score"), [(1, True, 1.0), (2, True, 0.0), (2, False, None)])
def test_a_sandbox_that_breaks_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, breaks: int, control: bool, score: float | None
) -> None:
    """Breaking again, it is the code's doing where a right program passes, and else nobody knows."""
    judge, tried = runner._judged, []

    def breaking(code: str, *rest: Any) -> Any:
        tried.append(code)
        if len(tried) <= breaks or (len(tried) > breaks and not control):
            raise SandboxError("it broke")
        return judge(code, *rest)

    monkeypatch.setattr(runner, "_judged", breaking)
    if score is None:
        with pytest.raises(SandboxError):
            by_input("print(input())", ("1", "1"))
        return
    result = by_input("print(input())", ("1", "1"))
    assert (result.score, result.is_score_valid) == (score, True), result.reason
