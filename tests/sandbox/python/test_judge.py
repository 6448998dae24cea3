# SPDX-License-Identifier: Apache-2.0
"""Test programs that judge code in another process: they see it as their own, and it never sees them."""

from __future__ import annotations

import sys

import pytest

from reward_kit.sandbox.isolated_python import JudgeOutcome
from reward_kit.sandbox.python.pool import PythonZygote

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform != "linux", reason="zygotes need Linux"),
]

CODE = '''
import collections, datetime, decimal, fractions, math
LIMIT = 10
class TooMuch(ValueError):
    """More than the limit."""
class Stack:
    def __init__(self, *items): self.items = list(items)
    def push(self, item): self.items.append(item); return self
    def pop(self): return self.items.pop()
    def __len__(self): return len(self.items)
    def __eq__(self, other): return self.items == other.items
    def __contains__(self, item): return item in self.items
    def __iter__(self): return iter(self.items)
    def __add__(self, other): return Stack(*self.items, *other.items)
    def __repr__(self): return f"Stack{tuple(self.items)}"
    def __enter__(self): return self
    def __exit__(self, *_): self.items.clear()
def double(x, times=1):
    if x > LIMIT: raise TooMuch(f"{x} is too much")
    return x * 2 ** times
def sort(items): items.sort()
def countdown(n):
    while n:
        yield n
        n -= 1
def pair(x): return x, {x: [x]}
def find(text): import re; return re.search('b', text)
class Metres:
    def __init__(self, n): self.n = n
    def __add__(self, other): return Metres(self.n + (other.n if isinstance(other, Metres) else other))
    def __eq__(self, other): return self.n == other.n
    def __float__(self): return float(self.n)
    def __iter__(self): return iter([self.n])
def metres(n): return Metres(n)
def longest(many): return max(many, key=lambda each: each.n)
def total(named): return sum(each.n for each in named.values())
def half(n): return fractions.Fraction(n, 2)
def tenth(n): return decimal.Decimal(n) / 10
def after(day): return day + datetime.timedelta(days=1)
def rotated(items): items = collections.deque(items); items.rotate(1); return items
def ends(): raise StopIteration("no more")
class Solution:
    def double(self, x): return 2 * x
'''


HOLDS = {
    "values": "assert double(2) == 4 and double(2, times=3) == 16",
    "tuples and dicts": "assert pair(1) == (1, {1: [1]})",
    "constants": "assert LIMIT == 10",
    "exceptions": "try: double(11)\nexcept TooMuch as e: assert str(e) == '11 is too much'\nelse: assert False",
    "their parents": "try: double(11)\nexcept ValueError: pass\nelse: assert False",
    "changed arguments": "items = [2, 1]; sort(items); assert items == [1, 2]",
    "generators": "assert list(countdown(3)) == [3, 2, 1] and next(countdown(5)) == 5",
    "objects": "s = Stack(1).push(2); assert len(s) == 2 and s.pop() == 2 and list(s) == [1] and s.items == [1]",
    "objects compared": "assert Stack(1) == Stack(1) and Stack(1) != Stack(2) and Stack(1) + Stack(2) == Stack(1, 2)",
    "members": "assert 1 in Stack(1) and 2 not in Stack(1)",
    "kinds": "assert isinstance(Stack(), Stack) and not isinstance(1, Stack)",
    "texts": "assert repr(Stack(1, 2)) == 'Stack(1, 2)'",
    "contexts": "s = Stack(1)\nwith s: assert len(s) == 1\nassert len(s) == 0",
    "truth": "assert find('abc') and not find('x')",
    "attributes that are set": "s = Stack(1); s.items = [7]; assert s.pop() == 7",
    "its modules": "assert math.sqrt(4) == 2 and collections.Counter('aa') == {'a': 2}",
    "a loop": "for n in range(5):\n    assert double(n) == 2 * n",
    "a helper": "def twice(n): return n + n\nassert double(3) == twice(3)",
    "functions": "def test_a(): assert double(1) == 2\ndef test_b(): assert double(2) == 4",
    "objects and numbers": "assert float(Metres(1) + 2) == 3.0 and list(Metres(1) + 2) == [3]",
    "objects that functions return": "assert metres(1) + 2 == Metres(3)",
    "objects in lists": "assert longest([Metres(1), Metres(3), Metres(2)]).n == 3 and total({'a': Metres(4)}) == 4",
    "fractions": "assert half(4) == 2 and half(1) == 0.5 and half(1) < 1",
    "decimals": "import decimal\nassert tenth(5) == decimal.Decimal('0.5') and tenth(20) == 2",
    "dates": "import datetime\nassert after(datetime.date(2024, 2, 28)) == datetime.date(2024, 2, 29)",
    "deques": "import collections\nassert rotated([1, 2, 3]) == collections.deque([3, 1, 2])",
    "a generator's end": "g = countdown(1); next(g)\ntry: next(g)\nexcept StopIteration: pass\nelse: assert False",
    "raises by hand": "import sys\nif double(1) != 2: raise SystemExit(1)",
}


