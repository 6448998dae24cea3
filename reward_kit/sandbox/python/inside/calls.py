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
import functools
import os
import random
import select
import signal
import sys
from collections.abc import Callable, Mapping
from types import CodeType, CoroutineType, ModuleType
from typing import Any

from reward_kit.sandbox.python.inside.program import (
    as_own_program,
    be_program_again,
    function_of,
    load_module,
    new_module,
    read_expression,
)
from reward_kit.sandbox.python.messages import CHANNEL, MAIN, REQUESTS, SOLUTION, WORK, Frames, described
from reward_kit.sandbox.python.plain import decode, encode

__all__ = ["answer_calls", "answer_runs", "rehearse"]

_Work = Callable[[bytes], str]
"""What a request's bytes are given to, and what gives the text of the answer."""

# Taken before the code runs, so that a program which replaces them for its own ends still gets its answers out.
_exit, _close = os._exit, os.close
_fork, _wait, _kill, _yield = os.fork, os.waitpid, os.kill, os.sched_yield
_CHUNK = 1 << 16
_SAMPLE = [0, "", [1, 2.5], (1,), {"": None}, {True}]
_UNTIL_KNOWN = 10
"""How often Python runs something before it keeps how."""
_SHOWN_OF_ERRORS = 300


def answer_calls(code: bytes, settings: Mapping[str, Any]) -> int:
    """Load `code` as a module, then answer calls until there are no more."""
    requests, answers = Frames(REQUESTS), Frames(CHANNEL)
    sys.argv = [SOLUTION]
    solution = new_module("solution", f"{WORK}/{SOLUTION}")
    nonce = requests.nonce()
    with contextlib.suppress(SyntaxError, ValueError):  # said by every call
        read_expression(settings["function"])
    error = load_module(code, solution)
    answers.send(nonce, b"L" if error is None else b"X" + described(error))

    call = functools.partial(_called, solution, settings)
    files = _files()
    generators = random.getstate() if "seed" in code.decode(errors="replace") else None

    def call_in_copy(arguments: bytes) -> str:
        _be_random_again(generators, vars(solution))
        return call(arguments)

    while request := requests.receive():
        if settings["isolated"]:
            status = _answer_in_copy(answers, *request, call_in_copy, settings)
            answers.send(requests.nonce(), _said_at_end(status, files))
        else:
            answers.send(request[0], _answer(request[1], call, settings))
    return 0


def answer_runs(code: bytes, settings: Mapping[str, Any]) -> int:
    """Run `code` as a program for each input: in copies of this process, or one after the other in this one."""
    requests, answers = Frames(REQUESTS), Frames(CHANNEL)
    nonce = requests.nonce()
    try:
        compiled = compile(code, f"{WORK}/{MAIN}", "exec", dont_inherit=True)
    except BaseException as error:  # noqa: BLE001 - whatever is wrong with the code is its answer
        answers.send(nonce, b"X" + described(error))
        return 0
    answers.send(nonce, b"L")
    files = _files()

    def run(given: bytes) -> str:
        status, printed = be_program_again(compiled, given)
        if status:
            raise SystemExit(status)
        return encode(printed.decode(errors="replace"))

    while request := requests.receive():
        if settings["isolated"]:
            status = _run_in_copy(answers, *request, compiled, settings)
            answers.send(requests.nonce(), _said_at_end(status, files))
        else:
            answers.send(request[0], _answer(request[1], run, settings))
    return 0


def _be_random_again(seeded: Any, names: Mapping[str, Any]) -> None:
    """After a fork: let no two copies draw the same numbers, unless the code has seeded them when it was loaded."""
    if seeded is not None:
        random.setstate(seeded)
        return
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed(int.from_bytes(os.urandom(4)))  # by itself it looks for randomness for milliseconds
    for value in names.values():
        if type(value) is random.Random:
            value.seed()


