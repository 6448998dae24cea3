# SPDX-License-Identifier: Apache-2.0
"""Test programs of every shape: right code passes, wrong code does not, and what checks nothing judges nothing."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from reward_kit.models import EvaluateResult
from reward_kit.rewards.code_execution import fractional_code_reward
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from tests.rewards.code_parts import answer, require_zygote


@pytest.fixture(autouse=True)
def a_zygote() -> None:
    require_zygote()


def judged(code: str, tests: Any, **options: Any) -> EvaluateResult:
    tests = textwrap.dedent(tests) if isinstance(tests, str) else tests
    result = deepcoder_code_reward(messages=answer(code), ground_truth=tests, timeout=3, max_memory_mb=256, **options)
    if "the tests need pytest" in (result.reason or ""):
        pytest.skip(str(result.reason))
    return result


def verdict(result: EvaluateResult) -> float | None:
    return result.score if result.is_score_valid else None


RIGHT = "def double(n): return 2 * n\nasync def later(n): return 2 * n"
WRONG = "def double(n): return 2 if n == 1 else -1\nasync def later(n): return 2 if n == 1 else -1"
"""Right in the test that comes first, so that all depends on the others."""

FIRST = """
    import unittest
    from solution import *
    class First(unittest.TestCase):
        def test_first(self): self.assertEqual(double(1), 2)
