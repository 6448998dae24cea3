# SPDX-License-Identifier: Apache-2.0
"""Code rewards get the sandbox that a run's settings name, and every sandbox gives the same verdicts as zygotes do.

`commands` is isolated Python by commands in the namespaces backend; `docker` is a container engine.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reward_kit.cli import main
from reward_kit.config_models import SandboxConfig, load_config
from reward_kit.errors import SandboxUnavailableError, StorageError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.run_identity import results_settings
from reward_kit.models import EvaluateResult, Rollout
from reward_kit.reward_call import RewardCall
from reward_kit.rewards.code_execution import fractional_code_reward, local_code_execution_reward
from reward_kit.rewards.composite import composite
from reward_kit.rewards.cpp_code import ioi_cpp_code_reward
from reward_kit.sandbox.choose import choose_backend
from reward_kit.sandbox.contract import OpenSandbox
from reward_kit.sandbox.own import close_hosts, own_host, own_resources
from reward_kit.sandbox.python.by_commands import PythonByCommands
from reward_kit.scoring.rewards import load_rewards
from tests.execution.shell_support import require_namespaces
from tests.loopback.experiments import chat_row, write_lines
from tests.loopback.runs import config, results
from tests.rewards.code_parts import answer, require_zygote

BACKENDS = [pytest.param("commands"), pytest.param("docker", marks=pytest.mark.xdist_group("docker"))]
PATH = "reward_kit.rewards.code_execution.fractional_code_reward"
IN_A_CONTAINER = "import os\nprint(os.path.exists('/.dockerenv'))"
SQUARES = [{"input": "2", "expected_output": "4"}, {"input": "3", "expected_output": "9"}]
CHECK = "def check(candidate):\n    for n in range(1, 4):\n        assert candidate(n) == n * n\n"
UNITTEST = """
import unittest
from solution import f

class TestF(unittest.TestCase):
    def test_two(self):
        self.assertEqual(f(2), 4)

    def test_three(self):
        self.assertEqual(f(3), 9)
"""


@functools.cache
def _docker_problem() -> str:
    async def probe() -> None:
        await (await choose_backend("docker")).close()

    try:
        asyncio.run(probe())
    except SandboxUnavailableError as error:
        return str(error)
    return ""


def require_docker() -> None:
    """Skip where there is no container engine."""
    if problem := _docker_problem():
        pytest.skip(f"docker does not work here: {problem}")


def commanded(sandbox: OpenSandbox) -> PythonByCommands:
    return PythonByCommands(lambda limits: sandbox(limits=limits), loop=sandbox.loop)


@pytest.fixture(scope="module", params=BACKENDS)
def resources(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What a run hands to code rewards: one host for all tests, as a run has one for all answers."""
    if request.param == "docker":
        require_docker()
        yield own_resources(SandboxConfig(backend="docker"), ["sandbox", "isolated_python"])
    else:
        require_namespaces()
        sandbox = own_host(SandboxConfig(backend="namespaces")).sandbox
        yield {"sandbox": sandbox, "isolated_python": commanded(sandbox)}
    close_hosts()


def statuses(result: EvaluateResult) -> list[str]:
    found = json.loads(result.metrics["test_results"].reason)
    return [row["status"] for row in found]


# ── the same verdicts ────────────────────────────────────────────────────────────────────────────────────────────────

FUNCTIONS = {
    "right": "def f(x): return x * x",
    "wrong": "def f(x): return x + x",
    "async": "async def f(x): return x * x",
    "raises": "def f(x): raise KeyError(x)",
    "does not load": "1 / 0\ndef f(x): return x * x",
    "leaves while it loads": "import os; os._exit(0)",
    "leaves when called": "import sys\ndef f(x): sys.exit(0)",
    "equal to anything": "class A(int):\n    def __eq__(self, other): return True\ndef f(x): return A(7)",
    "kills what it can": "import os\ndef f(x):\n    os.kill(os.getppid(), 9)\n    return x * x + 1",
    "writes where answers are written": "import os\n"
    "def f(x):\n    for n in range(1, 64):\n        try: os.write(n, b'\\n=R9\\nL[]')\n        except OSError: pass\n"
    "    return 0",
    "hangs": "def f(x):\n    while True: pass",
    "takes memory": "def f(x): return 'x' * (1 << 31)",
}
PROGRAMS = {
    "right": "print(int(input()) ** 2)",
    "wrong": "print(int(input()) + 2)",
    "raises": "print(int(input()) ** 2)\nraise SystemExit(3)",
    "leaves quietly": "import os; os._exit(0)",
    "hangs": "input()\nwhile True: pass",
    "finds no tests": "import glob\nfor name in glob.glob('/*/*.json'): print(name)",
}


