# SPDX-License-Identifier: Apache-2.0
"""The parts of the code rewards: finding code, reading tests, comparing, taking asserts apart; E2B by a stand-in."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import sys
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.answers.code import code_blocks, find_code
from reward_kit.errors import MissingExtraError
from reward_kit.rewards._code.cases import (
    CallTests,
    GroundTruthError,
    ProgramTests,
    StdinTests,
    read_tests,
)
from reward_kit.rewards._code.compare import OutputComparison, same_output, same_value, similarity
from reward_kit.rewards._code.programs import take_apart
from reward_kit.rewards.code_execution import e2b_code_execution_reward, fractional_code_reward
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from tests.growth import growth_of_time
from tests.rewards.code_parts import answer

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


# ── finding code ─────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(st.sampled_from(["python", "js", ""]), st.text("ab \n`~", max_size=20)), max_size=4))
def test_blocks_come_out_as_they_went_in(blocks: list[tuple[str, str]]) -> None:
    text = "".join(f"Words.\n``````{language}\n{code}\n``````\n" for language, code in blocks)
    expected = [
        (language, "\n".join(code.splitlines()).strip("\n")) for language, code in blocks if "``````" not in code
    ]
    if all("``````" not in code for _, code in blocks):
        assert [(block.language, block.code) for block in code_blocks(text)] == expected


@given(st.text("`~\npython x=1", max_size=300))
def test_any_text_has_code_or_none(text: str) -> None:
    assert find_code(text) is None or isinstance(find_code(text), str)


@pytest.mark.parametrize("part", ["```", "```python\n", "`", "<think>", "~~~\n`", "def f(", "(" * 9, " \n"])
def test_a_long_answer_takes_no_longer_than_it_is_long(part: str) -> None:
    """Eight times the text may take some eight times the work; a quadratic pass takes 64."""
    work = growth_of_time(lambda size: find_code(part * size, "python", "f"), 2_000, times=8, at_least=0.002)
    assert work < 30


# ── reading tests ────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(st.lists(plain, min_size=1, max_size=3), plain), min_size=1, max_size=3))
def test_values_written_as_json_are_read_as_they_were(cases: list[tuple[list[Any], Any]]) -> None:
    written = [
        {"input": "\n".join(map(json.dumps, given)), "expected_output": json.dumps(expected)}
        for given, expected in cases
    ]
    tests = read_tests(json.dumps(written), "f")
    assert isinstance(tests, CallTests)
    assert [(list(arguments), expected) for arguments, expected in tests.cases] == cases


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("1 2", (1, 2)),
        ("1, 2", (1, 2)),
        ('"listen" "silent"', ("listen", "silent")),
        ("'it is' 3", ("it is", 3)),
        ("[1, 2] [3]", ([1, 2], [3])),
        ("[1, 2], 3\ntrue", ([1, 2], 3, True)),
        ('{"a b": [1, 2]} "c, d" None', ({"a b": [1, 2]}, "c, d", None)),
        ("(1, 2)", ((1, 2),)),
        ("(1, 2), 3", ((1, 2), 3)),
        ('"say \\"a b\\" twice" 2', ('say "a b" twice', 2)),
        ("1 + 2j", (1 + 2j,)),
        ("[1,\n 2]", ([1, 2],)),
        ("-5 1e3", (-5, 1000.0)),
        ("", ()),
    ],
)
def test_arguments_stand_one_or_several_in_a_line(text: str, arguments: tuple[Any, ...]) -> None:
    tests = read_tests([{"input": text, "expected_output": "0"}], "f")
    assert tests == CallTests("f", ((arguments, 0),))


def test_shapes() -> None:
    assert read_tests([{"input": "1", "output": "2"}]) == StdinTests((("1", "2"),))
    assert read_tests([{"input": "(1, 2)\n{3}", "expected_output": "None"}], "f") == CallTests(
        "f", ((((1, 2), {3}), None),)
    )
    assert read_tests([{"input": [1, 2], "expected_output": 3}], "f") == CallTests("f", (((1, 2), 3),))
    assert read_tests([{"input": "1", "output": "2", "metadata": {"func_name": "g"}}]) == CallTests("g", (((1,), 2),))
    assert read_tests({"test": "assert f(1)", "entry_point": "f"}) == ProgramTests(("assert f(1)",), "f")
    mbpp = {"test_list": ["assert f(1)", "assert f(2)"], "test_setup_code": "import math"}
    assert read_tests(mbpp) == ProgramTests(("assert f(1)", "assert f(2)"), None, "import math")
    assert read_tests("assert f(1) == 2") == ProgramTests(("assert f(1) == 2",))


@pytest.mark.parametrize("bad", [None, 1, "", "x y", [], {}, [1], ["x y"], {"a": 1}, {"test": [1]}, [{"input": 1}]])
def test_what_is_no_test_is_an_error(bad: Any) -> None:
    with pytest.raises(GroundTruthError, match="Give"):
        read_tests(bad)


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(plain)
def test_a_value_is_itself_and_nothing_else(value: Any) -> None:
    assert same_value(value, value)
    assert not same_value(value, [value])
    assert same_value(json.loads(json.dumps(value)), value)


@given(st.lists(st.text("ab1.0", min_size=1), max_size=5), st.sampled_from([" ", "\n", "\t\n "]))
def test_white_space_only_separates(tokens: list[str], space: str) -> None:
    assert same_output(" ".join(tokens), space.join(tokens) + space)
    assert not same_output(" ".join(tokens), space.join([*tokens, "z"]))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("3", "3.0", True),
        ("2.50", "2.5", True),
        ("1e3", "1000.0", True),
        ("007", "7", False),
        ("1. Item 1", "1 Item 1", False),
        ("2.", "2.0", False),
        (".5", "0.5", True),
        ("3", "\uff13", False),
        ("3", "3\u200b", False),
        ("0.1", "0.10000001", False),
        ("nan", "NaN", False),
        ("1" * 500, "1" * 499 + "2", False),
        ("yes", "Yes", False),
    ],
)
def test_numbers_in_outputs(one: str, other: str, same: bool) -> None:
    assert same_output(one, other) is same_output(other, one) is same


def test_lines_and_exact_outputs() -> None:
    assert not same_output(" *\n***", "*\n***", OutputComparison("lines")) and same_output(
        "a \nb\n", "a\nb", OutputComparison("lines")
    )
    assert not same_output("a\n", "a", OutputComparison("exact"))


@given(st.text(max_size=30), st.text(max_size=30))
def test_similarity_is_one_only_for_equals(one: str, other: str) -> None:
    assert 0.0 <= similarity(one, other) <= 1.0
    assert (similarity(one, other) == 1.0) == (one == other)
    assert similarity(one, other) == similarity(other, one)


# ── asserts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

literals = plain.filter(lambda value: "inf" not in repr(value)).map(repr)


@given(literals, literals, literals, st.sampled_from(["==", "!=", "<", "in", "is not None and 1 =="]))
def test_a_check_means_what_python_means(argument: str, expected: str, returned: str, op: str) -> None:
    source = f"assert f({argument}) {op} {expected}"
    taken = take_apart((source,), None)
    if taken is None:
        assert "and" in op
        return
    function, (check,) = taken
    value = ast.literal_eval(returned)
    assert (function, check.calls) == ("f", ((ast.literal_eval(argument),),))
    try:
        exec(source, {"f": lambda _: value})
        passes = True
    except (AssertionError, TypeError):
        passes = False
    assert check.holds([value]) is passes


@pytest.mark.parametrize(
    ("test", "values", "holds"),
    [
        ("assert abs(f(1) - 0.3) < 1e-6", [0.1 + 0.2], True),
        ("assert set(f([1])) == {1, 2}", [[2, 1, 1]], True),
        ("assert f(f_x := 1) == 1", None, None),
        ("assert f(1) == f(2)", [3, 3], True),
        ("assert math.isclose(f(2), 1.41, abs_tol=0.01)", [1.414], True),
        ("assert f(1) is True", [1], False),
        ("assert f([0] * 5) == [0] * 5", [[0] * 5], True),
        ("assert f([0] * 10 ** 9) == 1", None, None),
        ("assert f(2 ** 10 ** 9)", None, None),
        ("for x in range(3):\n    assert f(x) == x", None, None),
        ("assert f(open('/etc/passwd').read())", None, None),
        ("assert f(1) == 1, print('x')", [1], True),
        ("x = 1\nassert f(x) == 1", None, None),
        ("assert f(g(1)) == 1", None, None),
    ],
)
def test_what_is_taken_apart_and_what_is_not(test: str, values: list[Any] | None, holds: bool | None) -> None:
    taken = take_apart((test,), None)
    assert (taken is None) is (values is None)
    if taken is not None:
        assert taken[1][0].holds(values or []) is holds


# ── E2B ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class CommandExitError(Exception):
    def __init__(self, stdout: str, stderr: str, exit_code: int) -> None:
        super().__init__(stderr)
        self.stdout, self.stderr, self.exit_code = stdout, stderr, exit_code


class FakeE2b(types.ModuleType):
    """The client of E2B as its documentation describes it, over processes of this machine. Keeps what it was asked."""

    class SandboxException(Exception):
        pass

    class TimeoutException(SandboxException):
        pass

    class AuthenticationException(Exception):
        pass

    CommandExitException = CommandExitError

    def __init__(self, directory: Any) -> None:
        super().__init__("e2b")
        self.directory = directory
        self.asked: list[str] = []
        self.keys: list[str | None] = []
        self.AsyncSandbox = self
        self.files = self.commands = self
        self.refuses = False

    async def create(self, *, timeout: int, allow_internet_access: bool, api_key: str | None = None) -> FakeE2b:
        if self.refuses:
            raise self.AuthenticationException("no such key")
        self.asked.append(f"create {allow_internet_access}")
        self.keys.append(api_key)
        return self

    async def write(self, path: str, data: bytes) -> None:
        self.asked.append(f"write {path}")
        place = self.directory / path.removeprefix("/home/user/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    async def run(self, cmd: str, *, cwd: str, timeout: float) -> types.SimpleNamespace:
        assert cwd == "/home/user"
        process = await asyncio.create_subprocess_shell(
            cmd, cwd=self.directory, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        code = process.returncode or 0
        if code:
            raise CommandExitError(out.decode(), err.decode(), code)
        return types.SimpleNamespace(stdout=out.decode(), stderr=err.decode(), exit_code=code)

    async def kill(self) -> bool:
        self.asked.append("kill")
        return True


@pytest.fixture
def e2b(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> FakeE2b:
    fake = FakeE2b(tmp_path)
    monkeypatch.setitem(sys.modules, "e2b", fake)
    return fake


def test_e2b_by_output(e2b: FakeE2b) -> None:
    assert e2b_code_execution_reward(messages=answer("print(6 * 7)"), ground_truth="42").score == 1.0
    assert e2b.asked[0] == "create False" and e2b.asked[-1] == "kill"
    assert e2b_code_execution_reward(messages=answer("1 / 0"), ground_truth="42").score == 0.0


def test_e2b_is_called_with_the_key_that_was_given(e2b: FakeE2b) -> None:
    e2b_code_execution_reward(messages=answer("print(1)"), ground_truth="1", api_key="mine")
    e2b_code_execution_reward(messages=answer("print(1)"), ground_truth="1")
    tests = [{"input": "1", "expected_output": "1"}]
    for reward in (fractional_code_reward, deepcoder_code_reward):
        reward(messages=answer("print(input())"), ground_truth=tests, environment="e2b", api_key="mine")
    assert e2b.keys == ["mine", None, "mine", "mine"]


def test_e2b_by_tests(e2b: FakeE2b) -> None:
    tests = [{"input": "2", "expected_output": "[2, 2]"}, {"input": "3", "expected_output": "[3]"}]
    result = fractional_code_reward(
        messages=answer("def f(x):\n    print('noise')\n    return (x, x)"),
        ground_truth=tests,
        environment="e2b",
        function_to_call="f",
    )
    assert result.score == 0.5, result.reason
    objects = [{"input": '{"a": [1]}', "expected_output": "1"}]
    by_object = fractional_code_reward(
        messages=answer("def f(x): return x['a'][0]"), ground_truth=objects, environment="e2b", function_to_call="f"
    )
    assert by_object.score == 1.0, by_object.reason
    by_input = [{"input": "2\n", "expected_output": "4"}]
    result = fractional_code_reward(
        messages=answer("print(int(input()) * 2)"), ground_truth=by_input, environment="e2b"
    )
    assert result.score == 1.0, result.reason
    everything = b"".join(path.read_bytes() for path in e2b.directory.rglob("*") if path.is_file())
    assert b"[2, 2]" not in everything
    program = "def check(candidate):\n    for n in range(3):\n        assert candidate(n) == 2 * n\n"
    by_program = fractional_code_reward(
        messages=answer("def f(x): return x + x"), ground_truth=program, environment="e2b", entry_point="f"
    )
    assert by_program.score == 1.0, by_program.reason


def test_e2b_that_fails_judges_nothing(e2b: FakeE2b) -> None:
    e2b.refuses = True
    result = e2b_code_execution_reward(messages=answer("print(1)"), ground_truth="1")
    assert not result.is_score_valid and "E2B_API_KEY" in (result.reason or "")


def test_e2b_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "e2b", None)
    result = e2b_code_execution_reward(messages=answer("print(1)"), ground_truth="1")
    assert not result.is_score_valid and str(MissingExtraError("x", "e2b"))[2:] in (result.reason or "")


def test_the_stand_in_has_the_signatures_of_the_real_client() -> None:
    real: Any = pytest.importorskip("e2b")
    opening = {"timeout": 1, "allow_internet_access": False, "api_key": "k"}
    inspect.signature(real.AsyncSandbox.create).bind(**opening)
    for name in ("CommandExitException", "TimeoutException"):
        assert issubclass(getattr(real, name), real.SandboxException)
    assert issubclass(real.AuthenticationException, Exception)
    assert {"stdout", "stderr", "exit_code"} <= set(inspect.signature(real.CommandExitException).parameters)
