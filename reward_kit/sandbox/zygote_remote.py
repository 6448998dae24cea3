"""The code under test as a test program sees it: names that look like its own, behind which are only plain values.

A `Remote` stands for an object in another process. What it is asked (call it, iterate over it, take its length or an
attribute) is answered there; what tests decide by is decided here, so that no answer can be "equal to anything":

- plain values arrive as built-in types, whatever class they had there;
- an object is never equal to a plain value, nor near, above or below one; the code is not asked;
- two objects are compared by the code where the test itself names their class, which is then what it tests;
- what comes of an object and a plain value is plain only where the test made the object from a class of the code: one
  that a function returned could be made to fit (`abs(f(x) - 3)`, which any object can answer with 0);
- as long as the test does nothing that may change an object, a question has one answer, however often it is asked; an
  object that contradicts itself (another length than it has items, a member or an equal of anything) fails the test.

Standard library only.
"""

from __future__ import annotations

import builtins
import importlib
import itertools
import operator
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Collection, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar

from reward_kit.sandbox.zygote_frames import Frames
from reward_kit.sandbox.zygote_plain import decode, encode
from reward_kit.sandbox.zygote_wire import NONCE_BYTES

__all__ = ["CodeGoneError", "Link", "Remote", "RemoteError", "RemoteExit", "UnjudgeableError"]


_T = TypeVar("_T")
_TOLD_FACTS = ("class", "type", "iterator", "awaitable")
"""What the code says of an object; all else that is known of one is found out here."""
_CHANGING = frozenset({"call", "set", "setitem", "delitem", "next", "enter", "leave", "await", "anext", "aenter"})
"""After these an object may give other answers than before."""
_MOST_ITEMS = 100_000
"""What an object may hold whose members or length a test asks for."""
_OPPOSITE = {"lt": "gt", "gt": "lt", "le": "gt", "ge": "lt"}
"""What cannot be true of two objects as well."""
_DEPTH = 50
_PREDICATES = frozenset(
    {name for name in dir(str) if name.startswith("is")}
    | {"startswith", "endswith", "issubset", "issuperset", "isdisjoint", "is_integer"}
)
"""Methods of plain values by which they say whether something is so."""


class CodeGoneError(BaseException):
    """The process of the code under test has ended. No `except Exception` of a test catches that."""


class ContradictionError(BaseException):
    """An object of the code gives answers that cannot both be true."""


class RemoteExit(BaseException):
    """The code under test raised something that is no `Exception`, and left by it."""


class UnjudgeableError(BaseException):
    """The test program does something with the code that cannot be done from another process."""


class RemoteError(Exception):
    """An exception of the code under test that has no counterpart here."""


