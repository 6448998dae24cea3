"""The code under test as a test program sees it: names that look like its own, behind which are only plain values.

A `Remote` stands for an object in another process. What it is asked (call it, iterate over it, take its length or an
attribute) is answered there; what tests decide by is decided here, so that no answer can be "equal to anything":

- plain values arrive as built-in types, whatever class they had there;
- an object is never equal to a plain value, nor near, above or below one; the code is not asked;
- two objects are compared by the code where the test itself names their class, which is then what it tests;
- what comes of an object and a plain value is plain only where the test made the object from a class of the code: one
  that a function returned could be made to fit (`abs(f(x) - 3)`, which any object can answer with 0).

Standard library only.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

from reward_kit.sandbox.zygote_frames import Frames
from reward_kit.sandbox.zygote_plain import decode, encode
from reward_kit.sandbox.zygote_wire import NONCE_BYTES

__all__ = ["CodeGoneError", "Link", "Remote", "RemoteError", "UnjudgeableError"]


_T = TypeVar("_T")
_TOLD_FACTS = ("class", "type")
"""What the code says of an object; all else that is known of one is found out here."""


class CodeGoneError(Exception):
    """The process of the code under test has ended."""


class UnjudgeableError(BaseException):
    """The test program does something with the code that cannot be done from another process."""


class RemoteError(Exception):
    """An exception of the code under test that has no counterpart here."""


class Link:
    """The line to the code under test."""

    def __init__(self, descriptor: int, familiar: Collection[str]) -> None:
        """By a socket; the test itself names the classes `familiar`."""
        self._frames = Frames(descriptor)
        self._familiar = familiar
        self.used = 0
        """How often tests have turned to the code."""
        self.exceptions: dict[str, type[BaseException]] = {}
        """Exceptions of the code under test that a test program can catch, by name."""

    def ask(self, *request: Any) -> Any:
        """Have something done, and take what came of it: a value, a `Remote`, or an exception raised here."""
        self.used += 1
        nonce = os.urandom(NONCE_BYTES)
        self._frames.send(nonce, encode(list(request)).encode())
        answer = self._answer_to(nonce)
        kind, *rest = answer
        if kind == "v":
            return rest[0], rest[1]
        if kind == "h":
            return Remote(self, rest[0], {fact: rest[1].get(fact) for fact in _TOLD_FACTS}), {}
        error = self._exception(*rest)
        if isinstance(error, StopIteration) and request[0] != "next":
            raise RuntimeError("the code raised StopIteration")  # which would only end a loop of the test
        raise error

    def operate(self, name: str, *values: Any) -> Any:
        """Have an operation done with these."""
        return self.ask(name, [self.sent(value) for value in values])[0]

    def familiar(self, remote: Remote) -> bool:
        """Whether the test itself names the class of this object."""
        return facts_of(remote).get("type") in self._familiar

    def sent(self, value: Any) -> list[Any]:
        """A value as it is sent."""
        if isinstance(value, Remote):
            return ["h", number_of(value)]
        try:
            encode(value)
        except TypeError as error:
            return self._sent_parts(value, error)
        return ["v", value]

    def _sent_parts(self, value: Any, error: TypeError) -> list[Any]:
        """What holds objects of the code."""
        if isinstance(value, (list, tuple)):
            return ["tuple" if isinstance(value, tuple) else "list", [self.sent(item) for item in value]]
        if isinstance(value, dict):
            return ["dict", [[self.sent(key), self.sent(item)] for key, item in value.items()]]
        raise UnjudgeableError(f"the test hands over something that is not plain data: {error}")

    def _answer_to(self, nonce: bytes) -> list[Any]:
        while True:
            try:
                frame = self._frames.receive()
            except OSError:
                frame = None
            if frame is None:
                raise CodeGoneError("the process of the code ended before it answered")
            if frame[0] == nonce:
                return _well_formed(frame[1])

    def _exception(self, names: Any, arguments: Any, text: Any) -> BaseException:
        for name in names if isinstance(names, list) else ():
            known = self.exceptions.get(str(name)) or getattr(builtins, str(name), None)
            if isinstance(known, type) and issubclass(known, Exception):
                try:
                    return known(*arguments)
                except Exception:  # noqa: BLE001 - one that wants other arguments; its text is what counts
                    break
        return RemoteError(str(text))


def _well_formed(content: bytes) -> list[Any]:
    """The answer; whoever wrote something else there is not in a state to answer."""
    try:
        answer = decode(content.decode())
    except (ValueError, RecursionError) as error:
        raise CodeGoneError(f"the process of the code wrote no answer: {error}") from None
    match answer:
        case ["v", _, dict()] | ["h", int(), dict()] | ["x", list(), list(), str()]:
            return list(answer)
    raise CodeGoneError("the process of the code wrote no answer")


class Remote:
    """An object in the process of the code under test."""

    __slots__ = ("_reward_kit_facts", "_reward_kit_link", "_reward_kit_number")

    def __init__(self, link: Link, number: int, facts: dict[str, Any]) -> None:
        object.__setattr__(self, "_reward_kit_link", link)
        object.__setattr__(self, "_reward_kit_number", number)
        object.__setattr__(self, "_reward_kit_facts", facts)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Have the code do it; what it changed in the arguments is changed in them here."""
        link = link_of(self)
        sent = [link.sent(argument) for argument in arguments]
        value, changed = link.ask(
            "call", number_of(self), sent, {name: link.sent(value) for name, value in named.items()}
        )
        for place, now in changed.items():
            _become(arguments[place], now)
        if isinstance(value, Remote) and facts_of(self).get("class") and _names_a_class(facts_of(self).get("name")):
            facts_of(value)["constructed"] = True
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in {"__name__", "__doc__"}:
            raise AttributeError(name)
        return link_of(self).operate("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        link_of(self).operate("set", self, name, value)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Remote) and bool(link_of(self).operate("isinstance", instance, self))

    def __iter__(self) -> Iterator[Any]:
        link = link_of(self)
        iterator = _told(self, "iter")
        while True:
            try:
                yield link.operate("next", iterator)
            except StopIteration:
                return

    def __next__(self) -> Any:
        return _told(self, "next")

    def __bool__(self) -> bool:
        return _told(self, "bool") is True

    def __len__(self) -> int:
        return _exactly(int, _told(self, "len"))

    def __str__(self) -> str:
        return _exactly(str, _told(self, "str"))

    def __repr__(self) -> str:
        return _exactly(str, link_of(self).operate("repr", self))

    def __int__(self) -> int:
        return _exactly(int, _told(self, "int"))

    def __float__(self) -> float:
        return _exactly(float, _told(self, "float"))

    def __getitem__(self, key: Any) -> Any:
        return _told(self, "getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        link_of(self).operate("setitem", self, key, value)

    def __delitem__(self, key: Any) -> None:
        link_of(self).operate("delitem", self, key)

    def __enter__(self) -> Any:
        return link_of(self).operate("enter", self)

    def __exit__(self, *_: object) -> None:
        link_of(self).operate("leave", self)

    def __contains__(self, item: Any) -> bool:
        if facts_of(self).get("constructed") and link_of(self).familiar(self):
            return link_of(self).operate("contains", self, item) is True
        return any(item is each or item == each for each in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remote):
            return False
        return number_of(self) == number_of(other) or (_comparable(self, other) and _compared("eq", self, other))

    def __hash__(self) -> int:
        return hash((Remote, number_of(self)))


def _comparing(name: str) -> Callable[[Remote, Any], Any]:
    def compare(self: Remote, other: Any) -> Any:
        return _compared(name, self, other) if _comparable(self, other) else NotImplemented

    return compare


def _calculating(name: str) -> Callable[[Remote, Any], Any]:
    def calculate(self: Remote, other: Any) -> Any:
        """A result that is plain, from an operand that is plain, could have been made to fit; it is refused."""
        if not link_of(self).familiar(self):
            return NotImplemented
        result = link_of(self).operate(name, self, other)
        if not isinstance(result, Remote):
            return result if isinstance(other, Remote) else NotImplemented
        facts = [facts_of(each) for each in (self, other) if isinstance(each, Remote)]
        if not isinstance(other, Remote) and not facts[0].get("constructed"):
            facts_of(result)["fitted"] = True
        for fact in ("constructed", "fitted"):
            facts_of(result)[fact] = facts_of(result).get(fact) or any(each.get(fact) for each in facts)
        return result

    return calculate


for _name in ("lt", "le", "gt", "ge"):
    setattr(Remote, f"__{_name}__", _comparing(_name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Remote, f"__{_name}__", _calculating(_name))


def link_of(remote: Remote) -> Link:
    """Its line."""
    link: Link = object.__getattribute__(remote, "_reward_kit_link")
    return link


def number_of(remote: Remote) -> int:
    """What it is called in its process."""
    number: int = object.__getattribute__(remote, "_reward_kit_number")
    return number


def facts_of(remote: Remote) -> dict[str, Any]:
    """What is known of it."""
    facts: dict[str, Any] = object.__getattribute__(remote, "_reward_kit_facts")
    return facts


def _names_a_class(name: Any) -> bool:
    """Whether a test that calls this means to make an object, by the way that classes are written."""
    return isinstance(name, str) and name.lstrip("_")[:1].isupper()


def _told(remote: Remote, operation: str, *values: Any) -> Any:
    """A plain fact about an object, as the code tells it; never about one that may have been made to fit."""
    if facts_of(remote).get("fitted"):
        raise TypeError("what comes of an object that the code returned and a plain value is not plain")
    return link_of(remote).operate(operation, remote, *values)


def _comparable(one: Remote, other: Any) -> bool:
    return isinstance(other, Remote) and link_of(one).familiar(one) and link_of(one).familiar(other)


def _compared(name: str, one: Remote, other: Remote) -> bool:
    return link_of(one).operate(name, one, other) is True


def _exactly(kind: type[_T], value: Any) -> _T:
    if type(value) is not kind:
        raise TypeError(f"the code gives a {type(value).__name__!r} where a {kind.__name__!r} must be")
    return value


def _become(mine: Any, now: Any) -> None:
    """Change an argument as the code changed its copy."""
    match mine, now:
        case (list(), list()) | (bytearray(), bytes()):
            mine[:] = now
        case (dict(), dict()) | (set(), set()):
            mine.clear()
            mine.update(now)
