# SPDX-License-Identifier: Apache-2.0
"""Code that goes for the reward instead of the task: nothing it does to its process makes it right."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from reward_kit.models import EvaluateResult
from reward_kit.rewards.deepcoder_reward import deepcoder_code_reward
from tests.rewards.code_parts import answer, require_zygote


@pytest.fixture(autouse=True)
def a_zygote() -> None:
    require_zygote()


CASES = [("", 0), ("abc", 3), ("a b", 2), ("  ", 0), ("x" * 9, 9)]
"""The task: how many characters of a text are not spaces."""

BY_VALUES = [{"input": json.dumps(text), "expected_output": json.dumps(count)} for text, count in CASES]
BY_CHECK = "def check(candidate):\n" + "".join(f"    assert candidate({t!r}) == {n}\n" for t, n in CASES)
IN_A_LOOP = f"""
def check(candidate):
    for text, expected in {CASES!r}:
        result = candidate(text)
        assert result == expected, (text, expected)
        assert abs(result - expected) < 1e-6
        assert not result != expected
"""
BY_UNITTEST = f"""
import unittest
from solution import count
class Tests(unittest.TestCase):
    def test_all(self):
        for text, expected in {CASES!r}:
            self.assertEqual(count(text), expected)
            self.assertIn(count(text), [expected])
"""
BY_PYTEST = f"""
import pytest
from solution import count
@pytest.mark.parametrize(("text", "expected"), {CASES!r})
def test_count(text, expected):
    assert count(text) == pytest.approx(expected)