def _called(module: ModuleType, settings: Mapping[str, Any], arguments: bytes) -> str:
    value = function_of(module, settings["function"])(*decode(arguments.decode()))
    if isinstance(value, CoroutineType):
        import asyncio  # not before: every fork of the zygote would pay for it

        value = asyncio.run(value)
    return encode(value, loose=settings["loose"])


def rehearse() -> None:
    """Do what every copy will do, in the zygote: what Python notes about it, each would note again for itself.

    To note it is to write to memory, which is copied for that, page by page.
    """
    module = new_module("rehearsal", "")
    del sys.modules["rehearsal"]
    vars(module)["same"] = lambda *values: values
    arguments = encode(_SAMPLE).encode()
    for loose in (True, False) * _UNTIL_KNOWN:
        _called(module, {"function": "same", "loose": loose}, arguments)
        _files()


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


def _files() -> list[tuple[str, int, int]]:
    """Every file that the code could have written, and when and how long it was last."""
    paths = [os.path.join(place, name) for top in (WORK, "/tmp") for place, folders, names in os.walk(top)
             for name in (*folders, *names)]  # fmt: skip
    facts = [(path, os.lstat(path)) for path in paths]
    return sorted((path, found.st_mtime_ns, found.st_size) for path, found in facts)


def _said_at_end(status: int, files: list[tuple[str, int, int]]) -> bytes:
    """How a copy has ended, and whether it has left files, which the next must not find."""
    return (b"E%d" if _files() == files else b"D%d") % status


def _run_in_copy(answers: Frames, nonce: bytes, given: bytes, compiled: CodeType, settings: Mapping[str, Any]) -> int:
    """Run a program in a copy of this process, which has not run it before; how it ended, when all of it is gone.

    What it wrote is its answer, also where it ended itself, as programs do that exit with 0.
    """
    (out, out_writer), (errors, errors_writer) = os.pipe(), os.pipe()
    copy = _fork()
    if not copy:
        for descriptor in (REQUESTS, CHANNEL, out, errors):
            _close(descriptor)
        _exit(as_own_program(compiled, given, (out_writer, errors_writer)))
    _close(out_writer)
    _close(errors_writer)
    printed, complained = bytearray(), bytearray()
    most = settings["answer_bytes"]
    kept = {out: (printed, most + 1), errors: (complained, _CHUNK)}
    status = _await_copy(copy, kept)
    code = os.waitstatus_to_exitcode(status)
    if code > 0:
        text = bytes(complained).decode(errors="replace").strip()[-_SHOWN_OF_ERRORS:]
        answers.send(nonce, f"Xexited with {code}: {text}".encode())
    elif code == 0 and len(printed) > most:
        answers.send(nonce, b"XValueError: it printed more than can be looked at")
    elif code == 0:
        answers.send(nonce, b"R" + encode(printed.decode(errors="replace")).encode())
    return status


def _await_copy(copy: int, kept: Mapping[int, tuple[bytearray, int]]) -> int:
    """Read what a copy writes until it has ended, and what is left when all that it started has, too."""
    ended = os.pidfd_open(copy)
    poll = select.poll()
    for descriptor in (ended, *kept):
        poll.register(descriptor, select.POLLIN)
    ready: set[int] = set()
    while ended not in ready:
        ready = {descriptor for descriptor, _ in poll.poll()}
        for descriptor in ready & kept.keys():
            if not _read_into(descriptor, *kept[descriptor]):
                poll.unregister(descriptor)
    _close(ended)
    _, status = _wait(copy, 0)
    _clear()
    for descriptor, (content, most) in kept.items():
        while _read_into(descriptor, content, most):
            pass
        _close(descriptor)
    return status


def _read_into(descriptor: int, content: bytearray, most: int) -> bool:
    """Read once and keep as much as there is room for; False at the end."""
    data = os.read(descriptor, _CHUNK)
    content += data[: most - len(content)]
    return bool(data)


def _clear() -> None:
    """End every other process, and wait until there is none."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            _kill(-1, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                _wait(-1, os.WNOHANG)
            _yield()