class Link:
    """The line to the code under test."""

    def __init__(self, descriptor: int, familiar: Collection[str], classes: Mapping[str, str] | None = None) -> None:
        """By a socket; the test itself names the classes `familiar`, and defines `classes`, by their source."""
        self._frames = Frames(descriptor)
        self._familiar = familiar
        self._classes = classes or {}
        self._answers: dict[str, tuple[bool, Any]] = {}
        self._coroutines: dict[int, tuple[Any, int]] = {}
        self._lock = threading.RLock()
        self.changes = 0
        """How often something was done that may have changed an object."""
        self.used = 0
        """How often tests have turned to the code."""
        self.swayed = 0
        """How often the code has had a say: anything but which functions and classes it has."""
        self.called = 0
        """How often a function of the code was called."""
        self.gone: str | None = None
        """Why the code cannot answer any more."""
        self.contradiction: str | None = None
        """What an object of the code said that cannot be, since somebody last looked."""
        self.unjudgeable: str | None = None
        """What the test program did that cannot be done from another process."""
        self.exceptions: dict[str, type[BaseException]] = {}
        """Exceptions of the code under test that a test program can catch, by name."""

    def ask(self, *request: Any) -> Any:
        """Have something done, and take what came of it: a value, a `Remote`, or an exception raised here."""
        self.used += 1
        if request[0] in _CHANGING:
            self._changed()
        self.called += request[0] == "call"
        nonce = os.urandom(NONCE_BYTES)
        kind, *rest = self._exchanged(nonce, encode(list(request)).encode())
        names_object = kind == "h" and request[0] == "get" and request[1][0] == ["h", 0]
        self.swayed += not names_object and request[0] not in ("load", "names")
        if kind == "v":
            return rest[0], rest[1]
        if kind == "h":
            return self._remote(*rest), {}
        if kind == "parts":
            return self._whole(rest[0], _DEPTH), rest[1]
        error = self._exception(*rest)
        if isinstance(error, (StopIteration, StopAsyncIteration)) and request[0] not in ("next", "pull", "anext"):
            raise RuntimeError(f"the code raised {type(error).__name__}")  # which would only end a loop of the test
        raise error

    def _changed(self) -> None:
        self.changes += 1
        self._answers.clear()

    def operate(self, name: str, *values: Any) -> Any:
        """Have an operation done with these. One that changes nothing has one answer until something is changed."""
        sent = [self.sent(value) for value in values]
        if name in _CHANGING:
            return self.ask(name, sent)[0]
        key = encode([name, sent])
        if key not in self._answers:
            try:
                self._answers[key] = True, self.ask(name, sent)[0]
            except Exception as error:  # noqa: BLE001 - an answer too, to be given again
                self._answers[key] = False, error
        returned, answer = self._answers[key]
        if not returned:
            raise answer
        return answer

    def compare(self, name: str, one: Remote, other: Remote) -> bool:
        """Have two objects compared. The code decides, but not for both of two things that exclude each other."""
        found = self.operate(name, one, other) is True
        if name == "eq":
            if found and self.agrees_to_anything("eq", one):
                self.contradict("an object is equal to anything")
            if (self.operate("eq", other, one) is True) != found:
                self.contradict("an object is equal to another one which is not equal to it")
        elif found and self.agrees(_OPPOSITE[name], one, other):
            self.contradict(f"two objects are both {name!r} and {_OPPOSITE[name]!r}")
        return found

    def agrees_to_anything(self, name: str, one: Remote) -> bool:
        """Whether an object agrees to what is never true of it: about a text that nobody has seen."""
        return self.agrees(name, one, os.urandom(NONCE_BYTES).hex())

    def agrees(self, name: str, one: Remote, other: Any) -> bool:
        """Whether the code says so; whatever it raises instead is no consent."""
        try:
            return self.operate(name, one, other) is True
        except Exception:  # noqa: BLE001 - the exception is the code's, and answers a question that no test asked
            return False

    def contradict(self, what: str) -> None:
        """Have the test fail."""
        self.contradiction = what
        raise ContradictionError(what)

    def familiar(self, remote: Remote) -> bool:
        """Whether the test itself names the class of this object."""
        return facts_of(remote).get("type") in self._familiar

    # ── what is sent ─────────────────────────────────────────────────────────────────────────────────────────────────

    def sent(self, value: Any, seen: dict[int, Any] | None = None) -> list[Any]:
        """A value as it is sent."""
        if isinstance(value, Remote):
            return ["h", number_of(value)]
        if id(value) in self._coroutines:
            return ["h", self._coroutines[id(value)][1]]
        try:
            encode(value)
        except TypeError as error:
            return self._sent_parts(value, error, {} if seen is None else seen)
        return ["v", value]

    def _sent_parts(self, value: Any, error: TypeError, seen: dict[int, Any]) -> list[Any]:
        """What holds objects of the code or of the test, or is known to every interpreter by a name."""
        if type(value) in (list, tuple):
            return [type(value).__name__, [self.sent(item, seen) for item in value]]
        if type(value) is dict:
            return ["dict", [[self.sent(key, seen), self.sent(item, seen)] for key, item in value.items()]]
        if isinstance(value, range):
            return ["range", value.start, value.stop, value.step]
        if isinstance(value, (Iterator, KeysView, ValuesView, ItemsView)):
            items = list(itertools.islice(value, _MOST_ITEMS + 1))
            if len(items) <= _MOST_ITEMS:
                return ["iterator", [self.sent(item, seen) for item in items]]
        if known := _known_name(value):
            return ["known", *known]
        if type(value).__name__ in self._classes and hasattr(value, "__dict__"):
            return self._sent_object(value, seen)
        self.unjudgeable = f"the test hands over something that is not plain data: {error}"
        raise UnjudgeableError(self.unjudgeable)

    def _sent_object(self, value: Any, seen: dict[int, Any]) -> list[Any]:
        """An object of a class that the tests define, by what it holds; the code gets one like it."""
        if id(value) in seen:
            return ["again", seen[id(value)]]
        number = seen[id(value)] = len(seen)
        state = [[name, self.sent(each, seen)] for name, each in vars(value).items()]
        return ["made", number, type(value).__name__, self._classes[type(value).__name__], state]

    # ── what comes back ──────────────────────────────────────────────────────────────────────────────────────────────

    def _exchanged(self, nonce: bytes, request: bytes) -> list[Any]:
        try:
            with self._lock:  # a test may have threads
                if self.gone:
                    raise CodeGoneError(self.gone)
                return self._answer_to(nonce, request)
        except CodeGoneError as error:
            self.gone = str(error)
            raise

    def _answer_to(self, nonce: bytes, request: bytes) -> list[Any]:
        try:
            self._frames.send(nonce, request)
            while frame := self._frames.receive():
                if frame[0] == nonce:
                    return _well_formed(frame[1])
        except OSError:
            pass
        raise CodeGoneError("the process of the code ended before it answered")

    def _remote(self, number: int, told: dict[str, Any]) -> Any:
        remote = Remote(self, number, {fact: told.get(fact) for fact in _TOLD_FACTS})
        if told.get("awaitable") is not True:
            return remote
        coroutine = _awaiting(remote)
        self._coroutines[id(coroutine)] = coroutine, number
        return coroutine

    def _whole(self, part: Any, depth: int) -> Any:
        """A value that holds objects."""
        match part:
            case ["v", value]:
                return value
            case ["h", int(number), dict(told)]:
                return self._remote(number, told)
            case ["known", "builtins", str(name)] if isinstance(getattr(builtins, name, None), type):
                return getattr(builtins, name)
            case ["list" | "tuple" as kind, list(items)] if depth:
                whole = [self._whole(item, depth - 1) for item in items]
                return whole if kind == "list" else tuple(whole)
            case ["dict", list(pairs)] if depth:
                return {self._whole(key, depth - 1): self._whole(value, depth - 1) for key, value in pairs}
        self.gone = "the process of the code wrote no answer"
        raise CodeGoneError(self.gone)

    def _exception(self, names: Any, arguments: Any, text: Any) -> BaseException:
        for name in map(str, names):
            known = self.exceptions.get(name) or getattr(builtins, name, None)
            if not (isinstance(known, type) and issubclass(known, BaseException)):
                continue
            if not issubclass(known, Exception) and known is not SystemExit:
                return RemoteExit(str(text))
            try:
                return known(*arguments)
            except Exception:  # noqa: BLE001 - one that wants other arguments; its text is what counts
                break
        return RemoteError(str(text))


