"""What runs inside a sandbox when functions are called: load the code, then answer one call after another.

    supervisor ── nonce, arguments ─▶ harness: calls the function ── nonce, "R" value or "X" exception ─▶ supervisor

The code under test shares this process and can do to it what it likes. That gives it nothing: what is sent is only ever
its own answer to the call being made, as plain text; what an answer should be is never in here; and a call that runs
in a copy of the process cannot touch the next one. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from reward_kit.sandbox.zygote_frames import CHANNEL, Frames, described
from reward_kit.sandbox.zygote_plain import decode, encode
from reward_kit.sandbox.zygote_program import load_module, new_module
from reward_kit.sandbox.zygote_wire import SOLUTION, WORK

__all__ = ["answer_calls"]

# Taken before the code runs, so that a program which replaces them for its own ends still gets its answers out.
_exit = os._exit
_fork, _wait, _kill, _yield = os.fork, os.waitpid, os.kill, os.sched_yield


def answer_calls(code: bytes, settings: Mapping[str, Any]) -> int:
    """Load `code` as a module, then answer calls until there are no more."""
    frames = Frames(CHANNEL)
    sys.argv = [SOLUTION]
    solution = new_module("solution", f"{WORK}/{SOLUTION}")
    nonce = frames.nonce()
    error = load_module(code, solution)
    frames.send(nonce, b"L" if error is None else b"X" + described(error))
    while call := frames.receive():
        if settings["isolated"]:
            _answer_in_copy(frames, *call, settings, solution)
        else:
            frames.send(call[0], _answer(call[1], settings, solution))
    return 0


def _answer(arguments: bytes, settings: Mapping[str, Any], solution: ModuleType) -> bytes:
    try:
        function = eval(settings["function"], vars(solution))
        value = encode(function(*decode(arguments.decode())), loose=settings["loose"]).encode()
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its answer
        return b"X" + described(error)
    if len(value) > settings["answer_bytes"]:
        return b"XValueError: the returned value takes %d bytes, too many to be looked at" % len(value)
    return b"R" + value


def _answer_in_copy(
    frames: Frames, nonce: bytes, arguments: bytes, settings: Mapping[str, Any], solution: ModuleType
) -> None:
    """Answer in a copy of this process; afterwards it is gone, with all that it started, and its end is told."""
    copy = _fork()
    if not copy:
        frames.send(nonce, _answer(arguments, settings, solution))
        _exit(0)
    _, ended = _wait(copy, 0)
    _clear()
    frames.send(nonce, b"E%d" % ended)


def _clear() -> None:
    """End every other process, and wait until there is none."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            _kill(-1, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                _wait(-1, os.WNOHANG)
            _yield()