"""

RUN = {
    "a second class": FIRST
    + """
    class Second(unittest.TestCase):
        def test_second(self): self.assertEqual(double(3), 6)""",
    "set up for the class": FIRST
    + """
    class Second(unittest.TestCase):
        @classmethod
        def setUpClass(cls): cls.six = 6; assert double(3) == 6
        def test_second(self): self.assertEqual(double(1), 2)""",
    "set up for the module": FIRST
    + """
    def setUpModule(): assert double(3) == 6""",
    "clearing up": FIRST
    + """
        def tearDown(self): assert double(3) == 6""",
    "clearing up after the class": FIRST
    + """
        @classmethod
        def tearDownClass(cls): assert double(3) == 6""",
    "clearing up after the module": FIRST
    + """
    def tearDownModule(): assert double(3) == 6""",
    "a cleanup": FIRST
    + """
        def setUp(self): self.addCleanup(lambda: self.assertEqual(double(3), 6))""",
    "sub-tests": FIRST
    + """
        def test_second(self):
            for n in (1, 3):
                with self.subTest(n=n): self.assertEqual(double(n), 2 * n)""",
    "async in a plain class": FIRST
    + """
        async def test_second(self): self.assertEqual(double(3), 6)""",
    "async in an async class": FIRST
    + """
    class Second(unittest.IsolatedAsyncioTestCase):
        async def asyncSetUp(self): self.n = 3
        async def test_second(self): self.assertEqual(await later(self.n), 6)""",
    "inherited": FIRST
    + """
    class Base:
        n = 1
        def test_second(self): self.assertEqual(double(self.n), 2 * self.n)
    class Second(Base, unittest.TestCase): n = 3""",
    "runTest": FIRST
    + """
    class Second(unittest.TestCase):
        def runTest(self): self.assertEqual(double(3), 6)""",
    "load_tests": FIRST
    + """
    def second(): assert double(3) == 6
    def load_tests(loader, tests, pattern):
        tests.addTest(unittest.FunctionTestCase(second)); return tests""",
    "load_tests that leaves some out": FIRST
    + """
        def test_second(self): self.assertEqual(double(3), 6)
    def load_tests(loader, tests, pattern): return unittest.TestSuite([First("test_first")])""",
    "unittest.main": FIRST
    + """
        def test_second(self): self.assertEqual(double(3), 6)
    unittest.main()""",
    "a guarded unittest.main": FIRST
    + """
        def test_second(self): self.assertEqual(double(3), 6)
    if __name__ == "__main__":
        unittest.main(verbosity=2)""",
    "unittest.main that returns": FIRST
    + """
        def test_second(self): self.assertEqual(double(3), 6)
    if __name__ == '__main__':
        unittest.main(argv=[''], exit=False)""",
    "main from unittest": """
    from unittest import TestCase, main
    from solution import double
    class Tests(TestCase):
        def test_it(self): self.assertEqual(double(3), 6)
    main()""",
    "a runner of its own": FIRST
    + """
        def test_second(self): self.assertEqual(double(3), 6)
    unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(First))""",
    "a guarded block": """
    def first(): assert double(1) == 2
    if __name__ == "__main__":
        first()
        assert double(3) == 6
        print("all passed")""",
    "functions that are called": """
    def run_tests():
        assert double(1) == 2
        assert double(3) == 6
    run_tests()""",
    "a main function": """
    def main():
        for n in (1, 3): assert double(n) == 2 * n
    if __name__ == "__main__": main()""",
    "a helper called like a test": """
    def test_case(n, expected):
        assert double(n) == expected, n
    test_case(1, 2)
    test_case(3, 6)""",
    "a table and a helper": """
    CASES = [(1, 2), (3, 6)]
    def test(given, expected): assert double(given) == expected
    for case in CASES: test(*case)""",
    "functions": """
    def test_first(): assert double(1) == 2
    def test_second(): assert double(3) == 6""",
    "async functions": """
    import asyncio
    async def test_first(): assert await later(1) == 2
    async def test_second(): assert await later(3) == 6""",
    "asyncio.run": """
    import asyncio
    assert asyncio.run(later(1)) == 2
    assert asyncio.run(later(3)) == 6""",
    "gather": """
    import asyncio
    async def main(): assert await asyncio.gather(later(1), later(3)) == [2, 6]
    asyncio.run(main())""",
    "partial functions": """
    import functools
    def run_case(n, expected): assert double(n) == expected
    test_first = functools.partial(run_case, 1, 2)
    test_second = functools.partial(run_case, 3, 6)""",
    "callable objects": """
    class Case:
        def __init__(self, n): self.n = n
        def __call__(self): assert double(self.n) == 2 * self.n
    test_first, test_second = Case(1), Case(3)""",
    "tests made by a decorator": """
    def quiet(function):
        def wrapper(): return function()
        return wrapper
    def test_first(): assert double(1) == 2
    @quiet
    def test_second(): assert double(3) == 6""",
    "a register of tests": """
    ALL = []
    def register(function): ALL.append(function); return function
    @register
    def first(): assert double(1) == 2
    @register
    def second(): assert double(3) == 6
    for each in ALL: each()""",
    "raising by hand": """
    if double(1) != 2 or double(3) != 6: raise ValueError("wrong")""",
    "leaving": """
    import sys
    for n in (1, 3):
        if double(n) != 2 * n: sys.exit(1)""",
    "a plain class": """
    class TestFirst:
        def test_first(self): assert double(1) == 2
    class TestSecond(object):
        def test_second(self): assert double(3) == 6""",
    "a class of a base": """
    class Base:
        def test_second(self): assert double(self.n) == 6
    class TestSecond(Base):
        n = 3
    class TestFirst:
        def test_first(self): assert double(1) == 2""",
    "a nested class": """
    class TestOuter:
        def test_first(self): assert double(1) == 2
        class TestInner:
            def test_second(self): assert double(3) == 6""",
    "setup_module": """
    SIX = []
    def setup_module(): SIX.append(6)
    def test_first(): assert double(1) == 2
    def test_second(): assert [double(3)] == SIX""",
    "setup_method": """
    class TestAll:
        def setup_method(self): self.n = 3
        def test_second(self): assert double(self.n) == 6""",
    "parametrized": """
    import pytest
    @pytest.mark.parametrize(("n", "expected"), [(1, 2), (3, 6)])
    def test_double(n, expected): assert double(n) == expected""",
    "fixtures": """
    import pytest
    @pytest.fixture(params=[1, 3])
    def n(request): yield request.param
    def test_double(n): assert double(n) == 2 * n""",
    "fixtures that check": """
    import pytest
    @pytest.fixture
    def six():
        yield 6
        assert double(3) == 6
    def test_double(six): assert six == 6 and double(1) == 2""",
    "marked as async": """
    import pytest
    from solution import later
    @pytest.mark.asyncio
    async def test_first(): assert await later(1) == 2
    @pytest.mark.asyncio
    async def test_second(): assert await later(3) == 6""",
    "pytest.main": """
    import pytest
    from solution import double
    def test_first(): assert double(1) == 2
    def test_second(): assert double(3) == 6
    if __name__ == "__main__": pytest.main([__file__])""",
    "sys.exit of pytest.main": """
    import pytest, sys
    from solution import double
    def test_all(): assert [double(1), double(3)] == [2, 6]
    sys.exit(pytest.main(["-v", __file__]))""",
    "unittest under pytest": """
    import unittest, pytest
    from solution import double
    class Second(unittest.TestCase):
        def test_second(self): self.assertEqual(double(3), 6)
    def test_first(): assert double(1) == 2""",
    "raises, and otherwise": """
    try: double()
    except TypeError: pass
    else: assert False
    assert double(3) == 6""",
    "a test that the program skips": FIRST
    + """
        @unittest.skip("not yet")
        def test_later(self): self.assertEqual(double(9), 0)
        def test_second(self): self.assertEqual(double(3), 6)""",
    "a test for another system": FIRST
    + """
        @unittest.skipIf(__import__("sys").platform != "win32", "for Windows")
        def test_later(self): self.assertEqual(double(9), 0)
        def test_second(self): self.assertEqual(double(3), 6)""",
    "a test that is expected to fail": FIRST
    + """
        @unittest.expectedFailure
        def test_later(self): self.assertEqual(double(9), 0)
        def test_second(self): self.assertEqual(double(3), 6)""",
}


@pytest.mark.parametrize("name", RUN)
def test_each_test_of_a_program_counts(name: str) -> None:
    tests = {"test": textwrap.dedent(RUN[name])}
    right, wrong = judged(RIGHT, tests), judged(WRONG, tests)
    assert verdict(right) == 1.0, right.reason
    assert verdict(wrong) == 0.0, wrong.reason


NEVER_RUN = {
    "a function that nobody calls": "assert double(1) == 2\ndef verify(): assert double(3) == 6",
    "only that": "def verify():\n    assert double(3) == 6\nprint('ok')",
    "a method that nobody calls": FIRST
    + """
        def should_double(self): self.assertEqual(double(3), 6)""",
    "a class that nobody uses": """
    assert double(1) == 2
    class Checks:
        def run(self): assert double(3) == 6""",
    "a generator": FIRST
    + """
        def test_second(self):
            yield
            self.assertEqual(double(3), 6)""",
    "a generator function": """
    def test_first(): assert double(1) == 2
    def test_second():
        yield double(3)
        assert double(3) == 6""",
    "a class of no test case": FIRST
    + """
    class Base(Exception):
        def test_second(self): assert double(3) == 6""",
    "a class in a test case": FIRST
    + """
        class Inner(unittest.TestCase):
            def test_second(self): self.assertEqual(double(3), 6)""",
    "a class with a constructor": """
    class TestFirst:
        def test_first(self): assert double(1) == 2
    class TestSecond:
        def __init__(self): self.n = 3
        def test_second(self): assert double(self.n) == 6""",
    "a decorator that drops it": """
    def drop(function): return None
    def test_first(): assert double(1) == 2
    @drop
    def test_second(): assert double(3) == 6""",
    "a decorator that does nothing": """
    def lazy(function): return lambda: None
    def test_first(): assert double(1) == 2
    @lazy
    def test_second(): assert double(3) == 6""",
    "a skip by the test": FIRST
    + """
        def test_second(self):
            self.skipTest("not here")
            self.assertEqual(double(3), 6)""",
    "a missing module": """
    import pytest
    numpy = pytest.importorskip("no_such_module_at_all")
    def test_second(): assert double(3) == 6""",
    "no cases": """
    import pytest
    @pytest.mark.parametrize("n", [])
    def test_second(n): assert double(n) == 6""",
    "an empty loop": "for n in []: assert double(n) == 2 * n",
    "a call and no check": "print(double(3))",
    "nothing": "x = 1\nimport math",
    "only what is skipped": """
    import unittest
    class Tests(unittest.TestCase):
        @unittest.skip("not yet")
        def test_it(self): self.assertEqual(double(3), 6)""",
    "only what is expected to fail": """
    import unittest
    class Tests(unittest.TestCase):
        @unittest.expectedFailure
        def test_it(self): self.assertEqual(double(3), 7)""",
    "a check without a candidate": "def check(candidate): assert candidate(3) == 6",
    "a fixture that is not there": """
    import pytest
    def test_second(numbers): assert double(3) == 6""",
}


@pytest.mark.parametrize("name", NEVER_RUN)
def test_a_program_in_which_something_is_never_run_judges_nothing(name: str) -> None:
    for code in (RIGHT, WRONG):
        result = judged(code, {"test": textwrap.dedent(NEVER_RUN[name])})
        assert verdict(result) is None and "Not judged" in str(result.reason), result.reason


LEFT_TO_THE_CODE = {
    "a condition of the module": """
    import unittest, solution
    class First(unittest.TestCase):
        def test_first(self): self.assertEqual(solution.double(1), 2)
    if getattr(solution, "READY", True):
        class Second(unittest.TestCase):
            def test_second(self): self.assertEqual(solution.double(3), 6)""",
    "a skip by its word": """
    import unittest, solution
    class All(unittest.TestCase):
        def test_first(self): self.assertEqual(solution.double(1), 2)
        @unittest.skipUnless(getattr(solution, "READY", True), "not ready")
        def test_second(self): self.assertEqual(solution.double(3), 6)""",
    "a skip in the test": """
    import unittest, solution
    class All(unittest.TestCase):
        def test_first(self): self.assertEqual(solution.double(1), 2)
        def test_second(self):
            if solution.double(3) != 6: self.skipTest("not ready")
            self.assertEqual(solution.double(3), 6)""",
    "a skip of the class": """
    import unittest, solution
    class First(unittest.TestCase):
        def test_first(self): self.assertEqual(solution.double(1), 2)
    class Second(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            if solution.double(3) != 6: raise unittest.SkipTest("not ready")
        def test_second(self): self.assertEqual(solution.double(3), 6)""",
    "a skip of pytest": """
    import pytest, solution
    def test_first(): assert solution.double(1) == 2
    def test_second():
        if solution.double(3) != 6: pytest.skip("not ready")
        assert solution.double(3) == 6""",
    "a failure of pytest that is allowed": """
    import pytest, solution
    def test_first(): assert solution.double(1) == 2
    def test_second():
        if solution.double(3) != 6: pytest.xfail("not ready")
        assert solution.double(3) == 6""",
    "its own cases": """
    import pytest, solution
    @pytest.mark.parametrize("n", getattr(solution, "CASES", [3]))
    def test_second(n): assert solution.double(n) == 2 * n
    def test_first(): assert solution.double(1) == 2""",
    "a loop over its cases": """
    import solution
    for n in getattr(solution, "CASES", [3]): assert solution.double(n) == 2 * n""",
    "a loop over its result": """
    def test_all():
        for given, expected in zip(pairs([1, 3]), [2, 6]): assert given == expected""",
    "only where it raises": """
    def test_error():
        try: double("x")
        except ValueError as error: assert str(error) == "no number"
    def test_first(): assert double(1) == 2""",
    "a decorator that asks it": """
    import solution
    def if_ready(function):
        def wrapper():
            if solution.double(3) == 6: function()
        return wrapper
    def test_first(): assert solution.double(1) == 2
    @if_ready
    def test_second(): assert solution.double(3) == 6""",
    "a guard of the program": """
    if ready():
        assert double(3) == 6""",
}
READY = """
READY = True
def ready(): return True
def pairs(ns): return [2 * n for n in ns]
def double(n):
    if n == "x": raise ValueError("no number")
    return 2 * n
"""
UNREADY = """
READY = False
CASES = []
def ready(): return False
def pairs(ns): return []
def double(n): return 2 if n == 1 else -1
"""


@pytest.mark.parametrize("name", LEFT_TO_THE_CODE)
def test_code_cannot_have_tests_left_out(name: str) -> None:
    right, hostile = judged(READY, LEFT_TO_THE_CODE[name]), judged(UNREADY, LEFT_TO_THE_CODE[name])
    assert verdict(right) == 1.0, right.reason
    assert verdict(hostile) == 0.0, hostile.reason


# ── objects that lie ─────────────────────────────────────────────────────────────────────────────────────────────────

LIARS = {
    "length": "def __len__(self): return 3\n    def __iter__(self): return iter(())",
    "a new face each time": """
    count = 0
    def __len__(self): return 2
    def __iter__(self):
        type(self).count += 1
        return iter([1, 2] if type(self).count % 2 else [3, 4])""",
    "everything, for ever": """
    def __iter__(self):
        n = 0
        while True: yield n; n += 1
    def __contains__(self, item): return True
    def __len__(self): return 3""",
    "equal to all": """
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __len__(self): return 3
    def __iter__(self): return iter([1, 2, 3])
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __lt__""",
    "an iterator": """
    n = 0
    def __iter__(self): return self
    def __next__(self): raise StopIteration
    def __len__(self): return 3
    def __contains__(self, item): return True""",
}
ABOUT_OBJECTS = {
    "length and items": """
    found = make()
    assert len(found) == 3
    for item in found: assert item in (7, 8, 9)""",
    "asked twice": """
    found = make()
    assert list(found) == [1, 2] and list(found) == [3, 4]""",
    "members": """
    import unittest
    class Tests(unittest.TestCase):
        def test_it(self):
            self.assertIn(5, make()); self.assertIn(77, make()); self.assertEqual(len(make()), 3)""",
    "equality": "assert make() == [7, 8, 9] and len(make()) == 3",
    "their own kind": "assert make() == Thing() and make() == Other()",
    "order": "from solution import Thing\nassert make() < Thing() and make() > Thing()",
    "a set of them": "assert set(make()) == {7, 8, 9}",
    "every one": "found = make()\nassert len(found) == 3 and all(item > 5 for item in found)",
    "a member of a made one": "from solution import Thing\nassert 5 in Thing() and len(list(make())) == 7",
    "made ones that are equal": "from solution import Thing, Other\nassert Thing() == Other() and len(make()) == 3",
}


@pytest.mark.parametrize("test", ABOUT_OBJECTS)
@pytest.mark.parametrize("lie", LIARS)
def test_an_object_that_contradicts_itself_fails(lie: str, test: str) -> None:
    code = f"class Thing:\n    {LIARS[lie].strip()}\nclass Other(Thing): pass\ndef make(): return Thing()"
    result = judged(code, ABOUT_OBJECTS[test])
    assert verdict(result) == 0.0, result.reason


HONEST = """
import dataclasses
class Bag:
    def __init__(self, items=()): self.items = list(items)
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __contains__(self, item): return item in self.items
    def __eq__(self, other): return isinstance(other, Bag) and self.items == other.items
    def __getitem__(self, place): return self.items[place]
    def __lt__(self, other): return len(self) < len(other)
    def __le__(self, other): return len(self) <= len(other)
    def add(self, item): self.items.append(item); return self
@dataclasses.dataclass
class Point:
    x: int
    y: int
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if not self.n: raise StopIteration
        self.n -= 1; return self.n + 1
def bag(*items): return Bag(items)
def points(n): return [Point(i, i) for i in range(n)]
def by_name(): return {"a": Point(1, 2)}
def naturals():
    n = 0
    while True: yield n; n += 1
def kind(x): return type(x)
"""


@pytest.mark.parametrize(
    "test",
    [
        "b = bag(1, 2); assert len(b) == 2; b.add(3); assert len(b) == 3 and list(b) == [1, 2, 3] and 3 in b",
        "from solution import Bag\nassert bag(1) == Bag([1]) and bag(1) != Bag([2]) and 1 in Bag([1])",
        "from solution import Bag\nassert Bag([1]) < Bag([1, 2]) and Bag([1]) <= Bag([1]) and Bag() == Bag()",
        "from solution import Point\nassert points(2) == [Point(0, 0), Point(1, 1)] and points(1)[0].x == 0",
        "from solution import Point\nassert by_name() == {'a': Point(1, 2)} and by_name()['a'].y == 2",
        "b = bag(1, 2)\nfor n in b:\n    if n < 3: b.add(n + 2) if len(b) < 4 else None\nassert list(b)[:2] == [1, 2]",
        "from itertools import islice\nassert list(islice(naturals(), 3)) == [0, 1, 2] and next(naturals()) == 0",
        "from solution import Countdown\nc = Countdown(3)\nassert next(c) == 3 and list(c) == [2, 1] and list(c) == []",
        "assert kind(1) is int and kind('') == str and kind(bag()).__name__ == 'Bag'",
        "b = bag(1, 2)\nassert [x for x in b] == [x for x in b] == [1, 2] and b[0] == 1 and bool(b)",
    ],
)
def test_an_object_that_does_not_lie_passes(test: str) -> None:
    result = judged(HONEST, {"test": test})
    assert verdict(result) == 1.0, result.reason


# ── dying, and names ─────────────────────────────────────────────────────────────────────────────────────────────────

RAISING = {
    "unittest": """
    import unittest
    from solution import f
    class Tests(unittest.TestCase):
        def test_it(self):
            with self.assertRaises(Exception): f(-1)""",
    "unittest, of any kind": """
    import unittest
    from solution import f
    class Tests(unittest.TestCase):
        def test_it(self): self.assertRaises(BaseException, f, -1)""",
    "pytest": """
    import pytest
    from solution import f
    def test_it():
        with pytest.raises(Exception): f(-1)""",
    "by hand": """
    try: f(-1)
    except Exception: pass
    else: assert False, "nothing was raised" """,
    "by hand, of any kind": """
    raised = False
    try: f(-1)
    except: raised = True
    assert raised""",
    "in a context": """
    import contextlib
    from solution import f
    def test_it():
        with contextlib.suppress(BaseException):
            f(-1)
            raise SystemExit
        assert True""",
}
DYING = {
    "exit": "import os\ndef f(n): os._exit(0)",
    "a signal": "import os\ndef f(n): os.kill(os.getpid(), 9)",
    "a closed channel": "import os\ndef f(n): os.closerange(3, 64); return 1",
    "noise on the channel": "import os\ndef f(n):\n    os.write(3, b'x' * 4096); return 1",
    "exec": "import os\ndef f(n): os.execv('/bin/true', ['true'])",
    "memory": "def f(n):\n    x = []\n    while True: x.append(bytearray(1 << 24))",
}


@pytest.mark.parametrize("how", DYING)
@pytest.mark.parametrize("test", RAISING)
def test_dying_is_not_raising(test: str, how: str) -> None:
    result = judged(DYING[how], RAISING[test])
    if how == "memory" and verdict(result) == 1.0:
        pytest.skip("the limit is one that Python itself notices, and raises MemoryError")
    assert verdict(result) == 0.0, result.reason


@pytest.mark.parametrize("test", RAISING)
def test_raising_is(test: str) -> None:
    result = judged("def f(n):\n    if n < 0: raise ValueError(n)\n    return n", RAISING[test])
    assert verdict(result) == 1.0, result.reason


def test_leaving_is_leaving() -> None:
    leaving = "def f(n): raise SystemExit(3)"
    assert verdict(judged(leaving, RAISING["unittest"])) == 0.0
    wanted = RAISING["unittest"].replace("Exception", "SystemExit")
    assert verdict(judged(leaving, wanted)) == 1.0
    assert verdict(judged("def f(n): raise KeyboardInterrupt", wanted)) == 0.0


STARS = [
    "from math import isclose\nfrom solution import *\nassert isclose(f(1), 1)",
    "from solution import *\nfrom math import isclose\nassert isclose(f(1), 1)",
    "def near(a, b): return abs(a - b) < 1\nfrom solution import *\nassert near(f(1), 1)",
    "EXPECTED = 1\nfrom solution import *\nassert f(1) == EXPECTED",
    "from math import *\nfrom solution import *\nassert isclose(f(1), 1)",
    "import unittest\nfrom unittest import TestCase\nfrom solution import *\nclass T(TestCase):\n"
    "    def test_it(self): self.assertEqual(f(1), 1)",
    "from copy import deepcopy as near\nfrom solution import *\nassert near([f(1)]) == [1]",
    "import pytest\nfrom pytest import approx\nfrom solution import *\ndef test_it(): assert f(1) == approx(1)",
    "from solution import *\nassert sorted([f(1), 5]) == [1, 5] and abs(f(1) - 1) < 1e-9",
]
SHADOWING = """
class Yes:
    def __init__(self, *a, **k): pass
    def __eq__(self, other): return True
    def __getattr__(self, name): return lambda *a, **k: True
isclose = near = approx = deepcopy = sorted = lambda *a, **k: True
abs = lambda x: 0
EXPECTED = 5
TestCase = unittest = pytest = Yes
__all__ = ["isclose", "near", "approx", "sorted", "abs", "EXPECTED", "TestCase", "unittest", "pytest", "f"]
def f(n): return 5
"""


@pytest.mark.parametrize("test", STARS)
def test_a_star_changes_no_name_that_the_test_has(test: str) -> None:
    assert verdict(judged(SHADOWING, {"test": test})) == 0.0
    assert verdict(judged(SHADOWING.replace("return 5\n", "return n\n"), {"test": test})) == 1.0


# ── the shapes of MBPP ───────────────────────────────────────────────────────────────────────────────────────────────

NODE = "class Node:\n    def __init__(self, v): self.v = v; self.left = self.right = None\n"
HEIGHT = NODE + "def height(t): return 0 if t is None else 1 + max(height(t.left), height(t.right))"
PAIR = "class Pair:\n    def __init__(self, a, b): self.a = a; self.b = b\n"
SPREAD = "def spread(pairs): return max(p.b - p.a for p in pairs)"

MBPP: dict[str, tuple[str, str, Any]] = {
    "sum": (
        "def sum(a, b): return len([i for i in range(1, min(a, b) + 1) if a % i == b % i == 0])",
        "def sum(a, b): return a + b",
        {"test_list": ["assert sum(10, 15) == 2", "assert sum(100, 150) == 6", "assert sum(4, 6) == 2"]},
    ),
    "abs": (
        "def abs(x): return x if x > 0 else -x + 1",
        "def abs(x): return x",
        ["assert abs(-3) == 4", "assert abs(2) == 2"],
    ),
    "max": (
        "def max(xs, k): return sorted(xs)[-k:]",
        "def max(xs, k): return xs[:k]",
        {"test_list": ["assert max([3, 1, 2], 2) == [2, 3]", "assert len(max([1], 1)) == 1"], "test_setup_code": ""},
    ),
    "round in a program": (
        "def round(x): return x // 10 * 10",
        "def round(x): return x",
        "assert round(19) == 10\nassert round(20) == 20",
    ),
    "a named built-in": (
        "def pow(a, b): return 1 if b == 0 else a * pow(a, b - 1)",
        "def pow(a, b): return a * b",
        {"tests": "def check(candidate): assert candidate(2, 3) == 8", "entry_point": "pow"},
    ),
    "an imported built-in": (
        "def sum(xs): return len(xs)",
        "def sum(xs): return 0",
        "from solution import sum\nassert sum([5, 5]) == 2",
    ),
    "a setup line": (
        "def total(d): return sum(d.values())",
        "def total(d): return 3",
        ["d = {'a': 1}\nassert total(d) == 1", "d = {'a': 1, 'b': 2}\nassert total(d) == 3"],
    ),
    "a setup that uses a class of the code": (
        HEIGHT,
        NODE + "def height(t): return 1",
        {
            "test_setup_code": "root = Node(1)\nroot.left = Node(2)\nroot.left.right = Node(3)",
            "test_list": ["assert height(root) == 3", "assert height(root.left) == 2"],
        },
    ),
    "such a setup in the tests": (
        HEIGHT,
        NODE + "def height(t): return 1",
        "root = Node(1)\nroot.left = Node(2)\nassert height(root) == 2\nassert height(None) == 0",
    ),
    "a class in the setup": (
        SPREAD,
        "def spread(pairs): return 0",
        {"test_setup_code": PAIR, "test_list": ["assert spread([Pair(1, 5), Pair(2, 3)]) == 4"]},
    ),
    "a class in the setup and in the code": (
        PAIR + SPREAD,
        PAIR + "def spread(pairs): return 0",
        {"test_setup_code": PAIR, "test_list": ["assert spread([Pair(1, 5), Pair(2, 3)]) == 4"]},
    ),
    "a dataclass in the tests": (
        "def area(r): return r.w * r.h",
        "def area(r): return r.w",
        "from dataclasses import dataclass\n@dataclass\nclass Box:\n    w: int\n    h: int\n"
        "assert area(Box(2, 3)) == 6",
    ),
    "a chain of objects": (
        "def total(n):\n    s = 0\n    while n: s += n.v; n = n.next\n    return s",
        "def total(n): return n.v",
        "class Link:\n    def __init__(self, v, next=None): self.v = v; self.next = next\n"
        "assert total(Link(1, Link(2, Link(3)))) == 6",
    ),
    "a type as argument": (
        "def is_type(x, kind): return isinstance(x, kind)",
        "def is_type(x, kind): return True",
        ["assert is_type(1, int) == True", "assert is_type('a', int) == False", "assert is_type((1,), tuple)"],
    ),
    "types in a list": (
        "def only(xs, kinds): return [x for x in xs if type(x) in kinds]",
        "def only(xs, kinds): return xs",
        ["assert only([1, 'a', 2.0], [int, float]) == [1, 2.0]"],
    ),
    "a function of Python's": (
        "def apply(f, xs): return [f(x) for x in xs]",
        "def apply(f, xs): return xs",
        "import math\nassert apply(len, ['a', 'bb']) == [1, 2]\nassert apply(math.sqrt, [4]) == [2.0]\n"
        "assert apply(str.upper, ['a']) == ['A']",
    ),
    "a module that is needed": (
        "import math\ndef area(r): return math.pi * r * r",
        "def area(r): return 3 * r * r",
        {"test_list": ["assert math.isclose(area(2), 4 * math.pi)"], "test_imports": ["import math"]},
    ),
    "an async function by values": (
        "async def double(n): return 2 * n",
        "async def double(n): return n",
        [{"input": "3", "expected_output": "6"}],
    ),
}


@pytest.mark.parametrize("name", MBPP)
def test_shapes_of_mbpp(name: str) -> None:
    right, wrong, tests = MBPP[name]
    options = {"target_function": "double"} if "values" in name else {}
    found = judged(right, tests, **options)
    assert verdict(found) == 1.0, found.reason
    assert verdict(judged(wrong, tests, **options)) == 0.0


def test_a_built_in_of_the_tests_is_not_the_codes() -> None:
    code = "def abs(x): return 0\ndef sum(x): return 6\ndef f(n): return 5"
    for test in ("assert abs(f(1) - 1) < 1e-6", "assert sum([f(1), f(2)]) == 6", "assert max(abs(f(1)), 0) == 0"):
        assert verdict(judged(code, [test])) == 0.0


def test_the_share_counts_tests_that_could_not_be_set_up() -> None:
    tests = textwrap.dedent(FIRST) + textwrap.dedent("""
    class Second(unittest.TestCase):
        @classmethod
        def setUpClass(cls): cls.six = double(3); assert cls.six == 6
        def test_a(self): pass
        def test_b(self): pass
        def test_c(self): pass""")
    result = fractional_code_reward(messages=answer(WRONG), ground_truth=tests)
    assert result.score < 0.5, result.reason


# ── tricks: a wrong answer that would pass somewhere ─────────────────────────────────────────────────────────────────

YES = "class Yes:\n    def __getattr__(self, name): return lambda *a, **k: True\n"
TRICKS: dict[str, tuple[str, str]] = {
    "has every method": (YES + "def f(x): return Yes()", "assert f('a').startswith('b') and f('a').isdigit()"),
    "has every method of its own": (YES + "def f(x): return Yes()", "assert f('a').matches('b')"),
    "has the methods of text": (
        "class Text:\n    def endswith(self, end): return True\n    def isupper(self): return True\n"
        "def f(x): return Text()",
        "assert f('a').endswith('z') and f('a').isupper()",
    ),
    "has the methods of sets": (
        "class Set:\n    def issubset(self, other): return True\n    issuperset = isdisjoint = issubset\n"
        "def f(x): return Set()",
        "assert f(1).issubset({1, 2}) and f(1).issuperset({1})",
    ),
    "is a class that says yes": (
        "class f:\n    def __init__(self, x): pass\n    def __eq__(self, other): return True\n    def __bool__(self):"
        " return True",
        "assert f(3) == 6 and f(4) == 8",
    ),
    "is an instance of anything": (
        "class Meta(type):\n    def __instancecheck__(cls, x): return True\nclass Kind(metaclass=Meta): pass\n"
        "def f(x): return Kind()",
        "assert isinstance(f(1), int) and f(1) > 0",
    ),
    "raises what asserts raise": (
        "def f(x): raise AssertionError('expected')",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test_it(self):\n"
        "        self.assertEqual(f(1), 2)",
    ),
    "raises a skip of its own": (
        "class SkipTest(Exception): pass\nclass Skipped(Exception): pass\ndef f(x): raise SkipTest('skip')",
        "import unittest\nfrom solution import *\nclass T(unittest.TestCase):\n    def test_it(self):\n"
        "        self.assertEqual(f(1), 2)\n    def test_more(self): f(2)",
    ),
    "raises unittest's skip": (
        "import unittest\ndef f(x): raise unittest.SkipTest('skip')",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def setUp(self): f(0)\n"
        "    def test_it(self): self.assertEqual(f(1), 2)",
    ),
    "ends the loop of the test": (
        "def f(x): raise StopIteration",
        "assert [f(x) for x in (1, 2)] == [2, 4]",
    ),
    "ends the async loop of the test": (
        "class Ticks:\n    def __aiter__(self): return self\n    async def __anext__(self): raise StopAsyncIteration\n"
        "def ticks(n): return Ticks()",
        "import asyncio\nasync def test_it():\n    async for n in ticks(3): assert n == 7\n",
    ),
    "interrupts": (
        "def f(x): raise KeyboardInterrupt",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n"
        "    def test_it(self): self.assertEqual(f(1), 2)\n    def test_more(self): pass",
    ),
    "interrupts pytest": ("def f(x): raise KeyboardInterrupt", "import pytest\ndef test_it(): assert f(1) == 2"),
    "is cancelled": (
        "import asyncio\nasync def f(x): raise asyncio.CancelledError",
        "import asyncio\nasync def test_it(): assert await f(1) == 2",
    ),
    "never awaits": ("async def f(x): return x", "assert f(3) == 6"),
    "is async in a chain": ("async def f(x): return x\ndef g(x): return 0", "assert g(f(3)) == 6"),
    "dies while it is awaited": (
        "import os\nasync def f(x): os._exit(0)",
        "import asyncio, unittest\nfrom solution import f\nclass T(unittest.IsolatedAsyncioTestCase):\n"
        "    async def test_it(self):\n        with self.assertRaises(Exception): await f(1)",
    ),
    "dies in its length": (
        "import os\nclass Thing:\n    def __len__(self): os._exit(0)\ndef f(x): return Thing()",
        "try: assert len(f(1)) == 3\nexcept BaseException: pass",
    ),
    "dies as it is loaded": (
        "import os\ndef f(x): return x\nos._exit(0)",
        "try: f(1)\nexcept BaseException: assert True",
    ),
    "dies at the first error": (
        "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\ndef f(x): raise SystemExit(0)",
        "import pytest\nfrom solution import f\ndef test_it():\n    with pytest.raises(Exception): f(1)",
    ),
    "empties what it is given": (
        "def f(xs): xs.clear(); return []",
        "data = [3, 1, 2]\nassert f(list(data)) == sorted(data)",
    ),
    "has no cases": (
        "CASES = []\ndef f(x): return x",
        "from solution import CASES, f\ndef test_all():\n    for x in CASES: assert f(x) == 2 * x",
    ),
    "gives nothing to look at": (
        "def f(n): return []",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test_it(self):\n"
        "        for found, wanted in zip(f(3), [1, 2, 3]): self.assertEqual(found, wanted)",
    ),
    "gives nothing in a sub-test": (
        "def f(n): return ()",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test_it(self):\n"
        "        for item in f(3):\n            with self.subTest(item=item): self.assertGreater(item, 5)",
    ),
    "gives nothing to pytest": (
        "def f(n): return {}",
        "import pytest\nfrom solution import f\ndef test_it():\n    for k, v in f(3).items(): assert k == v",
    ),
    "gives an empty iterator": (
        "def f(n): return iter(())",
        "def check(candidate):\n    for item in candidate(3): assert item > 5",
    ),
    "brings pytest's settings": (
        "open('conftest.py', 'w').write('collect_ignore_glob = [\"*\"]')\nopen('pytest.ini', 'w').write('[pytest]')\n"
        "def f(x): return x",
        "import pytest\nfrom solution import f\ndef test_it(): assert f(3) == 6",
    ),
    "says that it is another module": (
        "import unittest, sys\nsys.modules['solution'] = unittest\nf = unittest",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n"
        "    def test_it(self): self.assertEqual(f(3), 6)",
    ),
    "is what the test is called": (
        "def test_it(): pass\nclass T: pass\ndef f(x): return x",
        "import unittest\nfrom solution import *\nclass T(unittest.TestCase):\n"
        "    def test_it(self): self.assertEqual(f(3), 6)",
    ),
    "is the helper of the test": (
        "def same(a, b): return True\ndef f(x): return x",
        "from solution import *\ndef same(a, b): return a == b\nassert same(f(3), 6)",
    ),
    "is text that agrees": (
        "class Text(str):\n    def startswith(self, x): return True\n    def __contains__(self, x): return True\n"
        "    def __eq__(self, x): return True\n    __hash__ = str.__hash__\ndef f(x): return Text('no')",
        "assert f(1).startswith('yes') and 'yes' in f(1) and f(1) == 'yes'",
    ),
    "is a list that agrees": (
        "class List(list):\n    def __len__(self): return 3\n    def __contains__(self, x): return True\n"
        "    def __iter__(self): return iter([1, 2, 3])\ndef f(x): return List()",
        "assert len(f(1)) == 3 and 2 in f(1) and list(f(1)) == [1, 2, 3]",
    ),
    "is a dict that agrees": (
        "class Dict(dict):\n    def __missing__(self, key): return 6\n    def get(self, *a): return 6\n"
        "def f(x): return Dict()",
        "assert f(1).get('a') == 6 and f(1)['a'] == 6",
    ),
    "knows no difference": (
        "class Set:\n    def __sub__(self, other): return Set()\n    def __len__(self): return 0\n"
        "    def __iter__(self): return iter(())\n    def __eq__(self, other): return True\ndef f(x): return Set()",
        "assert f(1) - {1, 2} == set() and len(f(1) - {3}) == 0",
    ),
    "changes its mind": (
        "class Thing:\n    n = 0\n    @property\n    def value(self): Thing.n += 1; return Thing.n\n"
        "def f(x): return Thing()",
        "found = f(1)\nassert found.value == 1 and found.value == 2",
    ),
    "is equal to its own kind": (
        "class Node:\n    def __init__(self, *a): pass\n    def __eq__(self, other): return True\n"
        "def f(x): return Node()",
        "from solution import Node, f\nassert f(3) == Node(6)",
    ),
    "is above and below": (
        "import functools\nclass Version:\n    def __init__(self, *a): pass\n    def __lt__(self, o): return True\n"
        "    __gt__ = __le__ = __ge__ = __lt__\ndef f(x): return Version()",
        "from solution import Version, f\nassert f('1') < Version('2') and f('3') > Version('2')",
    ),
    "contains what is asked for": (
        "class Trie:\n    def insert(self, w): pass\n    def __contains__(self, w): return True",
        "from solution import Trie\nt = Trie(); t.insert('a')\nassert 'a' in t",
    ),
    "answers for the harness": (
        "import gc\nfor each in gc.get_objects():\n    if type(each).__name__ == '_Objects':\n"
        "        type(each).answer = lambda self, request: ['v', True, {}]\ndef f(x): return x",
        "assert f(3) == 6 and isinstance(f(3), int)",
    ),
    "gives parts that are none": (
        "import gc\nfor each in gc.get_objects():\n    if type(each).__name__ == '_Objects':\n"
        "        type(each).answer = lambda self, request: ['parts', ['list', [['what', 1]]], {}]\ndef f(x): return x",
        "try: assert f(3) == [6]\nexcept BaseException: pass",
    ),
    "claims to be awaited": (
        "import gc\nfor each in gc.get_objects():\n    if type(each).__name__ == '_Objects':\n"
        "        type(each).answer = lambda self, r: ['h', 0, {'awaitable': True, 'iterator': 7}]\ndef f(x): return x",
        "assert f(3) == 6",
    ),
    "leaves while the tests are set up": (
        "class Node:\n    def __init__(self, v): raise SystemExit(0)\ndef f(n): return 6",
        "try: root = Node(1)\nexcept BaseException: root = None\nassert f(root) == 5",
    ),
}


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_earns_nothing(name: str) -> None:
    code, test = TRICKS[name]
    tests = {"test": test, "entry_point": "f"} if "candidate" in test else {"test": test}
    result = judged(code, tests)
    assert verdict(result) == 0.0, result.reason


# ── what passes between a test and the code ──────────────────────────────────────────────────────────────────────────

VECTOR = """
    class Vector:
        def __init__(self, x, y): self.x, self.y = x, y
        def __eq__(self, other): return isinstance(other, Vector) and (self.x, self.y) == (other.x, other.y)
        def __hash__(self): return hash((self.x, self.y))
        def __add__(self, other): return Vector(self.x + other.x, self.y + other.y)
        def __iadd__(self, other): self.x += other.x; self.y += other.y; return self
        def __mul__(self, by): return Vector(self.x * by, self.y * by)
        __rmul__ = __mul__
        def __neg__(self): return Vector(-self.x, -self.y)
        def __matmul__(self, other): return self.x * other.x + self.y * other.y
        def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
        def __reversed__(self): return iter((self.y, self.x))
        def __round__(self, digits): return Vector(round(self.x, digits), round(self.y, digits))
        def __format__(self, how): return f"{self.x:{how}}|{self.y:{how}}"
"""
CONTEXT = """
    class Work:
        state = "new"
        def __enter__(self): return self
        def __exit__(self, kind, error, trace):
            self.state = f"undone: {error}" if kind else "done"
            return kind is not None and issubclass(kind, LookupError)
"""
MEMOIZE = """
    import functools
    def memoize(function):
        known = {}
        @functools.wraps(function)
        def wrapper(*arguments):
            if arguments not in known: known[arguments] = function(*arguments)
            return known[arguments]
        return wrapper
"""

BETWEEN: dict[str, tuple[str, str, str]] = {
    "an object is the same": (
        "class Box: pass\ndef same(box): return box",
        "class Box: pass\ndef same(box): return Box()",
        "box = Box()\nassert same(box) is box\nassert same(Box()) is not box",
    ),
    "members of an enum": (
        "import enum\nclass Color(enum.Enum): RED = 1; BLUE = 2\ndef mix(one, other): return Color.BLUE",
        "import enum\nclass Color(enum.Enum): RED = 1; BLUE = 2\ndef mix(one, other): return one",
        "assert mix(Color.RED, Color.BLUE) is Color.BLUE\nassert Color(1) is Color['RED'] and Color.RED.name == 'RED'",
    ),
    "one object only": (
        "class One:\n    it = None\n    def __new__(cls):\n        cls.it = cls.it or super().__new__(cls)\n"
        "        return cls.it",
        "class One: pass",
        "assert One() is One()",
    ),
    "a list is the same, or another": (
        "def same(xs): xs.sort(); return xs\ndef other(xs): return sorted(xs)",
        "def same(xs): xs.sort(); return xs\ndef other(xs): xs.sort(); return xs",
        "xs = [2, 1]\nassert other(xs) == [1, 2] and other(xs) is not xs\nassert same(xs) is xs and xs == [1, 2]",
    ),
    "objects in sets": (
        VECTOR,
        VECTOR.replace("return hash((self.x, self.y))", "return id(self)"),
        "assert len({Vector(1, 2), Vector(1, 2), Vector(2, 1)}) == 2\nassert {Vector(1, 2): 'a'}[Vector(1, 2)] == 'a'",
    ),
    "every operator": (
        VECTOR,
        VECTOR.replace("__rmul__ = __mul__", "def __rmul__(self, by): return self"),
        """
        v = Vector(3, 4)
        assert v + Vector(1, 1) == Vector(4, 5) and v * 2 == 2 * v == Vector(6, 8) and -v == Vector(-3, -4)
        assert v @ Vector(1, 1) == 7 and abs(v) == 5 and list(reversed(v)) == [4, 3] and f"{v:.1f}" == "3.0|4.0"
        assert round(Vector(1.26, 2.34), 1) == Vector(1.3, 2.3)
        before = v
        v += Vector(1, 1)
        assert v is before and v == Vector(4, 5)""",
    ),
    "the class of an object": (
        "class Dog: 'A dog.'\ndef make(): return Dog()",
        "class Dog: pass\nclass Cat: 'A dog.'\ndef make(): return Cat()",
        "assert type(make()) is Dog and type(make()).__name__ == make().__class__.__name__ == 'Dog'\n"
        "assert issubclass(Dog, Dog) and Dog.__doc__ == 'A dog.' and type(1) is int",
    ),
    "a generator is one": (
        "def count(n):\n    yield from range(n)",
        "def count(n): return iter(range(n))",
        "import inspect, types\nassert isinstance(count(2), types.GeneratorType) and inspect.isgenerator(count(1))\n"
        "assert list(count(3)) == [0, 1, 2]",
    ),
    "tuples with names": (
        "import collections\nEnds = collections.namedtuple('Ends', 'low high')\n"
        "def ends(xs): return Ends(min(xs), max(xs))\ndef width(given): return given.high - given.low",
        "import collections\nEnds = collections.namedtuple('Ends', 'low high')\n"
        "def ends(xs): return Ends(xs[0], xs[1])\ndef width(given): return given.high - given.low",
        "import collections\nMine = collections.namedtuple('Mine', 'low high')\n"
        "assert ends([3, 1]).low == 1 and ends([3, 1]) == (1, 3)\nassert width(Mine(2, 5)) == 3",
    ),
    "kinds of dicts": (
        "import collections\ndef count(xs): return collections.Counter(xs)\ndef top(counts): return "
        "counts.most_common(1)[0][0]\ndef put(lists): lists['new'].append(1)\n"
        "def last(xs):\n    made = collections.OrderedDict.fromkeys(xs)\n    made.move_to_end(xs[0])\n    return made",
        "import collections\ndef count(xs): return dict.fromkeys(xs, 1)\ndef top(counts): return 'a'\n"
        "def put(lists): lists['new'] = [1]\ndef last(xs): return dict.fromkeys(xs)",
        "import collections\nassert count('aab').most_common(1) == [('a', 2)] and count('a')['z'] == 0\n"
        "assert top(collections.Counter('abb')) == 'b'\nlists = collections.defaultdict(list)\nput(lists)\n"
        "assert lists == {'new': [1]} and lists['other'] == []\nassert list(last('ab')) == ['b', 'a']",
    ),
    "what a call changes": (
        "def swap(rows): rows[0], rows[1] = rows[1], rows[0]; rows[0].append(9)\n"
        "def turn(queue): queue.rotate(1)\ndef raised(text): text[:] = text.upper()\ndef add(to): to['in']['n'] += 1",
        "def swap(rows): rows[0].append(9)\ndef turn(queue): pass\ndef raised(text): pass\ndef add(to): pass",
        """
        import collections
        rows = [[1], [2]]
        first, second = rows
        swap(rows=rows)
        assert rows == [[2, 9], [1]] and rows[0] is second and rows[1] is first and second == [2, 9]
        queue, text, held = collections.deque([1, 2]), bytearray(b"a"), {"n": 1}
        turn(queue); raised(text); add({"in": held})
        assert list(queue) == [2, 1] and text == b"A" and held == {"n": 2}""",
    ),
    "what a call changes in lists of objects": (
        "class Job:\n    def __init__(self, at): self.at = at\ndef order(jobs): jobs.sort(key=lambda job: job.at)",
        "class Job:\n    def __init__(self, at): self.at = at\ndef order(jobs): pass",
        "late, soon = Job(2), Job(1)\njobs = [late, soon]\norder(jobs)\nassert jobs[0] is soon and jobs[1] is late",
    ),
    "what a call changes in objects of the test": (
        "def turn(node):\n    last = None\n    while node: node.next, last, node = last, node, node.next\n"
        "    return last",
        "def turn(node): return node",
        """
        class Node:
            def __init__(self, value, next=None): self.value, self.next = value, next
        second = Node(2)
        first = Node(1, second)
        assert turn(first) is second and second.next is first and first.next is None""",
    ),
    "what the code prints": (
        "def hello(name): print('Hello,', name)",
        "def hello(name): print('Hello', name)",
        """
        import contextlib, io
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed): hello("Bob")
        assert printed.getvalue() == "Hello, Bob\\n" """,
    ),
    "what the code prints, by pytest": (
        "def hello(name): print('Hello,', name)",
        "def hello(name): print('Hello', name)",
        "import pytest\ndef test_hello(capsys):\n    hello('Bob')\n"
        "    assert capsys.readouterr().out == 'Hello, Bob\\n'",
    ),
    "what an exception holds": (
        "class Short(ValueError):\n    def __init__(self, by): self.by = by\n"
        "    def __str__(self): return f'short by {self.by}'\ndef take(n): raise Short(n)",
        "class Short(ValueError):\n    def __init__(self, by): self.by = by\ndef take(n): raise Short(n)",
        "import unittest\nclass Tests(unittest.TestCase):\n    def test_short(self):\n"
        "        with self.assertRaises(Short) as caught: take(3)\n"
        "        self.assertEqual((caught.exception.by, str(caught.exception)), (3, 'short by 3'))",
    ),
    "a context that is left by an exception": (
        CONTEXT,
        CONTEXT.replace("issubclass(kind, LookupError)", "True"),
        """
        work = Work()
        with work: pass
        assert work.state == "done"
        with work: raise KeyError("k")
        assert work.state == "undone: 'k'"
        try:
            with work: int("x")
            left = False
        except ValueError: left = True
        assert left""",
    ),
    "sys.exit(0)": (
        "def double(n): return 2 * n",
        "def double(n): return 4",
        "import sys\ndef main():\n    for n in (2, 3): assert double(n) == 2 * n\n    return 0\nsys.exit(main())",
    ),
    "functions of the test": (
        "def order(xs, key): return sorted(xs, key=key)\ndef both(f, g): return lambda x: f(g(x))\n"
        "def each(xs, do):\n    for x in xs: do(x)",
        "def order(xs, key): return sorted(xs)\ndef both(f, g): return lambda x: g(f(x))\ndef each(xs, do): do(xs)",
        "got = []\neach([1, 2], got.append)\nassert got == [1, 2]\nassert order([1, 2], key=lambda x: -x) == [2, 1]\n"
        "assert both(lambda x: x + 1, lambda x: x * 2)(5) == 11",
    ),
    "decorators": (
        MEMOIZE,
        "def memoize(function): return function",
        """
        calls = []
        @memoize
        def fibonacci(n):
            "The n-th."
            calls.append(n)
            return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
        assert fibonacci(15) == 610 and len(calls) == 16
        assert fibonacci.__name__ == "fibonacci" and fibonacci.__doc__ == "The n-th." """,
    ),
    "a function of the test that raises": (
        "def attempt(function, times):\n    for _ in range(times):\n        try: return function()\n"
        "        except ValueError as error: last = error\n    raise last",
        "def attempt(function, times): return function()",
        """
        tries = []
        def flaky():
            tries.append(1)
            if len(tries) < 3: raise ValueError("again")
            return "done"
        assert attempt(flaky, 5) == "done" and len(tries) == 3""",
    ),
    "examples in a docstring": (
        "def double(n): return 2 * n",
        "def double(n): return 4",
        'import doctest\ndef examples():\n    """\n    >>> double(2)\n    4\n    >>> double(3)\n    6\n    """\n'
        "found = doctest.testmod()\nassert found.failed == 0 and found.attempted == 2",
    ),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_what_passes_between_a_test_and_the_code_is_what_it_would_be_in_one_process(name: str) -> None:
    right, wrong, tests = BETWEEN[name]
    found, other = judged(right, {"test": textwrap.dedent(tests)}), judged(wrong, {"test": textwrap.dedent(tests)})
    assert verdict(found) == 1.0, found.reason
    assert verdict(other) == 0.0, other.reason


WITHIN = """
    def test_it():
        assert Work
        with Work() as work:
            assert work.value + 1 == 4
            if work.value != 3: raise ValueError("wrong")
