# SPDX-License-Identifier: Apache-2.0
"""Programs in zygotes: they behave as under an interpreter of their own, within limits, and leave nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from reward_kit.errors import ConfigError, SandboxError
from reward_kit.sandbox.python.pool import PythonZygote
from tests.sandbox.python.zygotes import LIMITS, working_zygotes

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform != "linux", reason="zygotes need Linux"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def zygotes() -> AsyncIterator[PythonZygote]:
    async with working_zygotes() as pool:
        yield pool


# ── as an interpreter would ──────────────────────────────────────────────────────────────────────────────────────────

PROGRAMS = {
    "prints": "print('a', 1)",
    "reads lines": "print(int(input()) + int(input()))",
    "reads what is not there": "while True: input()",
    "reads bytes": "import sys; print(sys.stdin.buffer.read())",
    "reads in a thread": """
import sys, threading
sys.setrecursionlimit(1 << 20); threading.stack_size(1 << 26)
def main(): print(sum(map(int, sys.stdin.buffer.read().split())))
t = threading.Thread(target=main); t.start(); t.join()""",
    "opens descriptor 0": "print(open(0).read().split())",
    "opens /dev/stdin": "print(open('/dev/stdin').read().split())",
    "leaves": "import sys; print('x'); sys.exit(0)",
    "leaves with a number": "import sys; sys.exit(7)",
    "leaves with a large number": "import sys; sys.exit(-1)",
    "leaves with a word": "import sys; sys.exit('no')",
    "leaves at once": "import os; print('lost'); os._exit(5)",
    "raises": "def f(): 1 / 0\nf()",
    "raises in an exit handler": "import atexit; atexit.register(lambda: 1 / 0)",
    "is not Python": "print('a'",
    "is interrupted": "raise KeyboardInterrupt",
    "kills itself": "import os, signal; print(1, flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "aborts": "import os; os.abort()",
    "cleans up": "import atexit; atexit.register(print, 'bye'); print('hello')",
    "threads outlive the main one": """
import threading, time
threading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start(); print('early')""",
    "daemon threads do not": "import threading as t; t.Thread(target=t.Event().wait, daemon=True).start()",
    "never closes its output": "out = open(1, 'w', closefd=False); out.write('kept')",
    "finalizers run": "class A:\n    def __del__(self): print('gone')\na = A()",
    "hooks its exceptions": "import sys; sys.excepthook = lambda *a: print('hooked', a[0]); 1 / 0",
    "hook that leaves": "import sys, os; sys.excepthook = lambda *a: os._exit(0); 1 / 0",
    "closes its output": "import sys; print(1); sys.stdout.close()",
    "knows itself": "import sys; print(__name__, __file__.rpartition('/')[2], sys.argv, sys.path[0] == __file__[:-8])",
    "is imported from": "import __main__; x = 5; print(__main__.x, vars(__main__) is globals())",
    "recurses as deep as any": "def f(n): return n and 1 + f(n - 1)\nprint(f(995))",
    "recurses too deep": "def f(n): return 1 + f(n + 1)\ntry: f(0)\nexcept RecursionError: print('deep')",
    "writes what is not text": "import sys; sys.stdout.buffer.write(b'\\xff\\x00\\n')",
    "has no future": "def f(x: undefined): pass",
    "pickles its own classes": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
    "uses temporary files": "import tempfile as t; f = t.TemporaryFile('w+'); f.write('t'); f.seek(0); print(f.read())",
    "starts processes": """
import subprocess, sys
print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout)""",
    "uses multiprocessing": """
import multiprocessing
def square(x): return x * x
if __name__ == '__main__':
    with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(square, range(5)))""",
    "forks": "import os\nif pid := os.fork(): print(os.waitpid(pid, 0)[1])\nelse: os._exit(3)",
    "talks to itself": """
