"""JavaScript and C++ under their tests, where their tools are installed."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from reward_kit.rewards.code_execution import execute_javascript_code, fractional_code_reward
from reward_kit.rewards.cpp_code import binary_cpp_code_reward, ioi_cpp_code_reward
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from tests.execution.shell_support import require_namespaces
from tests.rewards.code_parts import answer


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript() -> None:
    require_namespaces()
    assert execute_javascript_code("console.log(6 * 7)") == {"success": True, "output": "42", "error": None}
    code = "const add = (a, b) => { console.log('hm'); return [a + b]; };"
    tests = [{"input": "1\n2", "expected_output": "[3]"}, {"input": '"a"\n"b"', "expected_output": '["ba"]'}]
    result = fractional_code_reward(
        messages=answer(code, "js"), ground_truth=tests, language="javascript", function_to_call="add"
    )
    assert result.score == 0.5, result.reason


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_functions_wherever_they_are() -> None:
    require_namespaces()
    tests = [
        {"input": "3", "expected_output": "9"},
        {"input": "3002399751580331", "expected_output": "9007199254740993"},
    ]
    for code in (
        "class Solution { constructor() { this.three = 3n; } thrice(x) { return BigInt(x) * this.three; } }",
        "module.exports = { thrice: x => 3n * BigInt(x) };",
        "exports.thrice = async x => 3n * BigInt(x);",
    ):
        given: dict[str, Any] = {"language": "javascript", "target_function": "thrice", "ground_truth": tests}
        result = deepcoder_code_reward(messages=answer(code, "javascript"), **given)
        assert result.score == 1.0, (code, result.reason)
    for code in (
        "process.exit(0); function thrice() {}",
        "Object.prototype.toJSON = () => 9; function thrice() { return {}; }",
        "function thrice() { require('fs').writeSync(1, '\\n' + process.argv[2] + '=7'); process.exit(0); }",
    ):
        result = deepcoder_code_reward(messages=answer(code, "javascript"), **given)
        assert (result.score, result.is_score_valid) == (0.0, True), (code, result.reason)


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_cpp() -> None:
    require_namespaces()
    code = (
        "#include <iostream>\nint main() { long a, b; std::cin >> a >> b; if (a == 9) for (;;); std::cout << a + b; }"
    )
    tests = [{"input": f"{n} 1", "expected_output": "3"} for n in (2, 3, 9)]
    given: dict[str, Any] = {"messages": answer(code, "cpp"), "ground_truth": tests, "timeout": 1000}
    part = ioi_cpp_code_reward(**given)
    assert part.score == pytest.approx(1 / 3)
    assert [row["status"] for row in json.loads(part.metrics["test_results"].reason)] == [
        "passed",
        "wrong",
        "timed_out",
    ]
    assert binary_cpp_code_reward(**given, pass_threshold=0.3).score == 1.0
    heavy = "#include <bits/stdc++.h>\nint main() { std::cout << std::popcount(7u); }"
    tight: dict[str, Any] = {"timeout": 300, "memory_limit": 32_000_000}
    small = ioi_cpp_code_reward(messages=answer(heavy, "cpp"), ground_truth=[{"input": "", "output": "3"}], **tight)
    assert small.score == 1.0, small.reason
    broken = ioi_cpp_code_reward(messages=answer("int main() {", "cpp"), ground_truth=tests)
    assert broken.score == 0.0 and broken.is_score_valid and "does not compile" in (broken.reason or "")
