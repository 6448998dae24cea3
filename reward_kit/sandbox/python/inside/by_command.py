# SPDX-License-Identifier: Apache-2.0
"""What runs in a sandbox when Python is isolated by commands: one call of a function, or test programs and their code.

    python3 -I -c 'import sys; sys.path.insert(0, "../harness.zip"); …' call|judge      request on standard input

The answer is written to standard output after a mark that came with the request. A call shares its process with the
code, which can write an answer, too: it is the code's own. Test programs share nothing with it: before the request,
which holds the tests, is read, a copy of this process becomes another user and from then on is the code's. Where this
process is not root it cannot make another user. The code can then end the tests, which fails them; it still cannot look
into them.
Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import sys
import tempfile
from types import CoroutineType
from typing import Any

from reward_kit.sandbox.python.inside.objects import serve_objects
from reward_kit.sandbox.python.inside.program import function_of, load_module, new_module, refresh_interpreter
from reward_kit.sandbox.python.inside.tests import CODE, judged
from reward_kit.sandbox.python.messages import CHANNEL, SOLUTION, described
from reward_kit.sandbox.python.plain import decode, encode

__all__ = ["main"]

_PR_SET_DUMPABLE = 4
_USER = 61_000
"""A user that no image knows, so that nothing there is his."""


def main() -> None:
    """Do what the command line says."""
    for name in [name for name in sys.modules if name.split(".")[0] == "reward_kit"]:
        del sys.modules[name]  # code that imports it gets its interpreter's own, or none
    del sys.path[0]
    if sys.argv[1] == "call":
        sys.path.insert(0, os.getcwd())
        _call()
    else:
        _judge()


# ── one call ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _call() -> None:
    """Load the code as a module, call its function, and answer "R" value or "X" exception; "L" where it cannot load."""
    request = json.loads(sys.stdin.buffer.readline())
    arguments = sys.stdin.read()
    answers = _set_streams_aside()
    sys.argv = [SOLUTION]
    solution = new_module("solution", os.path.abspath(SOLUTION))
    with open(SOLUTION, "rb") as file:
        error = load_module(file.read(), solution)
    if error is not None:
        _answer(answers, request["mark"], b"L" + described(error))
        os._exit(0)
    try:
        value = function_of(solution, request["function"])(*decode(arguments))
        if isinstance(value, CoroutineType):
            import asyncio

            value = asyncio.run(value)
        answer = b"R" + encode(value, loose=request["loose"]).encode()
    except BaseException as raised:  # noqa: BLE001 - whatever the code raises is its answer
        answer = b"X" + described(raised)
    _answer(answers, request["mark"], answer)
    os._exit(0)  # threads and exit handlers of the code have no say any more


# ── test programs ────────────────────────────────────────────────────────────────────────────────────────────────────


def _judge() -> None:
    """Run the tests of the request against the code, and answer what they say."""
    with open(SOLUTION, "rb") as file:
        code = file.read()
    asking, answering = socket.socketpair()
    privileged = _begin_code(code, asking, answering)
    answering.close()
    _protect_memory()
    os.dup2(asking.fileno(), CODE)
    request: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    answers = _set_streams_aside()
    _enter_new_directory()
    _write(answers, f"\n{request['mark']}:{'apart' if privileged else 'exposed'}".encode())
    answer = judged(request["tests"], request["setup"], request)
    _answer(answers, request["mark"], answer)
    os._exit(0)


def _begin_code(code: bytes, asking: socket.socket, answering: socket.socket) -> bool:
    """Start the process of the code, which has seen nothing but that; whether it is another user's."""
    reading_end, writing_end = os.pipe()
    if os.fork():
        os.close(writing_end)
        begun = os.read(reading_end, 1)
        os.close(reading_end)
        if not begun:
            sys.exit("the process of the code could not begin")
        return begun == b"+"
    try:
        asking.close()
        os.close(reading_end)
        os.setsid()
        home = _enter_new_directory(copied=True)
        privileged = _become_other_user(home)
        os.dup2(answering.fileno(), CHANNEL)
        _set_streams_aside(keep_none=True)
        os.closerange(CHANNEL + 1, writing_end)
        os.write(writing_end, b"+" if privileged else b"-")
        os.closerange(CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))
        os._exit(serve_objects(code))
    finally:
        os._exit(1)


def _become_other_user(home: str) -> bool:
    """Be a user of our own, to whom only `home` belongs; whether that can be."""
    try:
        for place, _, names in os.walk(home):
            for path in (place, *(os.path.join(place, name) for name in names)):
                os.chown(path, _USER, _USER, follow_symlinks=False)
        os.setgroups([])
        os.setresgid(_USER, _USER, _USER)
        os.setresuid(_USER, _USER, _USER)
    except OSError:  # not root, or one that knows no other users
        return False
    return True


def _protect_memory() -> None:
    """Keep processes of the same user from reading this one's memory and descriptors."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _enter_new_directory(*, copied: bool = False) -> str:
    """Work in a new directory from now on; `copied`, with the files of the run."""
    before, home = os.getcwd(), tempfile.mkdtemp()
    if copied:
        shutil.copytree(before, home, dirs_exist_ok=True)
        os.chmod(home, 0o700)
    os.chdir(home)
    sys.path.insert(0, home)
    return home


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _set_streams_aside(*, keep_none: bool = False) -> int:
    """Have nothing behind the standard streams from now on; where answers are written."""
    answers = -1 if keep_none else os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.close(nowhere)
    refresh_interpreter({})
    return answers


def _answer(descriptor: int, mark: str, content: bytes) -> None:
    _write(descriptor, b"\n" + mark.encode() + b"=" + content)


def _write(descriptor: int, content: bytes) -> None:
    data = memoryview(content)
    while data:
        data = data[os.write(descriptor, data) :]