@pytest.mark.parametrize("name", HOLDS)
async def test_what_holds_in_one_process_holds_in_two(zygotes: PythonZygote, name: str) -> None:
    namespace = {"__name__": "one"}
    exec(CODE + "\n" + HOLDS[name], namespace)
    outcome = await zygotes.judge(CODE, [HOLDS[name]])
    assert outcome.ok, outcome


@pytest.mark.parametrize(
    "test",
    [
        "assert double(2) == 5",
        "assert double(2) != 4",
        "double(11)",
        "assert Stack(1) == Stack(2)",
        "assert Stack(1) == 1",
        "assert Stack(4) > 3",
        "assert abs(Stack(1) - 1) < 2",
        "assert missing(1) == 1",
        "def test_a(): assert double(1) == 3",
        "raise SystemExit(1)",
    ],
)
async def test_what_does_not_hold_does_not(zygotes: PythonZygote, test: str) -> None:
    outcome = await zygotes.judge(CODE, [test])
    assert outcome.kind == "judged" and not outcome.ok, outcome


async def test_each_test_has_its_verdict(zygotes: PythonZygote) -> None:
    tests = ["assert double(1) == 2", "assert double(1) == 3", "assert double(2) == 4"]
    outcome = await zygotes.judge(CODE, tests)
    assert [(name, error is None) for name, error in outcome.verdicts] == [
        ("test 1", True), ("test 2", False), ("test 3", True)
    ]  # fmt: skip
    assert len((await zygotes.judge(CODE, tests, stop_early=True)).verdicts) == 2


async def test_a_check_is_given_the_candidate(zygotes: PythonZygote) -> None:
    test = "def check(candidate):\n    assert [candidate(n) for n in range(3)] == [0, 2, 4]\n"
    assert (await zygotes.judge(CODE, [test], entry_point="double")).ok
    missing = await zygotes.judge(CODE, [test], entry_point="triple")
    assert "'triple'" in str(missing.verdicts)


async def test_a_setup_is_beside_the_tests_and_not_beside_the_code(zygotes: PythonZygote) -> None:
    setup = "def helper(x): return x == 4\nSECRET = 'x' * 3"
    forging = "def helper(x): return True\ndef double(x): return 0\nSECRET = None"
    assert (await zygotes.judge(CODE, ["assert helper(double(2))"], setup=setup)).ok
    assert not (await zygotes.judge(forging, ["assert helper(double(2))"], setup=setup)).ok
    spying = "def double(x): return SECRET"
    assert "NameError" in str((await zygotes.judge(spying, ["assert double(2) == 'xxx'"], setup=setup)).verdicts)


async def test_a_module_of_any_name_is_the_code(zygotes: PythonZygote) -> None:
    test = "import answer\nfrom answer import double\nfrom answer import *\nassert answer.double(1) == double(1) == 2"
    assert (await zygotes.judge(CODE, [test], modules=["answer", "json"])).ok
    test = "import json\nfrom src.deep.answer import double\nassert json.dumps(double(1)) == '2'"
    assert (await zygotes.judge(CODE, [test], modules=["src.deep.answer", "json"])).ok


@pytest.mark.parametrize(
    "test",
    [
        "assert math.isclose(f(1), 1)",
        "from solution import *\nassert abs(f(1) - 1) < 1e-6",
        "from solution import *\nassert math.isclose(f(1), 1)",
        "import math\nfrom solution import *\nassert math.isclose(f(1), 1)",
        "assert isinstance(f(1), str)",
        "assert sorted([f(1)]) == [1]",
    ],
)
async def test_the_code_cannot_change_what_tests_mean(zygotes: PythonZygote, test: str) -> None:
    code = """
class Yes:
    def __getattr__(self, name): return lambda *a, **k: True
math = np = Yes()
def abs(x): return 0
def isinstance(*a): return True
def sorted(x): return [1]
def f(x): return -5
"""
    outcome = await zygotes.judge(code, [test])
    assert outcome.kind == "judged" and not outcome.ok


