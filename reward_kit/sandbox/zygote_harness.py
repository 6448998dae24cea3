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

from reward_kit.sandbox.zygote_plain import decode, encode
from reward_kit.sandbox.zygote_program import new_module
from reward_kit.sandbox.zygote_wire import LENGTH, NONCE_BYTES, SOLUTION, WORK

__all__ = ["answer_calls"]

_CHANNEL = 3
_MESSAGE_CHARACTERS = 2000
# Taken before the code runs, so that a program which replaces them for its own ends still gets its answers out.
_read, _write, _exit = os.read, os.write, os._exit
_fork, _wait, _kill, _yield = os.fork, os.waitpid, os.kill, os.sched_yield


def answer_calls(code: bytes, settings: Mapping[str, Any]) -> int:
    """Load `code` as a module, then answer calls until there are no more."""
    os.set_inheritable(_CHANNEL, False)
    sys.argv = [SOLUTION]
    solution = new_module("solution", f"{WORK}/{SOLUTION}")
    nonce = _exactly(NONCE_BYTES)
    _send(nonce, _load(code, solution))
    while call := _receive():
        if settings["isolated"]:
            _answer_in_copy(*call, settings, solution)
        else:
            _send(call[0], _answer(call[1], settings, solution))
    return 0


def _load(code: bytes, solution: ModuleType) -> bytes:
    try:
        exec(compile(code, str(solution.__file__), "exec", dont_inherit=True), vars(solution))
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its answer
        return b"X" + _described(error)
    return b"L"


def _answer(arguments: bytes, settings: Mapping[str, Any], solution: ModuleType) -> bytes:
    try:
        function = eval(settings["function"], vars(solution))
        value = encode(function(*decode(arguments.decode()))).encode()
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its answer
        return b"X" + _described(error)
    if len(value) > settings["answer_bytes"]:
        return b"XValueError: the returned value takes %d bytes, too many to be looked at" % len(value)
    return b"R" + value


def _answer_in_copy(nonce: bytes, arguments: bytes, settings: Mapping[str, Any], solution: ModuleType) -> None:
    """Answer in a copy of this process; afterwards it is gone, with all that it started, and its end is told."""
    copy = _fork()
    if not copy:
        _send(nonce, _answer(arguments, settings, solution))
        _exit(0)
    _, ended = _wait(copy, 0)
    _clear()
    _send(nonce, b"E%d" % ended)


def _clear() -> None:
    """End every other process, and wait until there is none."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            _kill(-1, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                _wait(-1, os.WNOHANG)
            _yield()


def _described(error: BaseException) -> bytes:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - an exception may even fail to be written
        text = type(error).__name__
    return text[:_MESSAGE_CHARACTERS].encode(errors="replace")


# ── the channel ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _receive() -> tuple[bytes, bytes] | None:
    prefix = _exactly(LENGTH.size)
    if not prefix:
        return None
    frame = _exactly(LENGTH.unpack(prefix)[0])
    return frame[:NONCE_BYTES], frame[NONCE_BYTES:]


def _exactly(size: int) -> bytes:
    """So many bytes; none at all when the supervisor has closed its side."""
    data = b""
    while len(data) < size:
        part = _read(_CHANNEL, size - len(data))
        if not part:
            return b""
        data += part
    return data


def _send(nonce: bytes, answer: bytes) -> None:
    frame = memoryview(LENGTH.pack(len(nonce) + len(answer)) + nonce + answer)
    while frame:
        frame = frame[_write(_CHANNEL, frame) :]
