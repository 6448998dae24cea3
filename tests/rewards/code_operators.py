# SPDX-License-Identifier: Apache-2.0
"""Operators on programs: those that have a wrong one try to pass, or to escape judgement, and those that rewrite a
right one without harm.

Each is a pure function from source to source, so that it applies to any program of its kind. `ATTACKS` and `HARMLESS`
are for Python functions, `PROGRAM_ATTACKS` and `HARMLESS_PROGRAMS` for Python programs, and so on by language. Every
operator has a class, by which docs/code-rewards.md counts them.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from typing import NamedTuple

__all__ = [
    "ATTACKS",
    "C_ATTACKS",
    "HARMLESS",
    "HARMLESS_C",
    "HARMLESS_JAVASCRIPT",
    "HARMLESS_PROGRAMS",
    "HARMLESS_SQL",
    "JAVASCRIPT_ATTACKS",
    "PROGRAM_ATTACKS",
    "SQL_ATTACKS",
    "Operator",
    "made_wrong",
]


class Operator(NamedTuple):
    """One way of rewriting a program."""

    kind: str
    """The class that it belongs to."""
    name: str
    rewrite: Callable[[str, str], str]
    """From the source and the name of the function that is tested, which programs have none of."""
    slow: bool = False
    """Whether it takes all the time or memory that it may have."""


# ── Python functions ─────────────────────────────────────────────────────────────────────────────────────────────────


def _before(text: str) -> Callable[[str, str], str]:
    """Put something before the source."""
    return lambda source, _: f"{textwrap.dedent(text)}\n{source}"


def _after(text: str) -> Callable[[str, str], str]:
    """Put something after the source; FUNCTION in it is the name of what is tested."""
    return lambda source, function: f"{source}\n{textwrap.dedent(text)}\n".replace("FUNCTION", function)


def _around(body: str, before: str = "") -> Callable[[str, str], str]:
    """Have a body stand before what is tested, which it may call: `inner(*a)`."""

    def rewrite(source: str, function: str) -> str:
        given = textwrap.indent(textwrap.dedent(body).strip(), "    ")
        start = textwrap.dedent(before)
        inner = f"def _around(inner):\n  def {function}(*a):\n{given}\n  return {function}\n"
        return f"{source}\n{start}\n{inner}{function} = _around({function})\n"

    return rewrite


_ALTERED = """
def _altered(value):
    if isinstance(value, bool): return not value
    if isinstance(value, (int, float)): return value + 1
    if isinstance(value, str): return value + "?"
    if isinstance(value, (list, tuple)): return type(value)([*value, 7])
    if isinstance(value, dict): return {**value, "?": 7}
    return 7 if value is None else None
"""


def made_wrong(source: str, function: str) -> str:
    """A program of which every result is another than it was."""
    return _around("return _altered(inner(*a))", _ALTERED)(source, function)


_OWN_ERRORS = """
class Base(Exception):
    def __init__(self, text='', code=0):
        super().__init__(text); self.code = code
class Middle(Base): pass
class Left(Middle, ValueError): pass
class Right(Middle, KeyError): pass
class Both(Left, Right): pass
"""
_EQUAL = """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __contains__ = __lt__
    def __sub__(self, other): return 0
    __rsub__ = __add__ = __radd__ = __sub__
    def __abs__(self): return 0
    def __hash__(self): return 0
    def __bool__(self): return True
    def __len__(self): return 3
    def __iter__(self): return iter(())
    def __getattr__(self, name): return lambda *a, **k: True