FITTING = """
class {name}:
    def __init__(self, *a): pass
    def __sub__(self, other): return self
    __rsub__ = __add__ = __truediv__ = __mod__ = __sub__
    def __float__(self): return 0.0
    def __int__(self): return 0
    def __len__(self): return 0
    def __bool__(self): return False
    def __iter__(self): return iter(())
    def __str__(self): return "0"
def f(x): return {name}()
"""


@pytest.mark.parametrize("name", ["math", "fabs", "Near", "difference"])
@pytest.mark.parametrize(
    "test",
    [
        "import math\nfor x in [1, 2]: assert math.fabs(f(x) - x) < 1e-6",
        "import math\nfor x in [1, 2]: assert math.isclose(f(x) - x, 0, abs_tol=1e-6)",
        "for difference in [1, 2]: assert not f(difference) - difference",
        "Near = 1\nassert int(f(1) - Near) == 0 and float(f(1) - 1) == 0",
        "Near = {1}\nassert len(f(1) - Near) == 0",
        "Near = 3\nassert str(f(1) - 3) == '0' and list(f(1) - 3) == []",
    ],
)
async def test_an_object_cannot_be_made_to_fit(zygotes: PythonZygote, name: str, test: str) -> None:
    outcome = await zygotes.judge(FITTING.format(name=name), [test])
    assert outcome.kind == "judged" and not outcome.ok, outcome


async def test_a_class_in_place_of_a_function_fits_nothing(zygotes: PythonZygote) -> None:
    test = "import math\nfor x in [1, 2]: assert math.fabs(f(x) - x) < 1e-6"
    outcome = await zygotes.judge(FITTING.partition("def f")[0].format(name="f"), [test])
    assert outcome.kind == "judged" and not outcome.ok, outcome


async def test_an_exception_does_not_end_a_loop_of_the_test(zygotes: PythonZygote) -> None:
    outcome = await zygotes.judge(CODE, ["assert all(map(lambda n: ends() == n, [1, 2]))"])
    assert outcome.kind == "judged" and not outcome.ok, outcome


TAMPERING = """
import gc
def double(x): return -1
for each in gc.get_objects():
    if type(each).__name__ == '_Objects':
        kind, answer = type(each), type(each).answer
"""


@pytest.mark.parametrize(
    "tampering",
    [
        "kind._names = lambda self: {'double': 5}",
        "kind._names = lambda self: {'double': ['exception', []]}",
        "kind._names = lambda self: {'double': ['exception', ['a b', 'object']]}",
        "kind._names = lambda self: {'double': ['module', '']}",
        "kind._names = lambda self: 1 / 0",
        "kind.answer = lambda self, request: ['h', 10**30, {'type': [], 'class': 1, 'constructed': 1}]",
        "kind.answer = lambda self, request: ['x', ['OSError'], [1, 2, 3, 4, 5], '']",
        "kind.answer = lambda self, r: ['v', 2, {99: 1}] if r[0] == 'call' else answer(self, r)",
        "import types; double = types.ModuleType('__main__')",
        "class Odd(type):\n    def mro(cls): return [cls, BaseException, object]\n"
        "class E(BaseException, metaclass=Odd): pass",
    ],
)
@pytest.mark.parametrize("test", ["assert double(1) == 2", "from solution import double\nassert double(1) == 2"])
async def test_what_the_code_says_of_itself_never_prevents_a_verdict(
    zygotes: PythonZygote, tampering: str, test: str
) -> None:
    outcome = await zygotes.judge(TAMPERING + tampering, [test])
    assert outcome.kind == "judged" and not outcome.ok, outcome


async def test_a_setup_that_needs_the_code_is_the_codes_affair(zygotes: PythonZygote) -> None:
    missing = await zygotes.judge(CODE, ["assert other(1) == 2"], setup="from solution import other")
    assert missing.kind == "judged" and not missing.ok
    assert (await zygotes.judge(CODE, ["assert twice(1) == 2"], setup="from solution import double as twice")).ok
    assert (await zygotes.judge(CODE, ["assert double(1) == 2"], setup="import no_such_module")).kind == "unjudgeable"


