# SPDX-License-Identifier: Apache-2.0
"""No test finds what an earlier one left, and none is judged twice, whether tests share a process or not."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from reward_kit.rewards._code.state import may_keep_state
from reward_kit.rewards.code_execution import fractional_code_reward
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from tests.rewards.code_parts import answer, require_zygote


@pytest.fixture
def a_zygote() -> None:
    require_zygote()


KEEPING = {
    "a list of the module": "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)",
    "a table that is changed": "N = {}\ndef f(x):\n    N[len(N)] = x\n    return len(N)",
    "a table by another name": "N = [0]\ndef f(x):\n    n = N\n    n[0] += 1\n    return n[0]",
    "a table that is handed on": "N = [0]\ndef f(x):\n    for n in (N,): n[0] += 1\n    return N[0]",
    "a default": "def f(x, seen=[]):\n    seen.append(x)\n    return len(seen)",
    "a default of a lambda": "f = lambda x, seen=[]: seen.append(x) or len(seen)",
    "a global": "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n",
    "an attribute of the function": "def f(x):\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n",
    "an attribute by its own name": "def f(x):\n    f.n += 1\n    return f.n\nf.n = 0",
    "a class": "class N: n = 0\ndef f(x):\n    N.n += 1\n    return N.n",
    "a class handed on": "class N: n = 0\ndef g(c):\n    c.n += 1\n    return c.n\ndef f(x): return g(N)",
    "a class by type": "class N: n = 0\ndef f(x):\n    k = type(N())\n    k.n += 1\n    return k.n",
    "a class method": (
        "class N:\n    n = 0\n    @classmethod\n    def up(k):\n        k.n += 1\n"
        "        return k.n\ndef f(x): return N.up()"
    ),
    "a closure": (
        "def made():\n    n = 0\n    def g(x):\n        nonlocal n\n        n += 1\n"
        "        return n\n    return g\nf = made()"
    ),
    "a cache": (
        "import functools\nn = iter(range(1, 99))\n@functools.cache\ndef g(x): return next(n)\ndef f(x): return g(x)"
    ),
    "a generator": "import itertools\nn = itertools.count(1)\ndef f(x): return next(n)",
    "a module": "import math\nmath.n = 0\ndef f(x):\n    math.n += 1\n    return math.n",
    "a module by another name": "import string as s\ndef f(x):\n    s.digits += '.'\n    return s.digits.count('.')",
    "builtins": "import builtins\nbuiltins.n = 0\ndef f(x):\n    builtins.n += 1\n    return builtins.n",
    "its own dictionary": "n = 0\ndef f(x):\n    globals()['n'] += 1\n    return n",
    "a file": "def f(x):\n    open('n', 'a').write('.')\n    return len(open('n').read())",
    "a file elsewhere": (
        "import os\ndef f(x):\n    os.makedirs('/tmp/n', exist_ok=True)\n"
        "    open('/tmp/n/' + str(len(os.listdir('/tmp/n'))), 'w')\n"
        "    return len(os.listdir('/tmp/n'))"
    ),
    "the environment": (
        "import os\ndef f(x):\n    os.environ['n'] = os.environ.get('n', '') + '.'\n    return len(os.environ['n'])"
    ),
    "an array": "import numpy as np\nn = np.zeros(1)\ndef f(x):\n    n[0] += 1\n    return int(n[0])",
}
"""How often it was called, by every way of keeping count: always 1 where no test finds what an earlier one left."""
FREE = {
    "a function": "def f(x): return x * x",
    "a method": (
        "from typing import List\nclass Solution:\n    def f(self, xs: List[int]) -> int:\n"
        "        self.n = len(xs)\n        return self.n"
    ),
    "helpers and constants": (
        "import math\nMOD = 10**9 + 7\nINF = float('inf')\ndef g(x): return x % MOD\n"
        "def f(xs): return sorted(map(g, xs), key=lambda x: -x)"
    ),
    "linked nodes": (
        "class Node:\n    def __init__(self, v, next=None):\n"
        "        self.v, self.next = v, next\ndef f(head: Node):\n    node = Node(0)\n"
        "    node.next = head\n    return node"
    ),
    "tables of its own": (
        "def f(n):\n    dp = [0] * (n + 1)\n    for i in range(n):\n        dp[i] += 1\n    return dp"
    ),
    "a cache of its own": (
        "from functools import lru_cache\ndef f(n):\n    @lru_cache(None)\n"
        "    def g(k): return 1 if k < 2 else g(k - 1) + g(k - 2)\n    return g(n)"
    ),
    "tables": "ROMAN = {'I': 1, 'V': 5}\nSTEPS = [(0, 1), (1, 0)]\ndef f(s): return [ROMAN[c] for c in s for "
    "dx, dy in STEPS if c in ROMAN]",
    "a guarded main": "def f(x): return x\nif __name__ == '__main__':\n    seen = []\n    print(f(input()))",
}


@pytest.mark.parametrize("name", KEEPING)
def test_what_may_keep_something_is_seen(name: str) -> None:
    assert may_keep_state(KEEPING[name], program=False)


@pytest.mark.parametrize("name", FREE)
def test_what_keeps_nothing_shares_a_process(name: str) -> None:
    assert not may_keep_state(FREE[name], program=False)


def test_programs_begin_anew_and_keep_less() -> None:
    usual = (
        "import sys\ninput = sys.stdin.readline\nsys.setrecursionlimit(10**6)\nseen = []\n"
        "seen.append(input())\nprint(*seen)"
    )
    assert not may_keep_state(usual, program=True)
    for code in (
        "x = 1\n" * 10_000,
        "import os\nprint(os.getpid())",
        "print(open('x').read())",
        "import sys\nsys.stdin = None",
        "1 +",
    ):
        assert may_keep_state(code, program=True), code


@pytest.mark.usefixtures("a_zygote")
@pytest.mark.parametrize("name", KEEPING)
def test_each_call_finds_the_code_as_it_was_loaded(name: str) -> None:
    tests = [{"input": "0", "expected_output": "1"}] * 3
    code = KEEPING[name]
    result = fractional_code_reward(messages=answer(code), ground_truth=tests, function_to_call="f")
    if "No module named 'numpy'" in (result.reason or ""):
        pytest.skip("the interpreter in the sandbox has no numpy")
    assert result.score == 1.0, result.reason


@pytest.mark.usefixtures("a_zygote")
@pytest.mark.parametrize("name", ["a global", "a file", "a cache"])
@pytest.mark.parametrize("tests", [["assert f(0) == 1"] * 3, ["assert f(0) == 1 and [f(n) for n in (1, 2)]"] * 3])
def test_each_assert_of_a_list_finds_the_code_as_it_was_loaded(name: str, tests: list[str]) -> None:
    result = fractional_code_reward(messages=answer(KEEPING[name]), ground_truth=tests)
    assert result.score == 1.0, result.reason


PROGRAM = "import os\nname = '{place}'\nopen(name, 'a').write('.')\nprint(len(open(name).read()))"


@pytest.mark.usefixtures("a_zygote")
@pytest.mark.parametrize("place", ["n", "/tmp/n", "main.py.n"])
def test_each_run_of_a_program_finds_an_empty_directory(place: str) -> None:
    tests = [{"input": "", "expected_output": "1"}] * 3
    result = fractional_code_reward(messages=answer(PROGRAM.format(place=place)), ground_truth=tests)
    assert result.score == 1.0, result.reason


COINS = {
    "shared": "import random\ndef f(x): return random.random() < 0.5",
    "in copies": "import random\nseen = []\ndef f(x):\n    seen.append(x)\n    return random.random() < 0.5",
    "its own generator": "import random\nown = random.Random()\ndef f(x): return own.random() < 0.5",
    "a program": "import random\nprint(random.choice(['true', 'false']))",
    "a program in copies": "import os, random\nprint(random.choice(['true', 'false']))",
}


@pytest.mark.usefixtures("a_zygote")
@pytest.mark.parametrize("name", COINS)
def test_a_coin_is_right_half_the_time(name: str) -> None:
    """Tried twice, it would be right in three of four."""
    chance = random.Random(7)
    count = 2000 if name in ("shared", "a program") else 150
    tests = [{"input": str(n), "expected_output": chance.choice(["true", "false"])} for n in range(count)]
    function = None if "program" in name else "f"
    result = fractional_code_reward(messages=answer(COINS[name]), ground_truth=tests, function_to_call=function)
    assert abs(result.score - 0.5) < 5.5 * math.sqrt(0.25 / count), result.reason


@pytest.mark.usefixtures("a_zygote")
def test_a_coin_rarely_passes_six_tests() -> None:
    """By turns, 1.6 of 100; tried twice, 18 of 100."""
    tests: list[dict[str, Any]] = [{"input": str(n), "expected_output": ["true", "false"][n % 2]} for n in range(6)]
    passed = [
        deepcoder_code_reward(messages=answer(COINS["shared"]), ground_truth=tests, target_function="f").score
        for _ in range(150)
    ]
    assert sum(passed) <= 12