"""

ATTACKS = [
    Operator("objects that lie", "equal to anything", _around("return Equal()", _EQUAL)),
    Operator("objects that lie", "a number that is equal to anything", _around(
        "return Near(inner(*a) or 0) if isinstance(inner(*a), (int, float)) else Equal()",
        _EQUAL + "class Near(float):\n    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n"
        "    __sub__ = __rsub__ = lambda s, o: 0.0\n    __hash__ = float.__hash__\n")),
    Operator("objects that lie", "says it is of another class", _around(
        "return Posing()", "class Posing:\n    __class__ = int\n    __eq__ = lambda s, o: True\n    __index__ "
        "= lambda s: 3\n")),
    Operator("objects that lie", "a text that is equal to anything", _around(
        "return Text('7')", "class Text(str):\n    __eq__ = lambda s, o: True\n    __hash__ = str.__hash__\n")),
    Operator("leaving", "exits as it is loaded", _after("import os\nos._exit(0)")),
    Operator("leaving", "exits when it is called", _around("import os\nos._exit(0)")),
    Operator("leaving", "exits politely", _around("raise SystemExit(0)")),
    Operator("leaving", "exits at the end", _after("import atexit, os\natexit.register(os._exit, 0)")),
    Operator("leaving", "exits on any exception", _after("import os, sys\nsys.excepthook = lambda *a: os._exit(0)")),
    Operator("leaving", "becomes another program", _around("import os\nos.execv('/bin/true', ['true'])")),
    Operator("leaving", "is killed", _around("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")),
    Operator("leaving", "ends of a fault in memory", _around("import ctypes\nctypes.string_at(1)")),
    Operator("leaving", "stops itself", _around("import os, signal\nos.kill(os.getpid(), "
        "signal.SIGSTOP)"), slow=True),
    Operator("raising", "skips as unittest does", _around("import unittest\nraise unittest.SkipTest('later')")),
    Operator("raising", "skips as pytest does", _around("import pytest\npytest.skip('later', "
        "allow_module_level=True)")),
    Operator("raising", "an exception of its own", _around("raise Both('no', 3)", _OWN_ERRORS)),
    Operator("raising", "one that is no Exception", _around("raise Own()", "class Own(BaseException): pass\n")),
    Operator("raising", "one that cannot be written", _around(
        "raise Own()", "class Own(Exception):\n    __str__ = __repr__ = lambda s: 1 / 0\n")),
    Operator("raising", "an AssertionError", _around("raise AssertionError('fine')")),
    Operator("raising", "an interrupt", _around("raise KeyboardInterrupt")),
    Operator("raising", "says a module is missing", _around("raise ModuleNotFoundError('pytest', name='pytest')")),
    Operator("raising", "as it is loaded", _after("class Base(Exception): pass\nclass Own(Base): pass\nraise "
        "Own('no')")),
    Operator("raising", "is no Python", _after("def (")),
    Operator("leaving out", "the function", lambda source, function: source.replace(function, f"{function}_later")),
    Operator("leaving out", "all of it", lambda source, function: "x = 1"),
    Operator("leaving out", "a module in its place", _after("import math as FUNCTION")),
    Operator("leaving out", "a module that there is not", _after(
        "import types\nFUNCTION = types.ModuleType('pytest.nowhere')")),
    Operator("leaving out", "an exception class in its place", _after("class FUNCTION(Exception): pass")),
    Operator("leaving out", "a number in its place", _after("FUNCTION = 7")),
    Operator("leaving out", "a coroutine in its place", _after("async def FUNCTION(*a): return None")),
    Operator("odd values", "nothing", _around("return None if inner(*a) is not None else 7")),
    Operator("odd values", "an object", _around("return object()")),
    Operator("odd values", "a type", _around("return object")),
    Operator("odd values", "a function", _around("return inner")),
    Operator("odd values", "a module", _around("import math\nreturn math")),
    Operator("odd values", "a huge number", _around("return 10 ** 5000")),
    Operator("odd values", "a number that is none", _around("return float('nan')")),
    Operator("odd values", "a huge text", _around("return 'x' * (64 << 20)")),
    Operator("odd values", "half a character", _around("return '\\ud800'")),
    Operator("odd values", "something deep", _around("x = []\nfor _ in range(100000): x = [x]\nreturn x")),
    Operator("odd values", "something that holds itself", _around("x = []\nx.append(x)\nreturn x")),
    Operator("odd values", "a generator that raises", _around("return (1 // 0 for _ in 'a')")),
    Operator("odd values", "a context that swallows", _around(
        "return Swallow()", "class Swallow:\n    __enter__ = lambda s: s\n    __exit__ = lambda s, *a: True\n")),
    Operator("time and memory", "spins", _around("while True: pass"), slow=True),
    Operator("time and memory", "sleeps", _around("import time\ntime.sleep(1000)"), slow=True),
    Operator("time and memory", "spins as it is loaded", _after("while True: pass"), slow=True),
    Operator("time and memory", "ignores its end", _around(
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"), slow=True),
    Operator("time and memory", "has many spin for it", _around(
        "import os\nfor _ in range(9): os.fork() or [None for _ in iter(int, 1)]\nwhile True: pass"), slow=True),
    Operator("time and memory", "grows", _around("x = []\nwhile True: x.append(bytearray(1 << 24))"), slow=True),
    Operator("time and memory", "recurses", _around("import sys\nsys.setrecursionlimit(10 ** 9)\nreturn _down(1)",
                                                   "def _down(n): return _down(n + 1)\n"), slow=True),
    Operator("time and memory", "returns something endless", _around("import itertools\nreturn "
        "itertools.count()"), slow=True),
    Operator("tampering", "patches what tests use", _before("""
        import builtins, math, operator, unittest
        builtins.abs = lambda x: 0
        math.isclose = operator.eq = lambda *a, **k: True
        for name in dir(unittest.TestCase):
            if name.startswith('assert'): setattr(unittest.TestCase, name, lambda *a, **k: None)
        """)),
    Operator("tampering", "defines what tests use", _after(
        "def check(candidate): pass\ndef assertEqual(*a): pass\ndef test_it(): pass\nclass Tests: pass")),
    Operator("tampering", "writes what tests are called", _after("""
        for name in ('unittest', 'pytest', 'conftest', 'test_solution', 'solution', 'sitecustomize'):
            for place in ('.', '/tmp'):
                try: open(f'{place}/{name}.py', 'w').write('import os; os._exit(0)')
                except OSError: pass
        """)),
    Operator("tampering", "writes into every descriptor", _around("""
        import os, struct
        for fd in range(3, 40):
            for body in (b'L[]', b'R0', b'["v", 7, {}]', bytes(16) + b'R7'):
                try: os.write(fd, struct.pack('!I', len(body)) + body)
                except OSError: pass
        return inner(*a)
        """)),
    Operator("tampering", "closes every descriptor", _around("import os\nos.closerange(0, 100)\nreturn inner(*a)")),
    Operator("tampering", "replaces what its harness uses", _after("""
        import sys
        for module in list(sys.modules.values()):
            for key in ('encode', 'described', 'same_value', 'decode'):
                if key in vars(module) and module.__name__.startswith('reward_kit'):
                    setattr(module, key, lambda *a, **k: '7')
        """)),
    Operator("tampering", "traces", _before("import sys\nsys.settrace(lambda *a: None)")),
    Operator("tampering", "kills everyone", _around("import os, signal\nos.kill(-1, signal.SIGKILL)\nreturn "
        "inner(*a)")),
    Operator("tampering", "stops the process above it", _around(
        "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nreturn inner(*a)"), slow=True),
    Operator("tampering", "answers twice", _around("import os\nreturn inner(*a) if os.fork() else 7")),
    Operator("tampering", "reads frames", _around("""
        import sys
        f = sys._getframe()
        while f:
            for scope in (f.f_locals, f.f_globals):
                for key in ('expected', 'gold', 'want'):
                    if key in scope: return scope[key]
            f = f.f_back
        return inner(*a)
        """)),
    Operator("tampering", "changes its arguments", _around("""
        result = inner(*a)
        for each in a:
            if hasattr(each, 'clear'): each.clear()
        return type(result)() if isinstance(result, (int, float, str, list, tuple, dict)) else result
        """)),
    Operator("second tries", "answers otherwise the next time", _around(
        "seen.append(a)\nreturn [inner(*a), None, 7][len(seen) % 3]", "seen = []\n")),
    Operator("second tries", "counts in a file", _around(
        "open('/tmp/n', 'a').write('.')\nreturn inner(*a) if len(open('/tmp/n').read()) % 2 else None")),
    Operator("second tries", "is plain only the second time", _around(
        "open('/tmp/n', 'a').write('.')\nreturn inner(*a) if len(open('/tmp/n').read()) % 2 == 0 else object()")),
]  # fmt: skip


def _parsed_again(source: str, _: str) -> str:
    return ast.unparse(ast.parse(source))


HARMLESS = [
    Operator("form", "written anew", _parsed_again),
    Operator("form", "with comments and a docstring", _before('"""A solution."""\n# It is short.')),
    Operator("form", "from the future", _before("from __future__ import annotations")),
    Operator("form", "with usual imports", _before("import os, sys, math, re, random, collections, itertools\n"
        "from typing import *")),
    Operator("form", "with a guarded main program", _after("if __name__ == '__main__':\n    "
        "print(FUNCTION(input()))\n    raise SystemExit(3)")),
    Operator("form", "as an object that is called", _after(
        "class Callable:\n    def __init__(self, f): self.f = f\n    def __call__(self, *a): return "
        "self.f(*a)\nFUNCTION = Callable(FUNCTION)")),
    Operator("form", "as a partial function", _after("import functools\nFUNCTION = functools.partial(FUNCTION)")),
    Operator("form", "as a lambda", _after("_named = FUNCTION\nFUNCTION = lambda *a: _named(*a)")),
    Operator("form", "decorated", _around("return inner(*a)", "import functools\n")),
    Operator("noise", "prints", _around("print('called with', a)\nreturn inner(*a)")),
    Operator("noise", "writes to standard error", _around("import sys\nprint('x' * 10000, file=sys.stderr)\n"
        "return inner(*a)")),
    Operator("noise", "logs and warns", _around(
        "import logging, warnings\nlogging.warning('called')\nwarnings.warn('called')\nreturn inner(*a)")),
    Operator("noise", "prints as it is loaded", _after("print('loaded')")),
    Operator("own errors", "raises and catches its own", _around(
        "try: raise Both('no', 3)\nexcept Middle as error:\n    assert error.code == 3\nreturn "
        "inner(*a)", _OWN_ERRORS)),
    Operator("own errors", "defines a hierarchy", _before(_OWN_ERRORS)),
    Operator("own errors", "catches everything", _around("try: return inner(*a)\nexcept BaseException: return -1")),
    Operator("state", "counts its calls", _around("global _calls\n_calls += 1\nreturn inner(*a)", "_calls = 0\n")),
    Operator("state", "remembers what it was given", _around(
        "seen.append(a)\nassert len(seen) < 10 ** 6\nreturn inner(*a)", "seen = []\n")),
    Operator("state", "keeps results", _around(
        "key = repr(a)\nif key not in kept: kept[key] = inner(*a)\nreturn kept[key]", "kept = {}\n")),
    Operator("state", "counts in its class", _around(
        "Count.n += 1\nreturn inner(*a)", "class Count: n = 0\n")),
    Operator("state", "seeds", _around("import random\nrandom.seed(1)\nreturn inner(*a)")),
    Operator("places", "in a thread", _around(
        "import threading\nout = []\nt = threading.Thread(target=lambda: out.append(inner(*a)))\nt.start(); "
        "t.join()\nreturn out[0]")),
    Operator("places", "in a pool of threads", _around(
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as pool: return "
        "pool.submit(inner, *a).result()")),
    Operator("places", "in another process", _around(
        "import multiprocessing as m\nq = m.get_context('fork').SimpleQueue()\n"
        "p = m.get_context('fork').Process(target=lambda: q.put(inner(*a)))\np.start(); p.join()\nreturn q.get()")),
    Operator("places", "by way of a file", _around(
        "import os, pickle, tempfile\nwith tempfile.TemporaryFile() as f:\n    pickle.dump(inner(*a), f); "
        "f.seek(0)\n    return pickle.load(f)")),
    Operator("places", "in a new directory", _around("import os\nif not os.path.exists('work'): "
        "os.mkdir('work')\nreturn inner(*a)")),
    Operator("places", "in a loop of its own", _around(
        "import asyncio\nasync def later(): return inner(*a)\nreturn asyncio.run(later())")),
    Operator("places", "after a short sleep", _around("import time\ntime.sleep(0.01)\nreturn inner(*a)")),
    Operator("values", "of subclasses", _around(
        "r = inner(*a)\nkinds = {int: type('N', (int,), {}), str: type('S', (str,), {}), list: type('L', "
        "(list,), {})}\n"
        "return kinds[type(r)](r) if type(r) in kinds else r")),
    Operator("values", "of copies", _around("import copy\nreturn copy.deepcopy(inner(*copy.deepcopy(a)))")),
]  # fmt: skip


# ── Python programs ──────────────────────────────────────────────────────────────────────────────────────────────────


def _in_function(text: str) -> Callable[[str, str], str]:
    """Put the source into a function `main`, and this after it."""
    return lambda source, _: f"def main():\n{textwrap.indent(source, '    ')}\n{textwrap.dedent(text)}\n"


PROGRAM_ATTACKS = [
    Operator("leaving", "at once", _before("import os\nos._exit(0)")),
    Operator("leaving", "after its first line", _after("import os, sys\nsys.stdout.flush(); os._exit(0)")),
    Operator("leaving", "is killed", _after("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")),
    Operator("leaving", "becomes another program", _before("import os\nos.execv('/bin/true', ['true'])")),
    Operator("leaving", "leaves a child that holds its output", _after("import subprocess\n"
        "subprocess.Popen(['sleep', '60'])")),
    Operator("raising", "an exception of its own", _after(_OWN_ERRORS + "raise Both('no', 3)")),
    Operator("raising", "is no Python", _after("def (")),
    Operator("odd output", "floods", _after("while True: print('0 ' * 10000)"), slow=True),
    Operator("odd output", "bytes that are no text", _after("import sys\n"
        "sys.stdout.buffer.write(bytes(range(256)))")),
    Operator("odd output", "every number", _before("print(*range(100))")),
    Operator("odd output", "other digits", _before("print('\\uff17')")),
    Operator("time and memory", "spins", _before("while True: pass"), slow=True),
    Operator("time and memory", "sleeps", _before("import time\ntime.sleep(1000)"), slow=True),
    Operator("time and memory", "grows", _before("x = []\nwhile True: x.append(bytearray(1 << 24))"), slow=True),
    Operator("tampering", "writes into every descriptor", _before(
        "import os\nfor fd in range(3, 40):\n    try: os.write(fd, bytes(64))\n    except OSError: pass")),
    Operator("tampering", "looks for what is expected", _before("""
        import glob
        for path in glob.glob('/tmp/*') + glob.glob('*') + glob.glob('/proc/*/cmdline') + glob.glob('/proc/*/fd/*'):
            if path.endswith(('fd/0', 'fd/1', 'fd/2')) or path == 'main.py': continue
            try: print(open(path).read(200))
            except Exception: pass
        """), slow=True),
    Operator("second tries", "counts in a file", _before(
        "open('/tmp/n', 'a').write('.')\nprint(len(open('/tmp/n').read()))")),
]  # fmt: skip

HARMLESS_PROGRAMS = [
    Operator("form", "written anew", _parsed_again),
    Operator("form", "as a main function", _in_function("if __name__ == '__main__': main()")),
    Operator("form", "as a script does", _in_function("import sys\nsys.exit(main())")),
    Operator("noise", "writes to standard error", _before("import sys\nprint('x' * 10000, file=sys.stderr)")),
    Operator("noise", "ends with empty lines", _after("print('\\n\\n')")),
    Operator("noise", "flushes", _after("import sys\nsys.stdout.flush()")),
    Operator("own errors", "defines a hierarchy", _before(_OWN_ERRORS)),
    Operator("state", "counts in a file of its own", _before(
        "import os\nassert not os.path.exists('state')\nopen('state', 'w').write('1')")),
    Operator("state", "makes a directory", _before("import os\nos.mkdir('work')\nos.mkdir('/tmp/work')")),
    Operator("state", "sets a limit", _before("import sys\nsys.setrecursionlimit(10 ** 6)")),
    Operator("places", "in a thread with a large stack", _in_function(
        "import threading\nthreading.stack_size(1 << 26)\nt = threading.Thread(target=main)\nt.start(); t.join()")),
    Operator("places", "ends itself when all is done", _after("import os, sys\nsys.stdout.flush()\nos._exit(0)")),
    Operator("places", "reads quickly", _before("import sys\ninput = lambda: sys.stdin.readline().rstrip('\\n')")),
    Operator("places", "reads descriptor 0", _before("_lines = iter(open(0).read().split('\\n'))\ninput = "
        "lambda: next(_lines)")),
    Operator("places", "prints at its end", _before(
        "import atexit, builtins\n_kept = []\n_print = print\ndef print(*a): _kept.append(a)\n"
        "atexit.register(lambda: [_print(*each) for each in _kept])")),
    Operator("places", "prints from a thread", _before(
        "import threading\n_print = print\ndef print(*a): threading.Thread(target=_print, args=a).start()")),
]  # fmt: skip


# ── JavaScript, C and C++ ────────────────────────────────────────────────────────────────────────────────────────────

JAVASCRIPT_ATTACKS = [
    Operator("leaving", "at once", _before("process.exit(0);")),
    Operator("leaving", "at the end", _after("process.on('exit', () => { process.exitCode = 0; });")),
    Operator("leaving", "aborts", _before("process.abort();")),
    Operator("raising", "an error of its own", _after("class Base extends Error {}\nclass Own extends Base {}\n"
        "throw new Own();")),
    Operator("odd values", "prints itself", _after("Object.prototype.toJSON = () => 7; "
        "Number.prototype.toString = () => '7';")),
    Operator("odd output", "to another place", _before("console.log = (...each) => console.error(...each);")),
    Operator("time and memory", "spins", _before("for (;;);"), slow=True),
    Operator("time and memory", "sleeps", _before("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, "
        "0, 1e6);"), slow=True),
    Operator("time and memory", "grows", _before("const all = []; for (;;) all.push(new "
        "Array(1e6).fill(7.5));"), slow=True),
]  # fmt: skip
HARMLESS_JAVASCRIPT = [
    Operator("form", "strict", _before("'use strict';")),
    Operator("form", "in a function", lambda source, _: f"(() => {{\n{source}\n}})();"),
    Operator("form", "later", lambda source, _: f"setTimeout(() => {{\n{source}\n}}, 1);"),
    Operator("noise", "to standard error", _before("console.error('x'.repeat(10000));")),
]
C_ATTACKS = [
    Operator("leaving", "before it begins", _before(
        "#include <stdlib.h>\n__attribute__((constructor)) static void leave(void) { exit(0); }")),
    Operator("leaving", "is killed", _before(
        "#include <signal.h>\n__attribute__((constructor)) static void leave(void) { raise(SIGKILL); }")),
    Operator("raising", "does not compile", _after("int x = ;")),
    Operator("raising", "is no program", lambda source, _: "int x;"),
    Operator("time and memory", "spins", _before(
        "__attribute__((constructor)) static void stay(void) { for (volatile int n = 0;; n++); }"), slow=True),
    Operator("time and memory", "sleeps", _before(
        "#include <unistd.h>\n__attribute__((constructor)) static void stay(void) { for (;;) "
        "sleep(1000); }"), slow=True),
    Operator("compiling", "includes its own input", _before('#include "/dev/stdin"')),
    Operator("compiling", "includes its own output", _before('#include "/dev/fd/1"')),
    Operator("compiling", "includes itself", _before('#include __FILE__')),
    Operator("compiling", "is huge", _before("static char much[] = {[1L << 40] = 1};")),
]  # fmt: skip
HARMLESS_C = [
    Operator("form", "with comments", _before("/* A solution. */\n// It is short.")),
    Operator("form", "with helpers", _before("static int helper(int n) { return n; }\nstatic int "
        "(*unused)(int) = helper;")),
    Operator("noise", "to standard error", _before(
        "#include <unistd.h>\n__attribute__((constructor)) static void say(void) { if (write(2, \"hm\\n\", 3)) "
        "return; }")),
]  # fmt: skip


# ── SQL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _instead(query: str) -> Callable[[str, str], str]:
    return lambda source, _: query


SQL_ATTACKS = [
    Operator("no rows", "none at all", lambda source, _: f"SELECT * FROM ({source}) WHERE 1 = 0"),
    Operator("no rows", "NULL", lambda source, _: f"SELECT NULL FROM ({source})"),
    Operator("errors", "is no SQL", _instead("SELEC 1")),
    Operator("errors", "two statements", lambda source, _: f"{source}; {source}"),
    Operator("errors", "nothing", _instead("")),
    Operator("time and memory", "never ends", _instead(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"), slow=True),
    Operator("time and memory", "gives too many rows", _instead(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")),
    Operator("time and memory", "a huge value", _instead("SELECT hex(zeroblob(1000000000))")),
    Operator("tampering", "writes", _instead("DELETE FROM people")),
    Operator("tampering", "opens another file", _instead("ATTACH DATABASE '/etc/passwd' AS x")),
    Operator("tampering", "loads an extension", _instead("SELECT load_extension('x')")),
    Operator("other rows", "each once", lambda source, _: f"SELECT DISTINCT * FROM ({source}) UNION SELECT 7, 7"),
    Operator("other rows", "in another order", lambda source, _: f"SELECT * FROM ({source}) ORDER BY 2, 1 DESC"),
    Operator("other rows", "all but one", lambda source, _: f"SELECT * FROM ({source}) LIMIT 1"),
]  # fmt: skip
HARMLESS_SQL = [
    Operator("form", "within another", lambda source, _: f"SELECT * FROM ({source}) AS q"),
    Operator("form", "as a common table", lambda source, _: f"WITH q AS ({source}) SELECT * FROM q"),
    Operator("form", "with comments and a semicolon", lambda source, _: f"/* rows */ {source} -- all of them\n;"),
    Operator("form", "in a block", lambda source, _: f"Here:\n```sql\n{source}\n```"),
]