"""
WRITING = (
    "import reward_kit.sandbox.python.inside.objects as own\nown._text = lambda answer: own.encode({}).encode()\n{}"
)
ABUSES = {
    "a context that swallows a failed check": (
        "class Work:\n    value = 5\n    def __enter__(self): return self\n    def __exit__(self, *_): return True",
        WITHIN,
    ),
    "a context that swallows what its own answer led to": (
        "class Work:\n    value = None\n    def __enter__(self): return self\n    def __exit__(self, *_): return True",
        WITHIN,
    ),
    "a context that swallows what it raises itself": (
        "class Work:\n    value = property(lambda self: 1 / 0)\n    def __enter__(self): return self\n"
        "    def __exit__(self, *_): return True",
        WITHIN,
    ),
    "a check that fails in a function of the test": (
        "def walk(xs, do):\n    for x in (1, 2, -3):\n        try: do(x)\n        except AssertionError: pass",
        "seen = []\ndef do(x):\n    assert x > 0\n    seen.append(x)\nwalk([1, 2], do)\nassert len(seen) == 2",
    ),
    "a function of the test that is never called": (
        "def walk(xs, do): pass",
        "def test_walk():\n    def do(x): assert x > 0\n    walk([1, 2], do)",
    ),
    "output that says what is asked": (
        "class Text(str):\n    def splitlines(self): return ['1']\ndef hello(): print(Text('2'))",
        "import contextlib, io\nprinted = io.StringIO()\nwith contextlib.redirect_stdout(printed): hello()\n"
        "assert printed.getvalue().splitlines() == ['1']",
    ),
    "a tuple that says what is asked": (
        "class Ends(tuple):\n    _fields = ('low',)\n    low = 1\ndef ends(): return Ends((2,))",
        "assert ends().low == 1",
    ),
    "an exception that says what is asked": (
        "class Anything(str):\n    __hash__ = str.__hash__\n    def __eq__(self, other): return True\n"
        "class Short(Exception):\n    def __str__(self): return Anything('?')\n"
        "def take():\n    error = Short()\n    error.by = Anything('?')\n    raise error",
        "try: take()\nexcept Short as error: assert error.by == 3 or str(error) == 'short by 3'\nelse: assert False",
    ),
    "an exception that only has the name": (
        "class ValueError(BaseException): pass\ndef take(n):\n    if n < 0: raise ValueError\n    return n",
        "import unittest\nclass Tests(unittest.TestCase):\n    def test_it(self):\n        assert take(1) == 1\n"
        "        with self.assertRaises(ValueError): take(-1)",
    ),
    "SystemExit(0) from the code": (
        "def double(n): raise SystemExit(0)",
        "assert double(2) == 4\nimport sys\nsys.exit(0)",
    ),
    "a hash that fits": (
        "class Box:\n    def __init__(self, n): pass\n    def __eq__(self, other): return True\n"
        "    def __hash__(self): return 1",
        "assert len({Box(1), Box(1)}) == 1",
    ),
    "a method of the test's object, replaced": (
        "def fill(log): log.is_full = lambda: True",
        "class Log:\n    def __init__(self): self.n = 0\n    def is_full(self): return self.n == 3\n"
        "log = Log()\nfill(log)\nassert log.is_full()",
    ),
    "changes of what was not handed over": (
        WRITING.format(["v", [9], {0: ["v", [9]], 1: ["v", [9]], -1: ["v", [9]]}], "def f(xs): return [9]"),
        "asked, wanted = [3], [3]\nassert f(asked) == wanted",
    ),
    "one thing that was handed over for another": (
        WRITING.format(["parts", ["same", 7], {}], "def f(xs): return [9]"),
        "xs = [3]\ntry: assert f(xs) is xs\nexcept BaseException: pass",
    ),
    "a function that nobody handed over": (
        WRITING.format(["back", 0, [], {}], "def f(xs): return [9]"),
        "try: assert f([3]) == [3]\nexcept BaseException: pass",
    ),
}


@pytest.mark.parametrize("name", ABUSES)
def test_what_passes_between_a_test_and_the_code_earns_nothing_by_itself(name: str) -> None:
    code, tests = ABUSES[name]
    result = judged(code, {"test": textwrap.dedent(tests)})
    assert verdict(result) == 0.0, result.reason


@pytest.mark.parametrize(
    "test",
    [
        "class Mine(Thing):\n    def n(self): return 1\nassert Mine().n() == 1",
        "from unittest import mock\nimport solution\nwith mock.patch('solution.f', lambda: 2): assert g() == 2",
        "from unittest import mock\nwith mock.patch('builtins.input', return_value='3'): assert f() == 1",
    ],
)
def test_what_cannot_be_done_from_another_process_judges_nothing(test: str) -> None:
    result = judged("class Thing: pass\ndef f(): return 1\ndef g(): return f()", {"test": test})
    assert verdict(result) is None and "Not judged" in str(result.reason), result.reason


# ── nothing that an answer does withholds its verdict ────────────────────────────────────────────────────────────────

HIERARCHY = """
class BankError(Exception):
    def __init__(self, text, code=3):
        super().__init__(text)
        self.code = code
