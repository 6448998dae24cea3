# SPDX-License-Identifier: Apache-2.0
"""JavaScript, C and C++ under their tests, where their tools are installed; and other Python interpreters."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from reward_kit.rewards.code_execution import execute_javascript_code, fractional_code_reward
from reward_kit.rewards.cpp_code import binary_cpp_code_reward, ioi_cpp_code_reward
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from tests.execution.shell_support import require_namespaces
from tests.rewards.code_parts import answer, require_zygote


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


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    "code",
    [
        "const n = parseInt(readline()); let s = 0; for (const x of readline().split(' ')) s += +x; print(s + n);",
        "var l, s = 0; while ((l = readline()) != null) s += l.split(' ').reduce((a, b) => a + +b, 0); print(s)",
        "let s = 0, line; while (line = readline()) for (const x of line.split(' ')) s += +x; write(s + '\\n');",
        "const rl = require('readline').createInterface({input: process.stdin}); let s = 0;"
        "rl.on('line', l => l.split(' ').forEach(x => s += +x)).on('close', () => console.log(s));",
        "const lines = require('fs').readFileSync(0, 'utf8').trim().split(/\\s+/); console.log(eval(lines.join('+')));",
        "const readline = require('readline'); const rl = readline.createInterface({input: process.stdin}); let s = 0;"
        "rl.on('line', l => l.split(' ').forEach(x => s += +x)); rl.on('close', () => console.log(s));",
    ],
)
def test_javascript_reads_its_input_in_every_usual_way(code: str) -> None:
    require_namespaces()
    tests = [{"input": given, "expected_output": "9"} for given in ("3\n1 2 3", "3\n1 2 3\n", "3\r\n1 2 3\r\n")]
    result = fractional_code_reward(messages=answer(code, "js"), ground_truth=tests, language="javascript")
    assert result.score == 1.0, result.reason


_SUM = 'int main() { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); return 0; }'


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_c_with_and_without_its_includes() -> None:
    require_namespaces()
    tests = [{"input": "2 3", "expected_output": "5"}]
    root = 'int main() { double x; scanf("%lf", &x); printf("%.0f", sqrt(x)); }'
    for code, fence, language, case in (
        (_SUM, "c", "c", tests),
        ("#include <stdio.h>\n" + _SUM, "c", "c", tests),
        (root, "c", "c", [{"input": "49", "expected_output": "7"}]),
        (_SUM, "cpp", "cpp", tests),
        ("int main() { vector<int> v(2); cin >> v[0] >> v[1]; cout << v[0] + v[1]; }", "cpp", "cpp", tests),
    ):
        result = binary_cpp_code_reward(messages=answer(code, fence), ground_truth=case, language=language)
        assert result.score == 1.0, (code, result.reason)
    cpp_only = "#include <iostream>\nint main() { std::cout << 5; }"
    result = binary_cpp_code_reward(messages=answer(cpp_only, "c"), ground_truth=tests, language="c")
    assert result.score == 0.0 and "does not compile" in (result.reason or "")


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@pytest.mark.parametrize(
    "code",
    [
        "int a[1 << 28] = {1}; int main() {}",
        "struct A { char a[1 << 30] = {1}; }; A a; int main() {}",
        "char a[] = {[0 ... 1 << 30] = 1}; int main() {}",
    ],
)
def test_a_small_source_does_not_compile_to_gigabytes(code: str) -> None:
    require_namespaces()
    tests = [{"input": "", "expected_output": ""}]
    result = binary_cpp_code_reward(messages=answer(code, "cpp"), ground_truth=tests)
    assert (result.score, result.is_score_valid) == (0.0, True)
    assert "does not compile" in (result.reason or "")


def _environment_with(module: str, place: str) -> Path:
    """A virtual environment of this interpreter that has a module of its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    packages = next(Path(place).glob("lib/python*/site-packages"))
    (packages / f"{module}.py").write_text("def answer():\n    return 42\n")
    return Path(place) / "bin" / "python"


def test_another_interpreter_judges_with_its_own_packages() -> None:
    require_zygote()
    code = "from only_there import answer\ndef f():\n    return answer()"
    given: dict[str, Any] = {"messages": answer(code), "ground_truth": [{"input": "", "expected_output": "42"}]}
    given |= {"function_to_call": "f"}
    here = fractional_code_reward(**given)
    assert here.score == 0.0 and f"judged by {sys.executable}" in (here.reason or "")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as seen, tempfile.TemporaryDirectory(dir="/tmp") as hidden:
        for place in (seen, hidden):
            python = _environment_with("only_there", place)
            result = fractional_code_reward(**given, python=str(python))
            assert result.score == 1.0, (place, result.reason)


@pytest.mark.parametrize("python", ["/no/such/python", "sh", "def f(): return 1", "", "a\0b", 3])
def test_an_interpreter_that_is_none_is_no_verdict(python: Any) -> None:
    result = deepcoder_code_reward(
        messages=answer("def f(): return 1"),
        ground_truth=[{"input": "", "expected_output": "1"}],
        target_function="f",
        python=python,
    )
    assert not result.is_score_valid and "interpreter" in (result.reason or "")
