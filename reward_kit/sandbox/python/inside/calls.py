# SPDX-License-Identifier: Apache-2.0
"""What runs inside a sandbox when functions are called: load the code, then answer one call after another.

    supervisor ── nonce, arguments ─▶ harness: calls the function ── nonce, "R" value or "X" exception ─▶ supervisor
               ── closing nonce ────▶ only for calls in copies ───── closing nonce, "E" status ─────────▶

The code under test shares this process and can do to it what it likes. That gives it nothing: what is sent is only ever
its own answer to the call being made, as plain text; and what an answer should be is never in here. A call that runs in
a copy of the process cannot touch the next one: the copy has no way to read requests, and the nonce that says that a
call is over is read when everything that the call started has ended. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from types import CoroutineType
from typing import Any

from reward_kit.sandbox.python.inside.program import be_program_again, load_module, new_module
from reward_kit.sandbox.python.messages import CHANNEL, MAIN, REQUESTS, SOLUTION, WORK, Frames, described
from reward_kit.sandbox.python.plain import decode, encode

__all__ = ["answer_calls", "answer_runs"]

_Work = Callable[[bytes], str]
"""What a request's bytes are given to, and what gives the text of the answer."""

# Taken before the code runs, so that a program which replaces them for its own ends still gets its answers out.
_exit, _close = os._exit, os.close
_fork, _wait, _kill, _yield = os.fork, os.waitpid, os.kill, os.sched_yield


def answer_calls(code: bytes, settings: Mapping[str, Any]) -> int:
    """Load `code` as a module, then answer calls until there are no more."""
    requests, answers = Frames(REQUESTS), Frames(CHANNEL)
    sys.argv = [SOLUTION]
    solution = new_module("solution", f"{WORK}/{SOLUTION}")
    nonce = requests.nonce()
    error = load_module(code, solution)
    answers.send(nonce, b"L" if error is None else b"X" + described(error))

    def call(arguments: bytes) -> str:
        function = eval(settings["function"], vars(solution))
        value = function(*decode(arguments.decode()))
        if isinstance(value, CoroutineType):
            import asyncio  # not before: every fork of the zygote would pay for it

            value = asyncio.run(value)
        return encode(value, loose=settings["loose"])

    while request := requests.receive():
        if settings["isolated"]:
            status = _answer_in_copy(answers, *request, call, settings)
            answers.send(requests.nonce(), b"E%d" % status)
        else:
            answers.send(request[0], _answer(request[1], call, settings))
    return 0


def answer_runs(code: bytes, settings: Mapping[str, Any]) -> int:
    """Run `code` as a program for each input, one after the other in this process."""
    requests, answers = Frames(REQUESTS), Frames(CHANNEL)
    nonce = requests.nonce()
    try:
        compiled = compile(code, f"{WORK}/{MAIN}", "exec", dont_inherit=True)
    except BaseException as error:  # noqa: BLE001 - whatever is wrong with the code is its answer
        answers.send(nonce, b"X" + described(error))
        return 0
    answers.send(nonce, b"L")

    def run(given: bytes) -> str:
        status, printed = be_program_again(compiled, given)
        if status:
            raise SystemExit(status)
        return encode(printed.decode(errors="replace"))

    while request := requests.receive():
        answers.send(request[0], _answer(request[1], run, settings))
    return 0


def _answer(arguments: bytes, work: _Work, settings: Mapping[str, Any]) -> bytes:
    try:
        value = work(arguments).encode()
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its answer
        return b"X" + described(error)
    if len(value) > settings["answer_bytes"]:
        return b"XValueError: the returned value takes %d bytes, too many to be looked at" % len(value)
    return b"R" + value


def _answer_in_copy(answers: Frames, nonce: bytes, arguments: bytes, work: _Work, settings: Mapping[str, Any]) -> int:
    """Answer in a copy of this process; how it ended, when it is gone with all that it started."""
    copy = _fork()
    if not copy:
        _close(REQUESTS)
        answers.send(nonce, _answer(arguments, work, settings))
        _exit(0)
    _, status = _wait(copy, 0)
    _clear()
    return status


def _clear() -> None:
    """End every other process, and wait until there is none."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            _kill(-1, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                _wait(-1, os.WNOHANG)
            _yield()