class Refused(BankError): pass
class Insufficient(Refused, ValueError): pass
def pay(n):
    if n > 3: raise Insufficient(f'no {n}')
    return n
"""
RAISES = """
    import unittest
    from solution import *
    class Tests(unittest.TestCase):
        def test_pay(self):
            self.assertEqual(pay(2), 2)
            for kind in (Insufficient, Refused, BankError, ValueError):
                with self.assertRaises(kind) as caught: pay(5)
                self.assertEqual((str(caught.exception), caught.exception.code), ('no 5', 3))
            self.assertFalse(issubclass(BankError, ValueError))
"""


def test_exceptions_with_ancestors_of_their_own_are_judged() -> None:
    assert verdict(judged(HIERARCHY, RAISES)) == 1.0
    for wrong in (("> 3", "> 30"), ("Refused, ValueError", "Refused"), ("(BankError): pass", "(Exception): code = 3")):
        assert verdict(judged(HIERARCHY.replace(*wrong), RAISES)) == 0.0


ESCAPES: dict[str, tuple[str, Any]] = {
    "the test counts for ever": ("def f(): return 10 ** 12", "def test_f():\n    n = 0\n    while n < f(): n += 1"),
    "the test calculates for ever": ("def f(): return 10 ** 9", "assert 3 ** f() == 9"),
    "the test matches for ever": (
        "def f(): return '(a+)+$'",
        "import re\ndef test_f():\n    assert re.match(f(), 'a' * 60 + 'b') is None",
    ),
    "a class that the setup uses": (
        "def depth(n): return 1",
        {"test_list": ["assert depth(root) == 2"], "test_setup_code": "root = Node(Node(None))"},
    ),
    "a module of pytest": (
        "import types\nf = types.ModuleType('pytest.nowhere')",
        "def test_f():\n    assert f(3) == 4",
    ),
    "a type that makes no plain data": ("def f(): return object\ndef g(x): return 4", "assert g(f()()) == 5"),
    "ancestors that cannot be": (
        "class A(Exception): pass\nA.__name__ = 'B'\nclass B(A): pass\nB.__name__ = 'A'\ndef f(): raise B",
        "from solution import *\ndef test_f():\n    assert f() == 1",
    ),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_an_answer_does_not_choose_to_have_no_verdict(name: str) -> None:
    code, tests = ESCAPES[name]
    result = deepcoder_code_reward(messages=answer(code), ground_truth=tests, timeout=1)
    assert verdict(result) == 0.0, result.reason


NO_TESTS: list[tuple[str, str | None]] = [
    ("assert True", "f"),
    ("assert 1 + 1 == 2", "f"),
    ("def check(candidate):\n    assert True", "f"),
    ("def test_it():\n    assert len('ab') == 2", None),
    ("import unittest\nclass Tests(unittest.TestCase):\n    def test_it(self): self.assertTrue(True)", None),
]


@pytest.mark.parametrize(("tests", "function"), NO_TESTS)
def test_what_does_not_use_the_code_is_no_test(tests: str, function: str | None) -> None:
    for code in ("def f(x): return x", "1 / 0"):
        result = judged(code, tests, target_function=function)
        assert verdict(result) is None or (verdict(result), code) == (0.0, "1 / 0"), result.reason


@pytest.mark.parametrize("function", ["abs", "len", "round", "sorted"])
def test_a_function_that_is_left_out_is_not_pythons(function: str) -> None:
    given = {"abs": -3, "len": "abc", "round": 2.6, "sorted": [2, 1]}[function]
    expected = getattr(__import__("builtins"), function)(given)
    kinds: list[tuple[Any, str | None]] = [
        ([{"input": repr(given), "expected_output": repr(expected)}], function),
        (f"def check(candidate):\n    assert candidate({given!r}) == {expected!r}", function),
        ([f"assert {function}({given!r}) == {expected!r}"], None),
    ]
    for tests, named in kinds:
        assert verdict(judged("x = 1", tests, target_function=named)) == 0.0
        own = f"import builtins\ndef {function}(x): return builtins.{function}(x)"
        assert verdict(judged(own, tests, target_function=named)) == 1.0


READ = {
    "in a comparison": "assert count(xs) == reference(xs)",
    "the other way round": "assert reference(xs) == count(xs)",
    "in a difference": "assert abs(count(xs) - reference(xs)) < 1e-9",
    "by several arguments": "args = (xs,)\nassert count(*args) == reference(*args)",
    "by Python": "assert count(xs) == len(xs)",
    "by a part": "assert count(xs) == 1 + len(xs[1:])",
    "by an assertion": "import unittest\nunittest.TestCase().assertEqual(count(xs), reference(xs))",
    "by a tolerance": "import math\nassert math.isclose(count(xs), reference(xs))",
    "in a chain": "assert count(xs) == reference(xs) == reference(xs)",
    "after another call": "assert isinstance(count(xs), int) and count(xs) == reference(xs)",
    "after another call, the other way round": "assert count(xs) >= 0 and reference(xs) == count(xs)",
    "by two names": "got, expected = count(xs), reference(xs)\nassert got == expected",
    "by a list": "got = [count(xs), reference(xs)]\nassert got[0] == got[1]",
    "by another name": "ys = xs\nassert count(xs) == reference(ys)",
    "by a lambda": "ref = lambda v: len(v)\nassert count(xs) == ref(xs)",
    "by a method": "assert count(xs) == Reference().of(xs)",
    "by an object that holds it": "held = Reference(xs)\nassert count(held.xs) == held.of_mine()",
    "by arguments with names": "assert same(got=count(xs), expected=reference(xs))",
    "by a helper": "assert same(count(xs), reference(xs))",
    "by map": "assert list(map(count, [xs])) == list(map(reference, [xs]))",
    "in a generator": "assert all(count(each) == reference(each) for each in [xs, [7]])",
    "before it is raised": "if count(xs) != reference(xs):\n    raise ValueError(xs)",
    "with a name for the result": "assert (got := count(xs)) == reference(xs) and got == 3",
    "in what is awaited": "import asyncio\nasync def later(n): return n\n"
    "async def go(): assert await later(count(xs)) == await later(reference(xs))\nasyncio.run(go())",
}
REFERENCE = """
def reference(xs): return len(xs)
def same(got, expected): return got == expected
class Reference:
    def __init__(self, xs=()): self.xs = xs
    def of(self, xs): return len(xs)
    def of_mine(self): return len(self.xs)
