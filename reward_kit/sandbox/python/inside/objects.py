# SPDX-License-Identifier: Apache-2.0
"""What runs beside the code under test when a test program judges it: its objects, handed out by number.

    judge ── nonce, "call" 3 with these values ─▶ the code ── nonce, a plain value | object 4 | an exception ─▶ judge
                                                           ── nonce, "back": call this function of the test ─▶ judge

Plain values cross as what they hold; anything else stays here and the judge gets a number for it. What an argument
becomes by a call is told too, so that the test's own can become the same. The code shares this
process and can do to it what it likes: all it can change is its own answers. Standard library only.
"""

from __future__ import annotations

import builtins
import importlib
import io
import operator
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from types import GeneratorType, ModuleType
from typing import Any

from reward_kit.sandbox.python.inside.program import load_module, new_module
from reward_kit.sandbox.python.messages import CHANNEL, SOLUTION, WORK, Frames, described
from reward_kit.sandbox.python.plain import carry_arrays, changeable, decode, encode

__all__ = ["serve_objects"]

_DEPTH = 50
_TOLD = 8
"""How many causes, one of another, and exceptions of a group a test is told of."""
_MOST_PRINTED = 1 << 20
"""Bytes that a test can read of what the code printed, from one answer to the next."""
_Answer = list[Any]
_TYPES = {name: each for name, each in vars(builtins).items() if isinstance(each, type)}
_loops: list[Any] = []
"""The loop in which everything is awaited, once there is one."""


def _awaited(it: Awaitable[Any]) -> Any:
    """What comes of something that a test awaits."""

    async def wait() -> Any:
        return await it

    import asyncio  # not before: every fork of the zygote would pay for it

    if not _loops:
        _loops.append(asyncio.new_event_loop())
    return _loops[0].run_until_complete(wait())


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift")
"""What is calculated with two objects, as the module `operator` calls it."""
OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "iter": iter,
    "next": next,
    "pull": next,
    "len": len,
    "bool": bool,
    "str": str,
    "repr": repr,
    "int": int,
    "float": float,
    "hash": hash,
    "round": round,
    "format": format,
    "reversed": reversed,
    "type": type,
    "isinstance": isinstance,
    "issubclass": issubclass,
    "get": getattr,
    "set": setattr,
    "delete": delattr,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "contains": operator.contains,
    "enter": lambda it: type(it).__enter__(it),
    "leave": lambda it, error: bool(type(it).__exit__(it, error and type(error), error, None)),
    "await": _awaited,
    "anext": lambda it: _awaited(type(it).__anext__(it)),
    "aiter": lambda it: type(it).__aiter__(it),
    "aenter": lambda it: _awaited(type(it).__aenter__(it)),
    "aleave": lambda it, error: bool(_awaited(type(it).__aexit__(it, error and type(error), error, None))),
    "divmod": divmod,
    **{name: getattr(operator, name) for name in ("eq", "lt", "le", "gt", "ge", "neg", "pos", "invert", "abs")},
    **{name: getattr(operator, name) for each in BINARY for name in (each, f"i{each.strip('_')}")},
}
"""What a judge may have done with an object, beside calling it."""


class _Printed(io.RawIOBase):
    """Where the code's output goes: kept until a test can look at it."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1

    def write(self, data: Any) -> int:
        self._kept += bytes(data)[: _MOST_PRINTED - len(self._kept)]
        return len(data)

    def taken(self) -> str:
        """What was printed since somebody last asked."""
        try:
            sys.stdout.flush()
        except Exception:  # noqa: BLE001 - it may be anything that the code put there
            return ""
        kept, self._kept = self._kept, bytearray()
        return kept.decode(errors="replace")


class _Taken:
    """What came with one request."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}
        """Objects like those of the test, by number."""
        self.things: list[Any] = []
        """Everything that a call can change."""


