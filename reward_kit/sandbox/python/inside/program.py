# SPDX-License-Identifier: Apache-2.0
"""The interpreter of a run, from a forked zygote's to one that might have been started as `python main.py`.

Standard library only.
"""

from __future__ import annotations

import ast
import atexit
import functools
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from types import CodeType, ModuleType, TracebackType
from typing import Any

from reward_kit.sandbox.python.messages import MAIN, WORK

__all__ = [
    "as_own_program",
    "be_program",
    "be_program_again",
    "function_of",
    "load_module",
    "new_module",
    "read_expression",
    "refresh_interpreter",
]

_FLUSH_FAILED = 120
_STDERR = 2
_RECURSION = sys.getrecursionlimit()


def refresh_interpreter(files: Mapping[str, bytes]) -> None:
    """Write the files of the run, and make the interpreter as one that has just started."""
    for name, content in files.items():
        if "/" in name:
            os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "wb") as file:
            file.write(content)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _open_streams()
    sys.path.insert(0, WORK)
    # Everything else reseeds itself after a fork.
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed()


def _open_streams() -> None:
    for number, mode, name in ((0, "r", "stdin"), (1, "w", "stdout"), (_STDERR, "w", "stderr")):
        stream = _stream(number, mode, f"<{name}>", "backslashreplace" if number == _STDERR else "surrogateescape")
        vars(sys).update({name: stream, f"__{name}__": stream})


def _stream(number: int, mode: str, name: str, errors: str | None) -> Any:
    raw: Any = io.FileIO(number, mode, closefd=False)
    raw.name = name
    buffered = io.BufferedWriter(raw) if mode == "w" else io.BufferedReader(raw)
    text: Any = io.TextIOWrapper(
        buffered, encoding="utf-8", errors=errors, newline="\n", line_buffering=number == _STDERR
    )
    text.mode = mode
    return text


def new_module(name: str, path: str) -> ModuleType:
    """An empty module that its own code will find under its name."""
    made = ModuleType(name)
    vars(made).update(__file__=path, __builtins__=__builtins__)
    sys.modules[name] = made
    return made


def load_module(code: bytes, module: ModuleType) -> BaseException | None:
    """Run a module's code; what it raised, whatever that was."""
    try:
        exec(compile(code, str(module.__file__), "exec", dont_inherit=True), vars(module))
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its answer
        return error
    return None


def function_of(module: ModuleType, function: str) -> Any:
    """What an expression means in a module, such as `solve` or `Solution().solve`: of its own names, not of Python's.

    Where the code has left out the function that is tested, a built-in one of that name does not stand in for it.
    """
    names, compiled = read_expression(function)
    if missing := next((name for name in names if name not in vars(module)), None):
        raise NameError(f"name {missing!r} is not defined")
    return eval(compiled, vars(module))


@functools.cache
def read_expression(source: str) -> tuple[list[str], CodeType]:
    """The names in an expression, and its code."""
    tree = ast.parse(source, mode="eval")
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)], compile(tree, "<function>", "eval")


def be_program(code: bytes | CodeType, argv: list[str]) -> int:
    """Run `code` as `python main.py` would, and return what the process should exit with."""
    sys.argv = [MAIN, *argv]
    main = new_module("__main__", f"{WORK}/{MAIN}")
    sys.setrecursionlimit(sys.getrecursionlimit() + _depth())
    return _finish(_execute(code, main), main, threading._shutdown)  # type: ignore[attr-defined]


def be_program_again(code: CodeType, given: bytes) -> tuple[int, bytes]:
    """Run a program in this process, which may have run it before; its exit status and what it printed.

    For programs that leave nothing in the process, in modules or in files. It finds its input and output where a
    program does.
    """
    source, output = _file_of(given), os.memfd_create("output")
    os.dup2(source, 0)
    os.dup2(output, 1)
    os.close(source)
    _open_streams()
    sys.argv = [MAIN]
    main = new_module("__main__", f"{WORK}/{MAIN}")
    sys.setrecursionlimit(_RECURSION + _depth())
    status = _finish(_execute(code, main), main, _join_threads)
    os.lseek(output, 0, os.SEEK_SET)
    with open(output, "rb") as file:
        return status, file.read()


def as_own_program(code: CodeType, given: bytes, output: tuple[int, int]) -> int:
    """Run a program in a process that is its own, with this input; what it writes goes to the two descriptors."""
    os.dup2(_file_of(given), 0)
    os.dup2(output[0], 1)
    os.dup2(output[1], _STDERR)
    _open_streams()
    return be_program(code, [])


def _file_of(content: bytes) -> int:
    descriptor = os.memfd_create("input")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _join_threads() -> None:
    """What the interpreter does once, at its end."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _depth() -> int:
    """How many frames are below the program's, which has as many for itself as any program."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back:
        frame, depth = frame.f_back, depth + 1
    return depth


def _execute(code: bytes | CodeType, main: ModuleType) -> int:
    try:
        compiled = code if isinstance(code, CodeType) else compile(code, str(main.__file__), "exec", dont_inherit=True)
        exec(compiled, vars(main))
    except SystemExit as error:
        return _exit_status(error.code)
    except BaseException as error:  # noqa: BLE001 - what the interpreter itself does with the last exception
        trace = error.__traceback__
        return _uncaught(error, trace.tb_next if trace else None)
    return 0


def _exit_status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if abs(code) < 1 << 63 else 0xFF
    print(code, file=sys.stderr)
    return 1


def _uncaught(error: BaseException, trace: TracebackType | None) -> int:
    try:
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    except SystemExit as leaving:
        return _exit_status(leaving.code)
    except BaseException:  # noqa: BLE001 - a hook that fails changes nothing
        sys.__excepthook__(type(error), error, trace)
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 1


def _finish(status: int, main: ModuleType, await_threads: Callable[[], None]) -> int:
    """What the interpreter does at its end and a program may rely on: threads, exit handlers, files left open."""
    for step in (await_threads, atexit._run_exitfuncs, vars(main).clear, gc.collect):
        try:
            step()
        except SystemExit as error:
            status = _exit_status(error.code)
        except BaseException as error:  # noqa: BLE001 - reported, as the interpreter does, and passed over
            sys.__excepthook__(type(error), error, error.__traceback__)
    try:
        if sys.stdout is not None and not getattr(sys.stdout, "closed", False):
            sys.stdout.flush()
    except Exception:  # noqa: BLE001 - it may be anything that the program put there
        return status or _FLUSH_FAILED
    return status