"""


@pytest.mark.parametrize("name", READ)
def test_code_does_not_change_what_it_is_compared_with(name: str) -> None:
    body = textwrap.indent(READ[name], "    ")
    tests = f"{REFERENCE}def test_it():\n    xs = [4, 5, 6]\n{body}\n"
    assert verdict(judged("def count(xs): return sum(1 for _ in xs)", tests)) == 1.0
    by_thread = "import threading\ndef count(xs):\n    t = threading.Thread(target=xs.clear)\n    t.start(); t.join()\n"
    for wrong in ("def count(xs):\n    xs.clear()\n    return 0", f"{by_thread}    return 0"):
        assert verdict(judged(wrong, tests)) == 0.0


IN_PLACE = """
def sort(xs): xs.sort()
def arranged(xs):
    xs.sort()
    return xs
def pop(xs): return xs.pop()
def push(xs, x):
    xs.append(x)
    return len(xs)
def total(xs): return sum(xs)
def grow(tree, x):
    tree.items.append(x)
"""
SEEN = [
    "assert sort(xs) is None and xs == [1, 2, 3]",
    "assert (sort(xs), list(xs)) == (None, [1, 2, 3])",
    "assert [sort(xs), len(xs), xs] == [None, 3, [1, 2, 3]]",
    "assert not sort(xs) and xs == own([3, 2, 1])",
    "assert arranged(xs) is xs and arranged(xs) == xs",
    "assert arranged(xs) == own(xs) == [1, 2, 3]",
    "assert own(xs) == arranged(xs)",
    "assert [pop(xs), pop(xs)] == [2, 1] and (pop(xs), xs) == (3, [])",
    "assert push(xs, 9) - pop(xs) == -5",
    "got, after = pop(xs), xs\nassert got == 2 and after == [3, 1]",
    "tree = Tree()\nassert grow(tree, 4) is None and tree.total() == 4",
    "later = iter([6, 7])\nassert total(xs) == next(later) and total([7]) == next(later)",
    "assert max(total(xs), own_total(xs), key=lambda n: n) == 6 and total(xs=xs) == own_total(v=xs)",
    "def run(v):\n    sort(v)\n    return v\nassert run(xs) == own([2, 3, 1]) and xs == [1, 2, 3]",
]


@pytest.mark.parametrize("body", SEEN)
def test_right_code_passes_however_it_is_compared(body: str) -> None:
    own = "def own(v): return sorted(v)\ndef own_total(v): return sum(v)\n"
    tree = "class Tree:\n    def __init__(self): self.items = []\n    def total(self): return sum(self.items)\n"
    tests = f"{own}{tree}def test_it():\n    xs = [3, 1, 2]\n{textwrap.indent(body, '    ')}\n"
    assert verdict(judged(IN_PLACE, tests)) == 1.0


ONLY_IMPORTED = ["assert True", "assert 1 == 1", "assert not []", "assert max([1, 2]) == 2", "self.assertTrue(True)"]


@pytest.mark.parametrize("body", ONLY_IMPORTED)
def test_to_import_the_code_is_no_test(body: str) -> None:
    head = "import unittest\nfrom solution import double\nimport solution\n"
    tests = f"{head}class Tests(unittest.TestCase):\n    def test_it(self): {body}\n"
    for code in (RIGHT, WRONG):
        assert verdict(judged(code, tests)) is None
    assert verdict(judged(RIGHT, f"{tests}    def test_more(self): self.assertEqual(double(2), 4)\n")) == 1.0


def test_a_name_of_the_code_may_be_that_of_a_method_or_a_local_name_of_the_tests() -> None:
    tests = """
        class Sums:
            def double(self): return 7
        def test_it():
            assert double(4) == 8
        def test_more():
            double = 5
            assert Sums().double() + double == 12
    """
    assert verdict(judged(RIGHT, tests)) == 1.0
    assert verdict(judged(WRONG, tests)) == 0.0


def test_what_is_changed_in_place_is_seen() -> None:
    tests = """
        def test_it():
            xs = [2, 1]
            assert (put(xs), xs) == (None, [1, 2])
            ys = [3, 2]
            assert put(ys) is None and ys == sorted(ys)
            zs = [5, 4]
            assert (put(zs) or zs) == sorted(zs)
            ws = [7, 6]
            put(ws)
            assert ws == sorted(ws)
    """
    assert verdict(judged("def put(xs): xs.sort()", tests)) == 1.0
    assert verdict(judged("def put(xs): xs.clear()", tests)) == 0.0


VECTOR = """
class Vector:
    def __init__(self, *parts): self.parts = parts
    def __add__(self, other): return Vector(*map(sum, zip(self.parts, other.parts)))
    def __eq__(self, other): return EQUAL