import socket
with socket.create_server(('127.0.0.1', 0)) as server: print(socket.create_connection(server.getsockname()).family)""",
}


def without_addresses(text: str) -> str:
    return re.sub("0x[0-9a-f]+", "0x", text)


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_does_what_it_does_in_an_interpreter_of_its_own(
    zygotes: PythonZygote, tmp_path: Path, name: str
) -> None:
    stdin = b"12\n30\n"
    main = tmp_path / "main.py"
    main.write_text(PROGRAMS[name])
    command, plain = [sys.executable, "main.py"], {"LANG": "C.UTF-8"}
    alone = subprocess.run(command, input=stdin, capture_output=True, cwd=tmp_path, env=plain, timeout=60, check=False)
    result = await zygotes.run(PROGRAMS[name], stdin=stdin)
    code = -result.signal if result.signal else result.exit_code
    assert (code, result.stdout) == (alone.returncode, alone.stdout.decode(errors="replace"))
    told = alone.stderr.decode(errors="replace").replace(str(tmp_path), "/box")
    assert without_addresses(result.stderr) == without_addresses(told)
    assert not (result.timed_out or result.oom_killed or result.truncated)


async def test_a_program_has_its_arguments_files_and_input(zygotes: PythonZygote) -> None:
    code = "import sys, pkg.part; print(sys.argv[1:], pkg.part.X, open('data.bin', 'rb').read(), len(sys.stdin.read()))"
    files = {"pkg/part.py": b"X = 1", "data.bin": b"\0\xff"}
    result = await zygotes.run(code, argv=["-v", "ü"], files=files, stdin=b"x" * 3_000_000)
    assert result.output == "['-v', 'ü'] 1 b'\\x00\\xff' 3000000\n"


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "", "main.py"])
async def test_a_file_outside_its_directory_is_refused(zygotes: PythonZygote, name: str) -> None:
    with pytest.raises(ConfigError, match="Give"):
        await zygotes.run("pass", files={name: b""})


async def test_both_streams_are_kept_apart_and_together(zygotes: PythonZygote) -> None:
    code = "import sys\nfor n in range(3): print(n, flush=True); print('e', n, file=sys.stderr)"
    result = await zygotes.run(code)
    assert (result.stdout, result.stderr) == ("0\n1\n2\n", "e 0\ne 1\ne 2\n")
    assert sorted(result.output.splitlines()) == sorted((result.stdout + result.stderr).splitlines())


async def test_every_run_is_fresh(zygotes: PythonZygote) -> None:
    look = """
import builtins, json, os, random, sys, tempfile, uuid
print(os.listdir('/tmp'), os.listdir('.'), os.getpid(), len(sys.modules), hasattr(builtins, 'left'), json.dumps(1))
print(random.random(), next(tempfile._get_candidate_names()), uuid.uuid4())
open('/tmp/left', 'w'); open('left', 'w'); open('/dev/shm/left', 'w')
builtins.left = 1; json.dumps = None; os.environ['LEFT'] = '1'
"""
    first, second = [(await zygotes.run(look)).stdout.splitlines() for _ in range(2)]
    assert first[0] == second[0]
    assert all(one != other for one, other in zip(first[1].split(), second[1].split(), strict=True))


async def test_what_a_run_used_is_measured(zygotes: PythonZygote) -> None:
    busy = "import time\nx = bytearray(40 << 20)\nwhile time.process_time() < 0.2: pass"
    result = await zygotes.run(busy)
    assert result.cpu_seconds is not None and result.cpu_seconds >= 0.2
    assert result.wall_seconds >= result.cpu_seconds / (os.cpu_count() or 1)
    assert result.peak_memory_bytes is not None and result.peak_memory_bytes >= 40 << 20
    idle = await zygotes.run("pass")
    assert idle.peak_memory_bytes is not None and idle.peak_memory_bytes < 40 << 20


async def test_memory_too_small_to_begin_is_the_sandbox_failing_not_the_program(zygotes: PythonZygote) -> None:
    with pytest.raises(SandboxError):
        await zygotes.run("pass", files={"big": bytes(4 << 20)}, limits=replace(LIMITS, memory_mb=2))
    assert (await zygotes.run("print(1)")).ok