def _known_name(value: Any) -> tuple[str, str] | None:
    """The module and the name by which the standard library has this very type or function."""
    module, name = getattr(value, "__module__", None) or "builtins", getattr(value, "__qualname__", None)
    if not callable(value) or not isinstance(name, str) or str(module).partition(".")[0] not in sys.stdlib_module_names:
        return None
    try:
        found = operator.attrgetter(name)(importlib.import_module(str(module)))
    except (ImportError, AttributeError):
        return None
    return (str(module), name) if found is value and module != "__main__" else None


async def _awaiting(remote: Remote) -> Any:
    """A coroutine of the code, as a test awaits it."""
    return link_of(remote).operate("await", remote)


def _well_formed(content: bytes) -> list[Any]:
    """The answer; whoever wrote something else there is not in a state to answer."""
    try:
        answer = decode(content.decode())
    except (ValueError, RecursionError) as error:
        raise CodeGoneError(f"the process of the code wrote no answer: {error}") from None
    match answer:
        case ["v", _, dict()] | ["h", int(), dict()] | ["parts", list(), dict()] | ["x", list(), list(), str()]:
            return list(answer)
    raise CodeGoneError("the process of the code wrote no answer")


class _Items:
    """What an object gives when it is iterated over, kept so that it gives the same to all who ask."""

    def __init__(self, remote: Remote) -> None:
        self._link = link_of(remote)
        self._iterator = _told(remote, "iter")
        self._pulled: list[Any] = []
        self._ended = False

    def __iter__(self) -> Iterator[Any]:
        place = 0
        while place < len(self._pulled) or self._pull():
            yield self._pulled[place]
            place += 1

    def all(self) -> list[Any]:
        """Every one of them; one that never ends contradicts itself."""
        while len(self._pulled) <= _MOST_ITEMS and self._pull():
            pass
        if not self._ended:
            self._link.contradict(f"an object gives more than {_MOST_ITEMS:,} items")
        return self._pulled

    def _pull(self) -> bool:
        if self._ended:
            return False
        try:
            # Not `next`: this changes nothing but an iterator that nobody else has.
            self._pulled.append(self._link.ask("pull", [self._link.sent(self._iterator)])[0])
        except StopIteration:
            self._ended = True
        return not self._ended


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
        if not _is_known_to(self):
            _distrust(self, name)
        return link_of(self).operate("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        link_of(self).operate("set", self, name, value)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Remote) and bool(link_of(self).operate("isinstance", instance, self))

    def __iter__(self) -> Iterator[Any]:
        if facts_of(self).get("iterator") is True:
            return self
        return iter(_items(self))

    def __next__(self) -> Any:
        facts = facts_of(self)
        if facts.get("ended"):
            raise StopIteration
        try:
            item = _told(self, "next")
        except StopIteration:
            facts["ended"] = True
            if "length" in facts and facts["length"] != facts.get("given", 0):
                link_of(self).contradict(f"an object of length {facts['length']} gave {facts.get('given', 0)} items")
            raise
        facts["given"] = facts.get("given", 0) + 1
        return item

    def __aiter__(self) -> AsyncIterator[Any]:
        found: AsyncIterator[Any] = _told(self, "aiter")
        return found

    async def __anext__(self) -> Any:
        return _told(self, "anext")

    async def __aenter__(self) -> Any:
        return link_of(self).operate("aenter", self)

    async def __aexit__(self, *_: object) -> None:
        link_of(self).operate("aleave", self)

    def __bool__(self) -> bool:
        return _told(self, "bool") is True

    def __len__(self) -> int:
        length = _exactly(int, _told(self, "len"))
        facts = facts_of(self)
        if facts.get("iterator") is True:
            facts["length"] = length
        elif not facts.get("constructed"):
            _agree(self, length)
        return length

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
            found = link_of(self).operate("contains", self, item) is True
            if found and link_of(self).agrees_to_anything("contains", self):
                link_of(self).contradict("an object contains anything")
            return found
        return any(item is each or item == each for each in _items(self).all())

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
    return link_of(one).compare(name, one, other)


def _is_known_to(remote: Remote) -> bool:
    """Whether the test names this object, or its class."""
    facts = facts_of(remote)
    return bool(facts.get("constructed") or facts.get("name") or link_of(remote).familiar(remote))


def _distrust(remote: Remote, name: str) -> None:
    """An object that a function returned is not asked what only text, numbers and sets know (`startswith`).

    Nor is one asked anything that has an attribute of any name: its answers would fit every test.
    """
    if name in _PREDICATES:
        raise AttributeError(f"a {facts_of(remote).get('type')!r} is no text, number or set, and has no {name!r}")
    try:
        link_of(remote).operate("get", remote, f"no_{os.urandom(NONCE_BYTES).hex()}")
    except Exception:  # noqa: BLE001 - whatever the code raises: it has no such attribute
        return
    link_of(remote).contradict("an object has an attribute of any name")


def _items(remote: Remote) -> _Items:
    """What it gives: the same, until something is changed."""
    facts, link = facts_of(remote), link_of(remote)
    kept = facts.get("items")
    if kept is None or kept[0] != link.changes:
        facts["items"] = kept = link.changes, _Items(remote)
    items: _Items = kept[1]
    return items


def _agree(remote: Remote, length: int) -> None:
    """An object that a function returned has as many items as it says."""
    try:
        items = _items(remote).all()
    except Exception:  # noqa: BLE001 - whatever the code raises: it cannot be iterated over, so there is nothing to compare
        return
    if len(items) != length:
        link_of(remote).contradict(f"an object of length {length} gives {len(items)} items")


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