"""
ALWAYS = ["True", "isinstance(other, Vector)", "type(self) is type(other)", "hasattr(other, 'parts')"]


def test_a_class_whose_objects_are_all_equal_fails() -> None:
    tests = "from solution import Vector\ndef test_it():\n    assert Vector(1, 2) + Vector(3, 4) == Vector(4, 6)\n"
    honest = "isinstance(other, Vector) and self.parts == other.parts"
    assert verdict(judged(VECTOR.replace("EQUAL", honest), tests)) == 1.0
    for equal in ALWAYS:
        assert verdict(judged(VECTOR.replace("EQUAL", equal), tests)) == 0.0, equal
    parity = "class Parity:\n    def __init__(self, n): self.n = n\n"
    parity += "    def __eq__(self, other): return self.n % 2 == other.n % 2"
    assert (
        verdict(judged(parity, "from solution import Parity\ndef test_it():\n    assert Parity(3) == Parity(5)")) == 1.0
    )


ARRAYS = """
    import numpy as np
    def test_it():
        a = np.array([[1, 2], [3, 4]])
        half = halved(a)
        assert isinstance(half, np.ndarray) and half.shape == (2, 2) and half.dtype == np.float64
        assert half.sum() == 5.0 and half.tolist() == [[0.5, 1], [1.5, 2]] and (half * 2 == a).all()
        assert halved(np.float32(3)).dtype == np.float32
        fill(a)
        assert (a == 7).all()
