"""What runs beside the code under test when a test program judges it: its objects, handed out by number.

    judge ── nonce, "call" 3 with these values ─▶ the code ── nonce, a plain value | object 4 | an exception ─▶ judge

Plain values cross as what they hold; anything else stays here and the judge gets a number for it. The code shares this
process and can do to it what it likes: all it can change is its own answers. Standard library only.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from reward_kit.sandbox.zygote_frames import CHANNEL, Frames, described
from reward_kit.sandbox.zygote_plain import decode, encode
from reward_kit.sandbox.zygote_program import load_module, new_module
from reward_kit.sandbox.zygote_wire import SOLUTION, WORK

__all__ = ["serve_objects"]

_MUTABLE = (list, dict, set, bytearray)
_Answer = list[Any]

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "iter": iter,
    "next": next,
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
        plain = [place for place, (kind, _) in enumerate(arguments) if kind == "v"]
        before = {place: encode(given[place]) for place in plain if isinstance(given[place], _MUTABLE)}
        result = function(*given, **{name: self._taken(argument) for name, argument in named.items()})
        answer = self._given(result)
        if answer[0] == "v":
            answer.append(_changed(given, before))
        return answer

    def _taken(self, argument: list[Any]) -> Any:
        match argument:
            case ["v", value]:
                return value
            case ["list", parts]:
                return [self._taken(part) for part in parts]
            case ["tuple", parts]:
                return tuple(self._taken(part) for part in parts)
            case ["dict", pairs]:
                return {self._taken(key): self._taken(value) for key, value in pairs}
        return self._known[argument[1]]

    def _given(self, value: Any) -> _Answer:
        try:
            encode(value)
        except TypeError:
            self._known.append(value)
            facts = {"class": isinstance(value, type), "type": type(value).__name__}
            return ["h", len(self._known) - 1, facts]
        return ["v", value]

    def _names(self) -> dict[str, Any]:
        """What the module defines, in the words of the judge."""
        return {name: _kind(value) for name, value in list(vars(self._module).items()) if type(name) is str}


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
