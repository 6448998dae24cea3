"""What runs beside the code under test when a test program judges it: its objects, handed out by number.

    judge ── nonce, "call" 3 with these values ─▶ the code ── nonce, a plain value | object 4 | an exception ─▶ judge

Plain values cross as what they hold; anything else stays here and the judge gets a number for it. The code shares this
process and can do to it what it likes: all it can change is its own answers. Standard library only.
"""

from __future__ import annotations

import builtins
import importlib
import operator
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import Any

from reward_kit.sandbox.zygote_frames import CHANNEL, Frames, described
from reward_kit.sandbox.zygote_plain import decode, encode
from reward_kit.sandbox.zygote_program import load_module, new_module
from reward_kit.sandbox.zygote_wire import SOLUTION, WORK

__all__ = ["serve_objects"]

_MUTABLE = (list, dict, set, bytearray)
_DEPTH = 50
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
    "abs": abs,
    "neg": operator.neg,
    "isinstance": isinstance,
    "get": getattr,
    "set": setattr,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "contains": operator.contains,
    "enter": lambda it: type(it).__enter__(it),
    "leave": lambda it: type(it).__exit__(it, None, None, None),
    "await": _awaited,
    "anext": lambda it: _awaited(type(it).__anext__(it)),
    "aiter": lambda it: type(it).__aiter__(it),
    "aenter": lambda it: _awaited(type(it).__aenter__(it)),
    "aleave": lambda it: _awaited(type(it).__aexit__(it, None, None, None)),
    **{name: getattr(operator, name) for name in ("eq", "lt", "le", "gt", "ge")},
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")},
}
"""What a judge may have done with an object, beside calling it."""


class _Objects:
    """The objects that the judge knows of."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._known: list[Any] = [module]

    def answer(self, request: list[Any]) -> _Answer:
        """Do as asked."""
        kind, *rest = request
        if kind == "names":
            return ["v", self._names(), {}]
        if kind == "call":
            function, arguments, named = rest
            return self._result(self._known[function], arguments, named)
        return self._result(OPERATIONS[kind], rest[0], {})

    def _result(self, function: Callable[..., Any], arguments: list[Any], named: dict[str, Any]) -> _Answer:
        given = [self._taken(argument) for argument in arguments]
        plain = [place for place, argument in enumerate(arguments) if argument[0] == "v"]
        before = {place: encode(given[place]) for place in plain if isinstance(given[place], _MUTABLE)}
        result = function(*given, **{name: self._taken(argument) for name, argument in named.items()})
        answer = self._given(result)
        if answer[0] == "h":
            return answer
        changed = _changed(given, before)
        return [*answer, changed] if answer[0] == "v" else ["parts", answer, changed]

    def _taken(self, argument: list[Any], seen: dict[int, Any] | None = None) -> Any:  # noqa: PLR0911 - one per kind
        seen = {} if seen is None else seen
        match argument:
            case ["v", value]:
                return value
            case ["list", parts]:
                return [self._taken(part, seen) for part in parts]
            case ["tuple", parts]:
                return tuple(self._taken(part, seen) for part in parts)
            case ["dict", pairs]:
                return {self._taken(key, seen): self._taken(value, seen) for key, value in pairs}
            case ["range", *bounds]:
                return range(*bounds)
            case ["iterator", parts]:
                return iter([self._taken(part, seen) for part in parts])
            case ["known", module, name]:
                return operator.attrgetter(name)(importlib.import_module(module))
            case ["again", number]:
                return seen[number]
            case ["made", number, name, source, state]:
                return self._made(number, name, source, state, seen)
        return self._known[argument[1]]

    def _made(self, number: int, name: str, source: str, state: list[Any], seen: dict[int, Any]) -> Any:
        """An object like one of the test's own: of the code's class of that name, or of a copy of the test's."""
        kind: Any = vars(self._module).get(name)
        if not isinstance(kind, type):
            place: dict[str, Any] = {"__name__": self._module.__name__}
            exec(source, place)
            kind = vars(self._module)[name] = place[name]
        seen[number] = made = kind.__new__(kind)
        for attribute, value in state:
            object.__setattr__(made, attribute, self._taken(value, seen))
        return made

    def _given(self, value: Any) -> _Answer:
        try:
            encode(value)
        except TypeError:
            return self._parts(value, _DEPTH)
        return ["v", value]

    def _parts(self, value: Any, depth: int) -> _Answer:
        """What is not plain: lists, tuples and dicts by what they hold, built-in types by name, all else by number."""
        try:
            encode(value)
        except TypeError:
            pass
        else:
            return ["v", value]
        if depth and type(value) in (list, tuple):
            return [type(value).__name__, [self._parts(item, depth - 1) for item in value]]
        if depth and type(value) is dict:
            pairs = [[self._parts(key, depth - 1), self._parts(item, depth - 1)] for key, item in value.items()]
            return ["dict", pairs]
        if name := next((name for name, each in _TYPES.items() if each is value), None):
            return ["known", "builtins", name]
        self._known.append(value)
        return ["h", len(self._known) - 1, _facts(value)]

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
    }


def _changed(given: list[Any], before: dict[int, str]) -> dict[int, Any]:
    """The arguments that the call changed, as they are now."""
    now = {}
    for place, text in before.items():
        try:
            if encode(given[place]) != text:
                now[place] = given[place]
        except TypeError:
            continue  # it holds something now that cannot be shown
    return now


def _kind(value: Any) -> list[Any]:
    if isinstance(value, ModuleType):
        return ["module", value.__name__]
    if isinstance(value, type) and issubclass(value, BaseException):
        return ["exception", _ancestors(value)]
    return ["object", None]


def _ancestors(kind: type) -> list[str]:
    """The names by which the judge may know an exception, nearest first."""
    return [each.__name__ for each in kind.__mro__]


def _raised(error: BaseException) -> _Answer:
    text = described(error).decode(errors="replace")
    try:
        arguments = [decode(encode(argument)) for argument in error.args]
    except (TypeError, ValueError):
        arguments = [text.partition(": ")[2]]
    return ["x", _ancestors(type(error)), arguments, text]


def serve_objects(code: bytes) -> int:
    """Load `code` as a module when asked to, then answer until there are no more questions."""
    frames = Frames(CHANNEL)
    sys.argv = [SOLUTION]
    module = new_module("solution", f"{WORK}/{SOLUTION}")
    objects = _Objects(module)
    first = frames.receive()
    if first is None:
        return 0
    error = load_module(code, module)
    frames.send(first[0], _text(["v", None, {}] if error is None else _raised(error)))
    while request := frames.receive():
        try:
            answer = objects.answer(decode(request[1].decode()))
        except builtins.BaseException as error:  # noqa: BLE001 - whatever the code raises is its answer
            answer = _raised(error)
        frames.send(request[0], _text(answer))
    return 0


def _text(answer: _Answer) -> bytes:
    return encode(answer).encode()