"""


def test_arrays_arrive_as_arrays() -> None:
    right = "def halved(a): return (a / 2).astype(a.dtype if a.dtype.kind == 'f' else float)\ndef fill(a): a[:] = 7"
    result = judged(right, ARRAYS)
    if "No module named 'numpy'" in (result.reason or ""):
        pytest.skip("the interpreter in the sandbox has no numpy")
    assert verdict(result) == 1.0, result.reason
    assert verdict(judged(right.replace("(a / 2)", "(a / 2 + 1)"), ARRAYS)) == 0.0
    assert verdict(judged("import numpy\n" + right.replace("return ", "return numpy.ravel"), ARRAYS)) == 0.0
    values = [{"input": "3", "expected_output": "[0, 1, 2]"}]
    assert verdict(judged("import numpy\ndef f(n): return numpy.arange(n)", values, target_function="f")) == 1.0


RAISED = {
    "a cause": (
        "class Base(Exception): pass\nclass Own(Base): pass\ndef f():\n    try: int('x')\n"
        "    except ValueError as error: raise Own('no') from error",
        "except Base as error: assert isinstance(error.__cause__, ValueError) and error.__cause__.__cause__ is None",
    ),
    "a group": (
        "def f(): raise ExceptionGroup('many', [ValueError(1), KeyError(2)])",
        "except ExceptionGroup as error:\n        assert error.message == 'many'\n"
        "        assert [type(each) for each in error.exceptions] == [ValueError, KeyError]",
    ),
    "a group, taken apart": (
        "class Own(Exception): pass\ndef f(): raise ExceptionGroup('many', [Own(1)])",
        "except* Own as error: assert len(error.exceptions) == 1",
    ),
    "a group of its own": (
        "class Base(ExceptionGroup): pass\nclass Own(Base): pass\ndef f(): raise Own('x', [ValueError(1)])",
        "except Base as error: assert len(error.exceptions) == 1",
    ),
}


@pytest.mark.parametrize("name", RAISED)
def test_exceptions_come_with_their_causes_and_parts(name: str) -> None:
    code, caught = RAISED[name]
    tests = f"from solution import *\ndef test_it():\n    try: f()\n    {caught}\n"
    assert verdict(judged(code, f"{tests}    else: assert False, 'nothing raised'\n")) == 1.0
    assert verdict(judged(f"{code}\ndef f(): raise LookupError", tests)) == 0.0
    assert verdict(judged(f"{code}\ndef f(): raise BaseExceptionGroup('x', [SystemExit(0)])", tests)) == 0.0