class _Objects:
    """The objects that the judge knows of."""

    def __init__(self, module: ModuleType, frames: Frames) -> None:
        self._module = module
        self._frames = frames
        self._nonce = b""
        self._known: list[Any] = [module]
        self._numbers: dict[int, int] = {}
        self._functions: dict[int, Callable[..., Any]] = {}
        self._function_numbers: dict[int, int] = {}
        self._printed = _Printed()

    def serve(self) -> None:
        """Answer until there are no more questions."""
        printing = io.TextIOWrapper(io.BufferedWriter(self._printed), "utf-8", "backslashreplace")
        vars(sys).update(stdout=printing, __stdout__=printing)
        while request := self._frames.receive():
            self._respond(*request)

    def _respond(self, nonce: bytes, request: bytes) -> None:
        before, self._nonce = self._nonce, nonce
        try:
            answer = self.answer(decode(request.decode()))
        except builtins.BaseException as error:  # noqa: BLE001 - whatever the code raises is its answer
            answer = _raised(error)
        self._send(answer)
        self._nonce = before

    def _send(self, answer: _Answer) -> None:
        if printed := self._printed.taken():
            answer = ["printed", printed, answer]
        self._frames.send(self._nonce, _text(answer))

    def answer(self, request: list[Any]) -> _Answer:
        """Do what the judge requests with an object, such as calling it, and return what came of it."""
        kind, *rest = request
        if kind == "names":
            return ["v", self._names(), {}]
        if kind == "call":
            function, arguments, named = rest
            return self._result(self._known[function], arguments, named)
        return self._result(OPERATIONS[kind], rest[0], {})

    def _result(self, function: Callable[..., Any], arguments: list[Any], named: dict[str, Any]) -> _Answer:
        taken = _Taken()
        given = [self._taken(argument, taken) for argument in arguments]
        by_name = {name: self._taken(argument, taken) for name, argument in named.items()}
        before = [_content(thing) for thing in taken.things]
        result = function(*given, **by_name)
        numbers = {id(thing): number for number, thing in enumerate(taken.things)}
        changed = {}
        for number, (thing, content) in enumerate(zip(taken.things, before, strict=True)):
            if not _is_same(content, _content(thing)):
                changed[number] = self._now(thing, numbers)
        answer = self._given(result, numbers)
        if answer[0] == "v":
            return [*answer, changed]
        return answer if answer[0] == "h" and not changed else ["parts", answer, changed]

    # ── what comes from the judge ────────────────────────────────────────────────────────────────────────────────────

    def _taken(self, argument: list[Any], taken: _Taken) -> Any:  # noqa: PLR0911 - one per kind
        """An argument; what can be changed in it is noted in the order in which the judge noted its own."""
        match argument:
            case ["v", value]:
                taken.things += changeable(value)
                return value
            case ["list" | "tuple" | "dict" as kind, parts]:
                return self._container(kind, parts, taken)
            case ["range", *bounds]:
                return range(*bounds)
            case ["iterator", parts]:
                return iter([self._taken(part, taken) for part in parts])
            case ["known", module, name]:
                return operator.attrgetter(name)(importlib.import_module(module))
            case ["again", number]:
                return taken.made[number]
            case ["made", number, name, source, state]:
                return self._made(number, name, source, state, taken)
            case ["function", number, name, doc]:
                return self._function(number, name, doc)
            case ["error", names, arguments]:
                return self._error(names, arguments)
        return self._known[argument[1]]

    def _container(self, kind: str, parts: list[Any], taken: _Taken) -> Any:
        if kind == "tuple":
            return tuple([self._taken(part, taken) for part in parts])
        made: Any = [] if kind == "list" else {}
        taken.things.append(made)  # before what it holds, as the judge does
        if kind == "list":
            made += [self._taken(part, taken) for part in parts]
        else:
            made |= ([self._taken(part, taken) for part in pair] for pair in parts)
        return made

    def _made(self, number: int, name: str, source: str, state: list[Any], taken: _Taken) -> Any:
        """An object like one of the test's own: of the code's class of that name, or of a copy of the test's."""
        kind: Any = vars(self._module).get(name)
        if not isinstance(kind, type):
            place: dict[str, Any] = {"__name__": self._module.__name__}
            exec(source, place)
            kind = vars(self._module)[name] = place[name]
        taken.made[number] = made = kind.__new__(kind)
        taken.things.append(made)
        for attribute, value in state:
            object.__setattr__(made, attribute, self._taken(value, taken))
        return made

    def _error(self, names: list[str], arguments: list[Any]) -> BaseException:
        """An exception of the test, by the first of its names that is known here."""
        for name in names:
            kind = vars(self._module).get(name, getattr(builtins, name, None))
            if isinstance(kind, type) and issubclass(kind, BaseException):
                error = kind.__new__(kind, *arguments)
                error.args = tuple(arguments)
                return error
        return Exception(*arguments)

    def _function(self, number: int, name: str, doc: str | None) -> Callable[..., Any]:
        """What stands for a function of the test: the judge is asked to call it."""
        if number not in self._functions:

            def function(*arguments: Any, **named: Any) -> Any:
                return self._call_back(number, arguments, named)

            function.__name__ = function.__qualname__ = name
            function.__doc__ = doc
            self._functions[number] = function
            self._function_numbers[id(function)] = number
        return self._functions[number]

    def _call_back(self, number: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Have the judge call a function, and answer what it asks in the meantime."""
        given = [self._given(argument, {}) for argument in arguments]
        self._send(["back", number, given, {name: self._given(value, {}) for name, value in named.items()}])
        while request := self._frames.receive():
            kind, *rest = decode(request[1].decode())
            if kind != "back":
                self._respond(*request)
                continue
            returned, outcome = rest
            if returned:
                return self._taken(outcome, _Taken())
            raise self._error(*outcome)
        raise SystemExit

    # ── what goes to the judge ───────────────────────────────────────────────────────────────────────────────────────

    def _given(self, value: Any, numbers: dict[int, int], depth: int = _DEPTH) -> _Answer:
        """A value; what the judge handed over itself, in this call, goes back by its number there."""
        try:
            encode(value)
        except TypeError:
            return self._parts(value, numbers, depth)
        if numbers and any(id(each) in numbers for each in changeable(value)):
            return self._parts(value, numbers, depth)
        return ["v", value]

    def _parts(self, value: Any, numbers: dict[int, int], depth: int) -> _Answer:
        """What is not plain: lists, tuples and dicts by what they hold, built-in types by name, all else by number."""
        if id(value) in numbers:
            return ["same", numbers[id(value)]]
        if depth and type(value) in (list, tuple):
            return [type(value).__name__, [self._given(item, numbers, depth - 1) for item in value]]
        if depth and type(value) is dict:
            pairs = [[self._given(each, numbers, depth - 1) for each in pair] for pair in value.items()]
            return ["dict", pairs]
        if name := next((name for name, each in _TYPES.items() if each is value), None):
            return ["known", "builtins", name]
        if id(value) in self._function_numbers:
            return ["function", self._function_numbers[id(value)]]
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._known)
            self._known.append(value)
        return ["h", self._numbers[id(value)], _facts(value)]

    def _now(self, thing: Any, numbers: dict[int, int]) -> _Answer:
        """What an argument has become."""
        if isinstance(thing, (set, bytearray)):
            return self._given(type(thing)(thing), numbers)
        if _is_array(thing):
            return ["v", thing]
        if isinstance(thing, (list, deque)):
            return self._given(list(thing), numbers)
        pairs = (thing if isinstance(thing, dict) else vars(thing)).items()
        return ["dict", [[self._given(each, numbers) for each in pair] for pair in pairs]]

    def _names(self) -> dict[str, Any]:
        """What the module defines, in the words of the judge."""
        return {name: _kind(value) for name, value in list(vars(self._module).items()) if type(name) is str}


def _facts(value: Any) -> dict[str, Any]:
    """What the judge is told of an object."""
    kind = type(value)
    return {
        "class": isinstance(value, type),
        "type": kind.__name__,
        "iterator": hasattr(kind, "__next__"),
        "awaitable": hasattr(kind, "__await__"),
        "generator": kind is GeneratorType,
    }


def _is_array(thing: Any) -> bool:
    return type(thing).__module__ == "numpy"


def _content(thing: Any) -> Any:
    """What something holds that can be changed, to compare with later."""
    if isinstance(thing, (list, deque)):
        return list(thing)
    if isinstance(thing, (set, bytearray)):
        return type(thing)(thing)
    if _is_array(thing):
        return thing.copy()
    held = thing if isinstance(thing, dict) else vars(thing)
    return [*held, *held.values()]


def _is_same(before: Any, now: Any) -> bool:
    if _is_array(before):
        return encode(before) == encode(now)
    if type(before) is not list:
        return bool(before == now)
    return len(before) == len(now) and all(map(operator.is_, before, now))


def _kind(value: Any) -> list[Any]:
    if isinstance(value, ModuleType):
        return ["module", value.__name__]
    if isinstance(value, type) and issubclass(value, BaseException):
        return ["exception", [[each.__name__, [base.__name__ for base in each.__bases__]] for each in value.__mro__]]
    return ["object", None]


def _ancestors(kind: type) -> list[str]:
    """The names by which the judge may know an exception, nearest first."""
    return [each.__name__ for each in kind.__mro__]


def _raised(error: BaseException, depth: int = _TOLD) -> _Answer:
    """An exception: its names, arguments, what else it holds as far as that is plain, its cause and its parts."""
    text = described(error).decode(errors="replace")
    try:
        arguments = [decode(encode(argument)) for argument in error.args]
    except (TypeError, ValueError):
        arguments = [text.partition(": ")[2]]
    held = {}
    for name, value in vars(error).items():
        try:
            held[name] = decode(encode(value))
        except (TypeError, ValueError):
            continue
    if depth and error.__cause__ is not None:
        held["__cause__"] = _raised(error.__cause__, depth - 1)[1:]
    if isinstance(error, BaseExceptionGroup):
        arguments = [str(error.message)]
        held["exceptions"] = [_raised(each, depth - 1)[1:] for each in error.exceptions[:_TOLD]] if depth else []
    return ["x", _ancestors(type(error)), arguments, text, held]


def serve_objects(code: bytes) -> int:
    """Load `code` as a module when asked to, then answer until there are no more questions."""
    carry_arrays()
    frames = Frames(CHANNEL)
    sys.argv = [SOLUTION]
    module = new_module("solution", f"{WORK}/{SOLUTION}")
    objects = _Objects(module, frames)
    first = frames.receive()
    if first is None:
        return 0
    error = load_module(code, module)
    frames.send(first[0], _text(["v", None, {}] if error is None else _raised(error)))
    objects.serve()
    return 0


def _text(answer: _Answer) -> bytes:
    return encode(answer).encode()
