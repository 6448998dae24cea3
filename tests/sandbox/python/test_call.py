# SPDX-License-Identifier: Apache-2.0
"""Functions called in zygotes: plain values come out, whatever the code does, and nothing that it should not know."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import pytest

from reward_kit.sandbox.isolated_python import CallOutcome
from reward_kit.sandbox.python.pool import PythonZygote
from tests.sandbox.python.zygotes import LIMITS

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform != "linux", reason="zygotes need Linux"),
]

both_ways = pytest.mark.parametrize("isolated", [True, False], ids=["isolated", "shared"])


def kinds(outcomes: list[CallOutcome]) -> list[str]:
    return [outcome.kind for outcome in outcomes]


def values(outcomes: list[CallOutcome]) -> list[object]:
    return [outcome.value for outcome in outcomes]


# ── ordinary functions ───────────────────────────────────────────────────────────────────────────────────────────────


@both_ways
async def test_each_call_has_its_outcome(zygotes: PythonZygote, isolated: bool) -> None:
    code = "def f(a, b=2):\n    print('noise', a)\n    return a / b"
    outcomes = await zygotes.call(code, "f", [[4, 1], [3], [1, 0], []], isolated=isolated)
    assert kinds(outcomes) == ["returned", "returned", "raised", "raised"]
    assert values(outcomes[:2]) == [4.0, 1.5]
    assert outcomes[2].error == "ZeroDivisionError: division by zero"
    assert outcomes[3].error.startswith("TypeError: f() missing")


@both_ways
async def test_values_keep_their_types(zygotes: PythonZygote, isolated: bool) -> None:
    given: list[object] = [
        None,
        True,
        -3,
        10**400,
        10**5000,
        0.1,
        1e400,
        "ü\ud800\0",
        b"\xff",
        [],
        [1, [2]],
        (1, (2,)),
        {1, 2},
    ]
    given += [frozenset({(1, 2)}), {1: "a", (2, 3): [None]}, 1 + 2j, ["a"] * 3]
    outcomes = await zygotes.call("def f(x): return x", "f", [[value] for value in given], isolated=isolated)
    assert [(type(value), value) for value in values(outcomes)] == [(type(value), value) for value in given]


async def test_a_method_and_an_expression(zygotes: PythonZygote) -> None:
    code = "class Solution:\n    def add(self, a, b): return a + b\nOPS = {'neg': lambda x: -x}"
    assert values(await zygotes.call(code, "Solution().add", [[1, 2], ["a", "b"]])) == [3, "ab"]
    assert values(await zygotes.call(code, "OPS['neg']", [[1]])) == [-1]
    assert (await zygotes.call(code, "missing", [[1]]))[0].error == "NameError: name 'missing' is not defined"


async def test_guarded_code_is_not_run(zygotes: PythonZygote) -> None:
    code = "def f(): return __name__\nif __name__ == '__main__': raise SystemExit(1)"
    assert values(await zygotes.call(code, "f", [[]])) == ["solution"]


async def test_state_lasts_only_in_one_process(zygotes: PythonZygote) -> None:
    code = "def f(x, seen=[]):\n    seen.append(x)\n    return seen"
    assert values(await zygotes.call(code, "f", [[1], [2], [3]])) == [[1], [2], [3]]
    assert values(await zygotes.call(code, "f", [[1], [2], [3]], isolated=False)) == [[1], [1, 2], [1, 2, 3]]


async def test_subclasses_come_out_as_what_they_hold(zygotes: PythonZygote) -> None:
    code = """