TESTS: dict[str, dict[str, Any]] = {
    "by values": {"ground_truth": SQUARES, "function_to_call": "f"},
    "by check": {"ground_truth": CHECK, "entry_point": "f"},
    "by unittest": {"ground_truth": UNITTEST},
}


@pytest.mark.parametrize("tests", TESTS.values(), ids=TESTS)
@pytest.mark.parametrize("code", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions(resources: dict[str, Any], code: str, tests: dict[str, Any]) -> None:
    require_zygote()
    given: dict[str, Any] = {"messages": answer(code), "timeout": 1, "max_memory_mb": 200, **tests}
    expected, found = fractional_code_reward(**given), fractional_code_reward(**given, **resources)
    assert (found.score, found.is_score_valid) == (expected.score, expected.is_score_valid), found.reason


def test_some_of_these_are_right_and_some_are_wrong() -> None:
    """Else the test above would compare nothing."""
    require_zygote()
    for name, score in (("right", 1.0), ("wrong", 0.0)):
        assert fractional_code_reward(messages=answer(FUNCTIONS[name]), **TESTS["by check"]).score == score


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS)
def test_programs(resources: dict[str, Any], code: str) -> None:
    require_zygote()
    given: dict[str, Any] = {"messages": answer(code), "ground_truth": SQUARES, "timeout": 1}
    expected, found = fractional_code_reward(**given), fractional_code_reward(**given, **resources)
    assert found.score == expected.score
    assert statuses(found) == statuses(expected)


def test_cpp(resources: dict[str, Any]) -> None:
    require_namespaces()
    code = "#include <iostream>\nint main() { int n; std::cin >> n; if (n == 3) for (;;); std::cout << n * n; }"
    given: dict[str, Any] = {"messages": answer(code, "cpp"), "ground_truth": SQUARES, "timeout": 1000}
    expected, found = ioi_cpp_code_reward(**given), ioi_cpp_code_reward(**given, sandbox=resources["sandbox"])
    assert statuses(found) == statuses(expected) == ["passed", "timed_out"]
    broken = ioi_cpp_code_reward(
        messages=answer("int main() {", "cpp"), ground_truth=SQUARES, sandbox=resources["sandbox"]
    )
    assert (broken.score, broken.is_score_valid) == (0.0, True)


def test_the_tests_are_out_of_reach_of_the_code(resources: dict[str, Any]) -> None:
    """The code looks for another process whose memory, descriptors or arguments it can read."""
    code = """
    import glob, os
    def f(x):
        mine = '/proc/%d/' % os.getpid()
        names = [glob.glob('/proc/[0-9]*/' + what) for what in ('mem', 'environ', 'fd/*', 'map_files/*', 'cwd/*')]
        for name in sum(names, []):
            try: open(name, 'rb').close()
            except OSError: continue
            if not name.startswith(mine): return name
        return 'nothing'
    """
    tests = "def test_it():\n    given = f(1)\n    for _ in range(1):\n        assert given == 1, given\n"
    result = fractional_code_reward(messages=answer(code), ground_truth=tests, **resources)
    assert (result.score, result.is_score_valid) == (0.0, True)
    assert "AssertionError: nothing" in (result.reason or ""), result.reason


def test_tests_that_end_their_own_process_judge_nothing(resources: dict[str, Any]) -> None:
    tests = "import os\ndef test_it():\n    assert f(1) == 1\n    os._exit(0)\n"
    result = fractional_code_reward(messages=answer("def f(x): return x"), ground_truth=tests, **resources)
    assert not result.is_score_valid and "end their own process" in (result.reason or "")


def test_another_interpreter_is_one_of_the_sandbox(resources: dict[str, Any]) -> None:
    given: dict[str, Any] = {"messages": answer("print(1)"), "ground_truth": "1", **resources}
    assert local_code_execution_reward(**given, python="python3").score == 1.0
    missing = local_code_execution_reward(**given, python="python9.9")
    assert not missing.is_score_valid and "python9.9" in (missing.reason or "")
    assert not local_code_execution_reward(**given, python="sh").is_score_valid


