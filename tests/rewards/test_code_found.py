# SPDX-License-Identifier: Apache-2.0
"""Which code of an answer is judged: the block that is meant, with what it continues."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.models import Message
from reward_kit.rewards.code_execution import fractional_code_reward
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from tests.rewards.code_parts import answer, require_zygote


@pytest.fixture(autouse=True)
def a_zygote() -> None:
    require_zygote()


def judged(text: str, function: str | None = None) -> float:
    tests = [{"input": "2", "expected_output": "4"}]
    messages = [Message(role="assistant", content=text)]
    return fractional_code_reward(messages=messages, ground_truth=tests, function_to_call=function).score


def test_the_code_is_taken_from_the_right_block() -> None:
    right, usage = "def f(x):\n    return x * 2", "print(f(2))"
    assert judged(f"First try:\n```python\ndef f(x): return 0\n```\nBetter:\n```python\n{right}\n```", "f") == 1.0
    assert judged(f"```python\n{right}\n```\nUse it so:\n```python\n{usage}\n```\n```text\n4\n```", "f") == 1.0
    assert judged(f"<think>```python\ndef f(x): return 0\n```</think>```py\n{right}\n```", "f") == 1.0
    assert judged(f"```\n{right}\n```", "f") == 1.0
    assert judged(right, "f") == 1.0
    assert judged(f"```python\n{right}", "f") == 1.0
    assert (
        judged("```bash\npip install x\n```\n```python\nprint(int(input()) * 2)\n```\n```python\nprint('e.g.')\n```")
        == 1.0
    )
    assert judged("The answer is four.", "f") == 0.0


@pytest.mark.parametrize(
    "tests",
    [
        ["assert f(2) == 4", "assert f(3) == 6"],
        "for n in range(3):\n    assert f(n) == n + n",
        "from solution import f\ndef test_f(): assert f(2) == 4",
        "import unittest, answer\nfrom answer import f\nclass T(unittest.TestCase):\n"
        "    def test(self): self.assertEqual(f(2), 4)",
        "from collections import Counter\ndef helper(x): return x\nassert Counter(f([1])) == Counter([1, helper(1)])",
    ],
)
def test_test_programs_choose_the_block_that_defines_what_they_call(tests: Any) -> None:
    text = "```python\ndef f(x):\n    return x * 2\n```\nUse it so:\n```python\nprint(f(int(input())))\n```"
    result = deepcoder_code_reward(messages=[Message(role="assistant", content=text)], ground_truth=tests)
    assert result.score == 1.0, result.reason


def test_of_two_blocks_the_one_that_defines_more_is_taken() -> None:
    whole, part = "def f(x): return x * 2\ndef g(x): return x + 1", "def g(x): return x + 2"
    text = f"```python\n{whole}\n```\nOr else:\n```python\n{part}\n```"
    result = deepcoder_code_reward(
        messages=[Message(role="assistant", content=text)], ground_truth=["assert f(g(1)) == 4", "assert g(1) == 2"]
    )
    assert result.score == 1.0, result.reason


@pytest.mark.parametrize("entry_point", ["twice", "Solution().twice"])
@pytest.mark.parametrize(
    "test",
    [
        "def check(candidate):\n    assert candidate([1]) == [1, 1]",
        "def check(candidate):\n    assert candidate(xs = [1]) == [1, 1]",
        "def check(candidate):\n    for n in range(3):\n        assert candidate([n]) == [n, n]",
    ],
)
def test_a_method_of_solution_is_found_by_test_programs(entry_point: str, test: str) -> None:
    code = "class Solution:\n    def twice(self, xs: List[int]) -> List[int]: return xs * 2"
    result = deepcoder_code_reward(messages=answer(code), ground_truth={"test": test, "entry_point": entry_point})
    assert result.score == 1.0, result.reason
    wrong = deepcoder_code_reward(
        messages=answer(code.replace("xs * 2", "xs * 3")), ground_truth={"test": test, "entry_point": entry_point}
    )
    assert (wrong.score, wrong.is_score_valid) == (0.0, True)


def test_a_name_that_is_none_judges_nothing() -> None:
    tests = [{"input": "1", "expected_output": "1"}]
    result = deepcoder_code_reward(messages=answer("def f(x): return x"), ground_truth=tests, target_function="f g")
    assert not result.is_score_valid and "'f g'" in (result.reason or "")


def test_an_answer_that_defines_the_function_anew_finds_what_the_prompt_has() -> None:
    prompt = 'from typing import List\n\n\ndef one():\n    return 1\n\n\ndef f(x: List[int]):\n    """Longer."""\n'
    test = "def check(candidate):\n    assert candidate([0]) == [0, one()]\n"
    code = "def f(x: List[int]):\n    return [*x, one()]"
    result = deepcoder_code_reward(messages=answer(code), ground_truth=test, entry_point="f", prompt=prompt)
    assert result.score == 1.0, result.reason


def test_a_completion_continues_its_prompt() -> None:
    prompt = 'def f(x):\n    """Twice."""\n'
    test = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate([1]) == [1, 1]\n"
    for completion in ("    return x * 2\n", "return x * 2", "```python\n    return x * 2\n```"):
        messages = [Message(role="assistant", content=completion)]
        result = deepcoder_code_reward(messages=messages, ground_truth=test, entry_point="f", prompt=prompt)
        assert result.score == 1.0, (completion, result.reason)