import collections, enum
class Any(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
    def __index__(self): return 99
    def __repr__(self): return '99'
class Near(float):
    def __sub__(self, other): return 0.0
    def __float__(self): return 99.0
    def __repr__(self): return '99.0'
class Text(str):
    def __eq__(self, other): return True
    __hash__ = str.__hash__
    def __str__(self): return '99'
class Bag(dict):
    def items(self): return [(99, 99)]
class Color(enum.IntEnum): RED = 3
Point = collections.namedtuple('Point', 'x y')
THINGS = [Any(1), Near(1), Text('1'), Bag(a=1), Color.RED, Point(1, 2), collections.Counter('aa'), [Any(1)]]
def f(n): return THINGS[n]
"""
    found = values(await zygotes.call(code, "f", [[n] for n in range(8)]))
    assert found == [1, 1.0, "1", {"a": 1}, 3, (1, 2), {"a": 2}, [1]]
    kinds = [type(value).__name__ for value in found]
    assert kinds == ["int", "float", "str", "dict", "int", "Point", "Counter", "list"]
    assert isinstance(found[5], tuple) and getattr(found[5], "_fields", None) == ("x", "y")


@both_ways
async def test_what_is_not_plain_data_is_not_returned(zygotes: PythonZygote, isolated: bool) -> None:
    code = "import math\ndef f(n):\n    x = []; x.append(x)\n    return [object(), math.sin, x, (i for i in 'a'), f][n]"
    outcomes = await zygotes.call(code, "f", [[n] for n in range(5)], isolated=isolated)
    assert kinds(outcomes) == ["raised"] * 5
    assert outcomes[0].error == "TypeError: a 'object' is not plain data"


# ── functions that do not return ─────────────────────────────────────────────────────────────────────────────────────


@both_ways
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("import sys; sys.exit(0)", "raised"),
        ("raise KeyboardInterrupt", "raised"),
        ("class E(BaseException):\n        def __str__(self): raise self\n    raise E", "raised"),
        ("import os; os._exit(0)", "died"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "died"),
        ("import os\n    if os.fork(): os._exit(0)\n    import time; time.sleep(60)", "died"),
        ("import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'pass'])", "died"),
        ("import ctypes; ctypes.string_at(1)", "died"),
        ("import time; time.sleep(60)", "timed_out"),
        ("while True:\n        try:\n            while True: pass\n        except BaseException: pass", "timed_out"),
        ("import os; os.close(3); import time; time.sleep(60)", None),
        ("import threading, os\n    threading.Timer(0.05, os._exit, [0]).start(); threading.Event().wait()", "died"),
    ],
)
async def test_one_call_that_goes_wrong_leaves_the_others(
    zygotes: PythonZygote, isolated: bool, body: str, kind: str | None
) -> None:
    code = f"def f(x):\n    if x != 1: return x\n    {body}"
    outcomes = await zygotes.call(code, "f", [[0], [1], [2]], isolated=isolated, timeout=1.0)
    assert values(outcomes) == [0, None, 2]
    assert outcomes[1].kind == (kind or outcomes[1].kind) and not outcomes[1].ok


async def test_cpu_time_is_for_each_call(zygotes: PythonZygote) -> None:
    code = "from time import process_time as now\ndef f(s):\n    end = now() + s\n    while now() < end: pass"
    limits = replace(LIMITS, cpu_seconds=1.0)
    for isolated in (True, False):
        outcomes = await zygotes.call(code, "f", [[0.6], [0.6], [30]], isolated=isolated, limits=limits)
        assert kinds(outcomes) == ["returned", "returned", "timed_out"]


@both_ways
async def test_memory_is_limited(zygotes: PythonZygote, isolated: bool) -> None:
    code = "def f(n):\n    x = bytearray(n << 20)\n    return len(x) >> 20"
    outcomes = await zygotes.call(code, "f", [[1], [900], [2]], isolated=isolated)
    assert values(outcomes) == [1, None, 2]
    assert outcomes[1].oom_killed or "MemoryError" in outcomes[1].error


@pytest.mark.parametrize(
    ("code", "kind", "error"),
    [
        ("def f(:", "raised", "while the code was loaded: SyntaxError"),
        ("1 / 0", "raised", "while the code was loaded: ZeroDivisionError"),
        ("raise SystemExit(0)", "raised", "while the code was loaded: SystemExit: 0"),
        ("import os; os._exit(0)", "died", "while the code was loaded: the process ended"),
        ("while True: pass", "timed_out", "while the code was loaded: its time was over"),
    ],
)
async def test_code_that_cannot_be_loaded_fails_every_call(
    zygotes: PythonZygote, code: str, kind: str, error: str
) -> None:
    outcomes = await zygotes.call(code, "f", [[1], [2]], timeout=1.0)
    assert kinds(outcomes) == [kind, kind] and outcomes[0].error.startswith(error)


async def test_stopping_early(zygotes: PythonZygote) -> None:
    outcomes = await zygotes.call("def f(x): return 1 / x", "f", [[1], [0], [1]], stop_early=True)
    assert kinds(outcomes) == ["returned", "raised", "skipped"]
    assert await zygotes.call("def f(x): return 1 / x", "f", []) == []


# ── functions that cheat ─────────────────────────────────────────────────────────────────────────────────────────────


@both_ways
async def test_noise_on_every_descriptor_is_no_answer(zygotes: PythonZygote, isolated: bool) -> None:
    code = """
import os, json, struct
def f(x):
    for fd in range(3, 32):
        for body in (b'true', json.dumps({'kind': 'returned', 'value': 1}).encode(), bytes(64), b'\\xff' * 64):
            for data in (body, struct.pack('!I', len(body)) + body):
                try: os.write(fd, data)
                except OSError: pass
    os._exit(0)
"""
    assert kinds(await zygotes.call(code, "f", [[1], [2]], isolated=isolated)) == ["died", "died"]


async def test_a_call_cannot_answer_for_the_next(zygotes: PythonZygote) -> None:
    """Whatever the first call writes, starts or changes, the others are answered by the function itself.

    Its own answer is what one of its processes says first: 0, or 666 from the process that it starts.
    """
    code = """
import os, struct, sys, threading, time, builtins, json
def forge(frames):
    for nonce in [bytes(16)] + frames:
        body = nonce + b'R666'
        os.write(3, struct.pack('!I', len(body)) + body)
def f(x):
    if x: return x
    seen = [v for frame in iter_frames() for v in frame.f_locals.values() if isinstance(v, bytes) and len(v) == 16]
    forge([])
    if os.fork() == 0:
        os.setsid()
        while True:
            forge(seen); time.sleep(0.001)
    globals()['f'] = lambda x: 666
    builtins.eval = lambda *a: (lambda x: 666)
    json.JSONEncoder.encode = lambda *a: '666'
    return 0
def iter_frames():
    frame = sys._getframe()
    while frame: yield frame; frame = frame.f_back
"""
    first, *others = values(await zygotes.call(code, "f", [[0], [1], [2]]))
    assert first in (0, 666) and others == [1, 2]


async def test_a_call_cannot_say_that_it_is_over(zygotes: PythonZygote) -> None:
    """One that answers, tells its own end and goes on is waited for, and it never reads what the next is given."""
    code = """
import os, struct, sys
def say(nonce, content):
    os.write(3, struct.pack('!I', len(nonce + content)) + nonce + content)
def f(x):
    if x: return x
    frame = sys._getframe()
    while 'nonce' not in frame.f_locals: frame = frame.f_back
    say(frame.f_locals['nonce'], b'R0'); say(frame.f_locals['nonce'], b'E0')
    while True:
        for descriptor in (3, 4):
            try: request = os.read(descriptor, 1 << 16)
            except OSError: continue
            say(request[4:20], b'R666'); say(request[4:20], b'E0'); say(request[-16:], b'E0')
"""
    outcomes = await zygotes.call(code, "f", [[0], [1], [2]], timeout=1.0)
    assert kinds(outcomes) == ["timed_out", "returned", "returned"] and values(outcomes) == [None, 1, 2]


async def test_nothing_of_a_call_outlives_it(zygotes: PythonZygote) -> None:
    code = """
import os, time
def f(n):
    if n and os.fork() == 0:
        os.setsid(); os.fork(); time.sleep(60)
    return [pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) not in (1, os.getppid(), os.getpid())]