@pytest.mark.parametrize("test", ["def check(candidate): assert candidate(x=2) == 4", "assert double(x=2) == 4"])
async def test_an_entry_point_may_be_a_method(zygotes: PythonZygote, test: str) -> None:
    code = CODE.replace("def double(x, times=1):", "def other(x, times=1):")
    assert (await zygotes.judge(code, [test], entry_point="Solution().double")).ok
    assert not (await zygotes.judge("", [test], entry_point="Solution().double")).ok


async def test_a_function_may_be_called_as_a_module_is(zygotes: PythonZygote) -> None:
    assert (await zygotes.judge("def bisect(x): return x + 1", ["assert bisect(1) == 2"])).ok


@pytest.mark.parametrize(
    "test",
    ["assert (", "", "x = 1", "raise SystemExit(0)", "assert double(object())", "def test_a(): double(object())"],
)
async def test_what_is_no_test_judges_nothing(zygotes: PythonZygote, test: str) -> None:
    assert (await zygotes.judge(CODE, [test])).kind == "unjudgeable"


async def test_unittest_and_pytest(zygotes: PythonZygote) -> None:
    by_unittest = """
import unittest
from solution import double, TooMuch
class Tests(unittest.TestCase):
    def setUp(self): self.two = 2
    def test_right(self): self.assertEqual(double(self.two), 4)
    def test_raises(self):
        with self.assertRaises(TooMuch): double(99)
    def test_wrong(self): self.assertEqual(double(2), 5)
"""
    assert sum(error is None for _, error in (await zygotes.judge(CODE, [by_unittest])).verdicts) == 2
    by_pytest = """
import pytest
from solution import double, TooMuch
@pytest.fixture
def two(): return 2
def test_right(two): assert double(two) == 4
@pytest.mark.parametrize("n", [1, 2])
def test_many(n): assert double(n) == pytest.approx(2 * n)
def test_raises():
    with pytest.raises(TooMuch, match="too much"): double(99)
def test_wrong(): assert double(2) == 5
"""
    outcome = await zygotes.judge(CODE, [by_pytest])
    if outcome.kind == "unjudgeable":
        pytest.skip(outcome.error)
    assert [error is None for _, error in outcome.verdicts] == [True, True, True, True, False]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("def f(): \n    while True: pass", "judged timed_out"),
        ("import time\ndef f(): time.sleep(60)", "timed_out"),
        ("import os\ndef f(): os._exit(0)", "judged"),
        ("import os\nos._exit(0)", "judged"),
        ("raise SystemExit(0)", "judged"),
        ("1 / 0", "judged"),
        ("def f(", "judged"),
        ("x = []\nwhile True: x.append(bytearray(1 << 24))", "judged died"),
    ],
)
async def test_code_that_never_answers_fails(zygotes: PythonZygote, code: str, kind: str) -> None:
    outcome = await zygotes.judge(code, ["assert f() == 1"], timeout=1)
    assert outcome.kind in kind.split() and not outcome.ok
    if outcome.kind == "died":
        assert outcome.oom_killed


async def test_the_code_sees_neither_the_tests_nor_their_process(zygotes: PythonZygote) -> None:
    code = """
import glob, os
def look():
    seen = [os.listdir('/box'), os.listdir('/tmp')]
    for path in glob.glob('/proc/[0-9]*/*'):
        if path.startswith(f'/proc/{os.getpid()}/'): continue
        try:
            if os.path.isfile(path): seen.append(open(path, 'rb').read(1 << 16).decode(errors='replace'))
        except OSError: pass
    for pid in os.listdir('/proc'):
        if pid.isdigit() and int(pid) != os.getpid():
            for what in ('mem', 'environ', 'maps'):
                try: open(f'/proc/{pid}/{what}', 'rb').read(1); seen.append(f'{what} of {pid}')
                except OSError: pass
            try: seen.append(os.listdir(f'/proc/{pid}/fd'))
            except OSError: pass
    return repr(seen)
"""
    outcome: JudgeOutcome = await zygotes.judge(
        code, ["SECRET = 'swordfish'\nseen = look()\nassert 'swordfish' not in seen and ' of ' not in seen, seen"]
    )
    assert outcome.ok, outcome