# ── a run's settings hold ────────────────────────────────────────────────────────────────────────────────────────────


def rows(code: str, count: int = 2) -> list[dict[str, Any]]:
    text = f"```python\n{code}\n```"
    return [
        {"id": f"s{n}", "user_query": "?", "assistant_response": text, "ground_truth_for_eval": "True"}
        for n in range(count)
    ]


@pytest.mark.xdist_group("docker")
def test_a_run_judges_code_in_docker_where_its_settings_say_so(tmp_path: Path) -> None:
    require_docker()
    asked: dict[str, Any] = {"rows": rows(IN_A_CONTAINER), "generation__enabled": False, "reward__function_path": PATH}
    told = config(tmp_path, **asked, sandbox__backend="docker")
    EvaluationPipeline(told).run()
    assert [row["evaluation_score"] for row in results(tmp_path).values()] == [1.0, 1.0]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "docker" in json.dumps(summary)
    with pytest.raises(StorageError, match=r"sandbox\.backend"):
        EvaluationPipeline(config(tmp_path, **asked)).run()


@pytest.mark.xdist_group("docker")
def test_best_of_n_verifies_code_in_docker_where_the_flag_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_docker()
    parquet = pytest.importorskip("pyarrow.parquet")
    turns = [{"role": "user", "content": "Print."}, {"role": "assistant", "content": "```python\n```"}]
    tests = json.dumps({"inputs": [""], "outputs": ["True\n"]})
    data = write_lines(tmp_path / "data" / "code.jsonl", [chat_row(0, "code", turns, {"input_output": tests})])
    (tmp_path / "mock.py").write_text(
        f"def reply(messages, draw):\n    return '''```python\\n{IN_A_CONTAINER}\\n```'''\n"
    )
    out = tmp_path / "out.parquet"
    told = f"dataset: {data.parent}\nsplits: code\nmodel: mock\nmock: {tmp_path}/mock.py:reply\nnum_candidates: 1\n"
    (tmp_path / "a.yaml").write_text(f"{told}cache_dir: null\noutput: {out}\n")
    monkeypatch.setattr(sys, "argv", ["reward-kit", "best-of-n", "-c", str(tmp_path / "a.yaml"), "--sandbox", "docker"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    assert [row["is_verified"] for row in parquet.read_table(out).to_pylist()] == [True]


def test_the_backend_is_part_of_what_results_depend_on(tmp_path: Path) -> None:
    settings = {}
    for name in ("auto", "docker"):
        told = load_config(config(tmp_path, reward__function_path=PATH, sandbox__backend=name))
        settings[name] = results_settings(load_rewards(told.reward), told)
    assert settings["auto"] != settings["docker"] and settings["docker"]["sandbox.backend"] == "docker"


def test_a_backend_that_does_not_work_is_said_before_anything_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")
    asked: dict[str, Any] = {"rows": rows("print(True)"), "generation__enabled": False, "reward__function_path": PATH}
    with pytest.raises(SandboxUnavailableError, match="docker"):
        EvaluationPipeline(config(tmp_path, **asked, sandbox__backend="docker")).run()
    assert not results(tmp_path)


def test_a_composite_hands_its_parts_what_it_was_handed(resources: dict[str, Any]) -> None:
    class Seen(PythonByCommands):
        used = 0

        async def run(self, *arguments: Any, **options: Any) -> Any:
            Seen.used += 1
            return await super().run(*arguments, **options)

    sandbox = resources["sandbox"]
    python = Seen(lambda limits: sandbox(limits=limits), loop=sandbox.loop)
    whole = composite({"code": "local_code_execution_reward", "tests": PATH})
    result = whole(messages=answer("print(1)"), ground_truth="1", sandbox=sandbox, isolated_python=python)
    assert (result.score, Seen.used) == (1.0, 2)


def test_a_column_does_not_stand_in_for_the_sandbox() -> None:
    """Not even where nothing is handed over, as in a trainer."""
    require_zygote()
    columns = {"sandbox": "a column", "isolated_python": "a column"}
    call, rollout = RewardCall(PATH), Rollout.of_conversation(answer("print(True)"), "True", columns)
    assert call.judge(call.arguments_of([rollout])).score == 1.0