"""
    outcomes = await zygotes.call(code, "f", [[0], [1], [0]])
    assert values(outcomes[::2]) == [[], []] and outcomes[1].value


async def test_no_call_sees_the_arguments_of_another(zygotes: PythonZygote) -> None:
    code = """
import gc, sys
def f(x):
    found, frame = [], sys._getframe()
    while frame: found.append(str(frame.f_locals)); frame = frame.f_back
    texts = found + [str(o) for o in gc.get_objects() if type(o) in (list, dict, tuple)][:20000]
    memory = open('/proc/self/mem', 'rb', 0)
    for line in open('/proc/self/maps'):
        begin, end = (int(part, 16) for part in line.split()[0].split('-'))
        if 'rw' in line:
            memory.seek(begin); texts.append(memory.read(end - begin).decode('latin-1'))
    return [word for n in range(3) if (word := 'argu' + 'ment-%d' % n) in ''.join(texts)]
"""
    outcomes = await zygotes.call(code, "f", [[f"argument-{n}"] for n in range(3)])
    found = values(outcomes)
    assert found[0] == ["argument-0"]
    assert isinstance(found[1], list) and "argument-2" not in found[1]


async def test_an_answer_that_would_hurt_its_reader(zygotes: PythonZygote) -> None:
    deep = "'[' * 60000"
    flood = """'{"set":[' + ','.join(str((2**61 - 1) * n) for n in range(2500)) + ']}'"""
    for text in (deep, flood, "'nonsense'", "'{\"tuple\":5}'", "'9' * 20000", "'\"' + 'x' * 10_000_000 + '\"'"):
        code = f"""
import os, struct, sys
def f():
    frame = sys._getframe()
    while 'nonce' not in frame.f_locals: frame = frame.f_back
    body = frame.f_locals['nonce'] + b'R' + ({text}).encode()
    data = struct.pack('!I', len(body)) + body
    while data: data = data[os.write(3, data):]
"""
        outcome = (await asyncio.wait_for(zygotes.call(code, "f", [[]], timeout=5), 30))[0]
        assert outcome.kind == "died", outcome


@both_ways
async def test_large_arguments_and_large_answers(zygotes: PythonZygote, isolated: bool) -> None:
    code = "def f(xs, n): return [len(xs), 'x' * n]"
    arguments = [[list(range(200_000)), 10], [[], 60_000], [[], 70_000]]
    outcomes = await zygotes.call(code, "f", arguments, isolated=isolated)
    assert values(outcomes)[:2] == [[200_000, "x" * 10], [0, "x" * 60_000]]
    assert outcomes[2].kind == "raised" and "too many" in outcomes[2].error


async def test_arguments_that_are_never_read(zygotes: PythonZygote) -> None:
    code = "import threading, time\ndef f(x):\n    time.sleep(60)\n"
    big = [[list(range(300_000))]] * 2
    assert kinds(await zygotes.call(code, "f", big, isolated=False, timeout=0.5)) == ["timed_out", "timed_out"]
    stuck = "import os\nos.fork() and os._exit(0)\n"
    assert kinds(await zygotes.call(stuck, "f", big, timeout=0.5)) == ["died", "died"]