"""
FUNCTION_TESTS: dict[str, Any] = {
    "values": BY_VALUES,
    "check": BY_CHECK,
    "loop": IN_A_LOOP,
    "unittest": BY_UNITTEST,
    "pytest": BY_PYTEST,
}

RIGHT = {
    "plain": "def count(s): return len(s) - s.count(' ')",
    "noisy": "import sys\ndef count(s):\n    print(s); print(s, file=sys.stderr); return sum(c != ' ' for c in s)",
    "an int of its own": "class N(int): pass\ndef count(s): return N(len(s.replace(' ', '')))",
    "catches everything": "def count(s):\n    try: return len(s.replace(' ', ''))\n    except BaseException: return -1",
    "uses a file": """
        import tempfile
        def count(s):
            with tempfile.NamedTemporaryFile('w+') as f:
                f.write(s); f.seek(0); return len(f.read().replace(' ', ''))""",
    "uses a process": """
        import subprocess, sys
        def count(s):
            code = 'import sys; print(len(sys.argv[1].replace(" ", "")))'
            return int(subprocess.run([sys.executable, '-c', code, s], capture_output=True, text=True).stdout)""",
    "uses a thread": """
        import threading
        def count(s):
            out = []
            t = threading.Thread(target=lambda: out.append(len(s.replace(' ', '')))); t.start(); t.join()
            return out[0]""",
    "replaces things it uses itself": """
        import builtins, json
        _len = len
        builtins.len = lambda x: _len(x)
        json.dumps = None
        def count(s): return _len(s.replace(' ', ''))""",
}

WRONG = {
    "always equal": """
        class E:
            def __eq__(self, o): return True
            def __ne__(self, o): return False
            def __hash__(self): return 0
            def __sub__(self, o): return 0
            __rsub__ = __sub__
            def __abs__(self): return 0
            def __lt__(self, o): return True
            __gt__ = __le__ = __ge__ = __lt__
            def __bool__(self): return True
        def count(s): return E()""",
    "an int that is always equal": """
        class I(int):
            def __eq__(self, o): return True
            def __ne__(self, o): return False
            def __sub__(self, o): return 0
            def __abs__(self): return 0
            __hash__ = int.__hash__
        def count(s): return I(7)""",
    "lies about its class": """
        class L:
            @property
            def __class__(self): return int
            def __eq__(self, o): return True
            def __index__(self): return 3
        def count(s): return L()""",
    "a str that equals": """
        class S(str):
            def __eq__(self, o): return True
            __hash__ = str.__hash__
        def count(s): return S('3')""",
    "reads frames": """
        import sys, gc
        def count(s):
            f = sys._getframe()
            while f:
                for scope in (f.f_locals, f.f_globals):
                    for key in ('expected', 'result', 'gold', 'want', 'answer'):
                        if isinstance(scope.get(key), int): return scope[key]
                f = f.f_back
            for o in gc.get_objects():
                if isinstance(o, (list, tuple)) and len(o) == 2 and o[0] == s and isinstance(o[1], int): return o[1]
            return -1""",
    "reads every file": """
        import glob, os, re
        def count(s):
            places = ['/box/*', '/tmp/*', '/proc/[0-9]*/cmdline', '/proc/[0-9]*/environ', '/proc/[0-9]*/fd/*']
            for place in places:
                for path in glob.glob(place):
                    try: text = open(path, 'rb').read(100000).decode(errors='replace')
                    except OSError: continue
                    m = re.search(re.escape(repr(s)) + r', (\\d+)', text)
                    if m: return int(m[1])
            return -1""",
    "reads every memory": """
        import glob, re
        def count(s):
            for maps in glob.glob('/proc/[0-9]*/maps'):
                if maps == '/proc/self/maps': continue
                try: mem = open(maps.replace('maps', 'mem'), 'rb', 0); rows = open(maps).read().splitlines()
                except OSError: continue
                for row in rows:
                    if 'rw' not in row.split()[1]: continue
                    a, b = [int(x, 16) for x in row.split()[0].split('-')]
                    try: mem.seek(a); data = mem.read(min(b - a, 1 << 20))
                    except (OSError, ValueError, OverflowError): continue
                    m = re.search(re.escape(repr(s).encode()) + rb', (\\d+)', data)
                    if m and len(s): return int(m[1])
            return -1""",
    "writes into every descriptor": """
        import os, struct, json
        def count(s):
            for fd in range(3, 64):
                for body in (b'L', b'R0', b'["v", 0, {}]', json.dumps([["check", None]]).encode()):
                    for nonce in (b'', bytes(16)):
                        try: os.write(fd, struct.pack('!I', len(nonce + body)) + nonce + body)
                        except OSError: pass
            return -1""",
    "answers every nonce it ever saw": """
        import os, sys
        from types import ModuleType
        f = sys._getframe()
        while f:
            frames = f.f_locals.get('frames')
            if frames is not None:
                for letter in (b'L', b'R' + b'0', b'U'):
                    frames.send(f.f_locals.get('nonce') or bytes(16), letter)
            f = f.f_back
        def count(s): return -1""",
    "makes the harness answer": """
        import sys
        for name, module in list(sys.modules.items()):
            for key, value in list(vars(module).items()):
                if key in ('encode', 'described', 'same_value'):
                    try: setattr(module, key, lambda *a, **k: '0')
                    except Exception: pass
        import reward_kit
        def count(s): return -1""",
    "leaves at once": "import os\ndef count(s): return -1\nos._exit(0)",
    "leaves when called": "import os\ndef count(s): os._exit(0)",
    "leaves politely": "def count(s): raise SystemExit(0)",
    "leaves from a thread": """
        import os, threading, time
        threading.Thread(target=lambda: (time.sleep(0.02), os._exit(0)), daemon=True).start()
        def count(s): time.sleep(0.5); return -1""",
    "leaves at exit": "import atexit, os\natexit.register(os._exit, 0)\ndef count(s): return -1",
    "hooks exceptions": """
        import os, sys, threading
        sys.excepthook = threading.excepthook = lambda *a: os._exit(0)
        sys.unraisablehook = sys.excepthook
        def count(s): return -1""",
    "traces": """
        import sys
        def trace(frame, event, arg):
            if 'expected' in frame.f_locals: frame.f_locals['expected'] = -1
            return trace
        sys.settrace(trace); sys.setprofile(trace)
        def count(s): return -1""",
    "skips the tests": """
        import unittest
        def count(s): raise unittest.SkipTest('skip')""",
    "skips as pytest does": """
        def count(s):
            try: import pytest
            except ImportError: return -1
            pytest.skip('skip', allow_module_level=True)""",
    "fails as expected": "def count(s):\n    import pytest\n    pytest.xfail('known')",
    "patches what tests use": """
        import builtins, math, operator, unittest
        builtins.abs = lambda x: 0
        math.isclose = operator.eq = lambda *a, **k: True
        for name in dir(unittest.TestCase):
            if name.startswith('assert'): setattr(unittest.TestCase, name, lambda *a, **k: None)
        def abs(x): return 0
        def isinstance(*a): return True
        def count(s): return -1""",
    "brings its own tests": """
        def check(candidate): pass
        class Tests: pass
        def test_count(): pass
        def count(s): return -1""",
    "brings its own modules": """
        import os, sys
        for place in ('/box', '/tmp', '.'):
            for name in ('unittest', 'pytest', 'json', 'conftest', 'sitecustomize', 'solution', 'test_solution'):
                try: open(f'{place}/{name}.py', 'w').write('import os; os._exit(0)')
                except OSError: pass
        def count(s): return -1""",
    "forks": "import os\ndef count(s):\n    if os.fork(): os._exit(0)\n    return 0",
    "answers twice": "import os\ndef count(s):\n    return 0 if os.fork() else 3",
    "starts over": """
        import os, sys
        if not sys.flags.optimize: os.execv(sys.executable, [sys.executable, '-O', '-c', 'pass'])
        def count(s): return -1""",
    "kills everyone": "import os, signal\ndef count(s):\n    os.kill(-1, signal.SIGKILL)\n    return 0",
    "stops everyone": """
        import os, signal
        def count(s):
            for pid in range(1, 50):
                if pid != os.getpid():
                    try: os.kill(pid, signal.SIGSTOP)
                    except OSError: pass
            return -1""",
    "returns something endless": "import itertools\ndef count(s): return itertools.count()",
    "returns something deep": "def count(s):\n    x = []\n    for _ in range(100000): x = [x]\n    return x",
    "returns itself": "def count(s):\n    x = []\n    x.append(x)\n    return x",
    "returns a lot": "def count(s): return 'x' * (64 << 20)",
    "recurses": "import sys\nsys.setrecursionlimit(1 << 30)\ndef count(s): return count(s)",
    "ignores its time": """
        import signal
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        def count(s):
            while True:
                try:
                    while True: pass
                except BaseException: pass""",
    "grows": "x = []\ndef count(s):\n    while True: x.append(bytearray(1 << 24))",
    "is lazy": """
        class Lazy(int):
            def __int__(self): return 3
            def __index__(self): return 3
            def __reduce__(self): return (int, (3,))
            def __str__(self): return '3'
            __repr__ = __str__
        def count(s): return Lazy(-1)""",
    "turns asserts off": """
        import builtins
        def count(s):
            builtins.__dict__['__debug__'] = False
            return -1""",
}


def judged(code: str, tests: Any) -> Any:
    function = "count" if isinstance(tests, list) or "check" in tests else None
    return deepcoder_code_reward(
        messages=answer(code), ground_truth=tests, target_function=function, timeout=1, max_memory_mb=256
    )


@pytest.mark.parametrize("style", FUNCTION_TESTS)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_function_passes(name: str, style: str) -> None:
    result = judged(RIGHT[name], FUNCTION_TESTS[style])
    skip_without_pytest(result)
    assert (result.score, result.is_score_valid) == (1.0, True), result.reason


def skip_without_pytest(result: EvaluateResult) -> None:
    """The interpreter in the sandbox is not always the one that runs these tests, and need not have it."""
    if "the tests need pytest" in (result.reason or ""):
        pytest.skip(str(result.reason))


QUICK = ("values", "check", "loop", "unittest")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_fails_however_it_is_tested(name: str) -> None:
    slow = name in ("ignores its time", "grows", "stops everyone", "returns something endless")
    for style in QUICK[:1] + QUICK[2:3] if slow else QUICK:
        result = judged(WRONG[name], FUNCTION_TESTS[style])
        assert (result.score, result.is_score_valid) == (0.0, True), (style, result.reason)


@pytest.mark.parametrize(
    "name", ["always equal", "fails as expected", "skips as pytest does", "patches what tests use"]
)
def test_a_wrong_function_fails_in_pytest(name: str) -> None:
    result = judged(WRONG[name], BY_PYTEST)
    skip_without_pytest(result)
    assert (result.score, result.is_score_valid) == (0.0, True), result.reason


# ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

BY_INPUT = [{"input": f"{text}\n", "expected_output": f"{count}\n"} for text, count in CASES]
WRONG_PROGRAMS = {
    "right for one, then out": "import os; os.write(1, b'0\\n'); os._exit(0)",
    "leaves a child that holds its output": "import subprocess; subprocess.Popen(['sleep', '60']); print(0)",
    "reads what is expected": """
        import glob, json
        for path in glob.glob('/*/*.json') + glob.glob('*') + glob.glob('/proc/*/cmdline'):
            try: print(json.load(open(path))[0]['expected_output'])
            except Exception: pass
        print(0)""",
    "looks like numbers": "print('\\uff10\\u200b')",
    "floods": "while True: print('0 ' * 10000)",
    "many tokens": "print(('1' * 40 + ' ') * 20000 + 'x')",
    "fails late": "print(len(input().replace(' ', ''))); raise ValueError",
    "is ended by itself": "import os, signal; print(0, flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "writes to the terminal of others": "open('/proc/1/fd/1', 'w').write('0')",
    "closes everything": "import os; os.closerange(0, 100)",
    "opens its input again": "import sys; sys.stdin = open('/dev/stdin'); print('?', sys.stdin.read() and 0)",
}


@pytest.mark.parametrize("name", WRONG_PROGRAMS)
def test_a_wrong_program_fails(name: str) -> None:
    messages = answer(textwrap.dedent(WRONG_PROGRAMS[name]))
    result = deepcoder_code_reward(messages=messages, ground_truth=BY_INPUT, timeout=2)
    assert (result.score, result.is_score_valid) == (0.0, True), result.reason


def test_a_right_program_passes_after_all_of_them() -> None:
    result = deepcoder_code_reward(messages=answer("print(len(input().replace(' ', '')))"), ground_truth=BY_INPUT)
    assert result.score == 1.0, result.reason
