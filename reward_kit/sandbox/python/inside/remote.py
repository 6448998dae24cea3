# SPDX-License-Identifier: Apache-2.0
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
from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    ItemsView,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from types import GeneratorType
from typing import Any, NoReturn, TypeVar

from reward_kit.sandbox.python.inside.statements import Statement
from reward_kit.sandbox.python.messages import NONCE_BYTES, Frames
from reward_kit.sandbox.python.plain import changeable, decode, encode

__all__ = [
    "CodeGoneError",
    "CodesError",
    "CodesExit",
    "Link",
    "Remote",
    "RemoteError",
    "RemoteExit",
    "UnjudgeableError",
    "type_of",
]


_T = TypeVar("_T")
_KNOWN_FACTS = ("class", "type", "iterator", "awaitable", "generator")
"""What the code says of an object; all else that is known of one is found out here."""
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift")
_CHANGING = frozenset(
    {"call", "set", "delete", "setitem", "delitem", "next", "enter", "leave", "await", "anext", "aenter", "aleave"}
    | {f"i{name.strip('_')}" for name in _BINARY}
)
"""After these an object may give other answers than before."""
_MOST_ITEMS = 100_000
"""What an object may hold whose members or length a test asks for."""
_MOST_EQUAL = 50
"""Pairs of objects that are looked at once more where they were found equal."""
_FAR = 1_000_003
_OPPOSITE = {"lt": "gt", "gt": "lt", "le": "gt", "ge": "lt"}
"""What cannot be true of two objects as well."""
_DEPTH = 50
_MOST_KINDS = 1000
_SPECIAL = frozenset({"__name__", "__qualname__", "__dict__", "__annotations__", "__wrapped__"})
"""What tests ask of objects for which Python has names of its own."""
_INPUT = builtins.input
_kinds: dict[Any, type[Remote]] = {}
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


class CodesExit(SystemExit):
    """The code under test wanted to end the program. That is not for it to say."""


class _Sending:
    """What goes with one request."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        """Objects of the test's own classes that go with it, numbered."""
        self.things: list[Any] = []
        """Everything in it that the code can change, in the order in which the code finds it."""


class Link:
    """The line to the code under test."""

    def __init__(self, descriptor: int, familiar: Collection[str], classes: Mapping[str, str] | None = None) -> None:
        """By a socket; the test itself names the classes `familiar`, and defines `classes`, by their source."""
        self._frames = Frames(descriptor)
        self._familiar = familiar
        self._classes = classes or {}
        self._answers: dict[str, tuple[bool, Any]] = {}
        self._coroutines: dict[int, tuple[Any, int]] = {}
        self._remotes: dict[int, Any] = {}
        self._functions: list[Callable[..., Any]] = []
        self._function_numbers: dict[Any, int] = {}
        self._found_equal: list[tuple[Remote, Remote]] = []
        self._types: set[type] = set()
        """Types of Python's that the code has returned."""
        self._lock = threading.RLock()
        self.changes = 0
        """How often something was done that may have changed an object."""
        self.used = 0
        """How often tests have turned to the code."""
        self.swayed = 0
        """How often the code has had a say: anything but which functions and classes it has."""
        self.statement = Statement()
        """The test's present statement, and what the code has changed since it began."""
        self.gone: str | None = None
        """Why the code cannot answer any more."""
        self.contradiction: str | None = None
        """What an object of the code said that cannot be, since somebody last looked."""
        self.unjudgeable: str | None = None
        """What the test program did that cannot be done from another process."""
        self.raised_on_purpose: Callable[[BaseException], bool] = lambda _: False
        """Whether the test raises an exception without looking at the code: not to object to anything."""
        self.exceptions: dict[str, type[BaseException]] = {}
        """Exceptions of the code under test that a test program can catch, by name."""

    def ask(self, *request: Any, things: Sequence[Any] = ()) -> Any:
        """Have something done, and take what came of it: a value, a `Remote`, or an exception raised here.

        What the code changed of `things`, which went with the request, is changed.
        """
        self.used += 1
        if request[0] in _CHANGING:
            self._changed()
        self.statement.called += request[0] == "call"
        nonce = os.urandom(NONCE_BYTES)
        kind, *rest = self._exchanged(nonce, encode(list(request)).encode())
        names_object = kind == "h" and request[0] == "get" and request[1][0] == ["h", 0]
        self.swayed += not names_object and request[0] not in ("load", "names")
        if kind != "x":
            part, changed = ([kind, *rest], {}) if kind == "h" else (["v", rest[0]], rest[1])
            if kind == "parts":
                part = rest[0]
            value = self._whole(part, things)
            now = {number: self._whole(each, things) for number, each in changed.items()}
            for number, content in now.items():
                thing = self._handed_over(number, things)
                self.statement.changes(thing)
                _become(thing, content)
            return value
        error = self._exception(*rest)
        if isinstance(error, (StopIteration, StopAsyncIteration)) and request[0] not in ("next", "pull", "anext"):
            raise RuntimeError(f"the code raised {type(error).__name__}")  # which would only end a loop of the test
        raise error

    def _changed(self) -> None:
        self.changes += 1
        self._answers.clear()

    def operate(self, name: str, *values: Any) -> Any:
        """Have an operation done with these. One that changes nothing has one answer until something is changed."""
        if name in _CHANGING:
            self.statement.bring_again()
        sent = [self.sent(value) for value in values]
        if name in _CHANGING:
            return self.ask(name, sent)
        key = encode([name, sent])
        if key not in self._answers:
            try:
                self._answers[key] = True, self.ask(name, sent)
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
            if found and len(self._found_equal) < _MOST_EQUAL:
                self._found_equal.append((one, other))
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

    def contradict(self, what: str) -> NoReturn:
        """Make the test fail, and note why: the code under test said two things that cannot both be true."""
        self.contradiction = what
        raise ContradictionError(what)

    def equal_to_all(self) -> str | None:
        """What was found equal to another object, and is to every one of its class. Asked when all tests are over.

        It is compared with objects that are made of other values than the test's, for that changes what a class keeps.
        """
        for pair in self._found_equal:
            for one, made in (pair, pair[::-1]):
                others = list(self._like(made)) if "made_by" in facts_of(made) else []
                if others and all(self.agrees("eq", one, other) for other in others):
                    return f"a {facts_of(made).get('type')!r} is equal to every object of its class"
        return None

    def _like(self, made: Remote) -> Iterator[Any]:
        """Objects of the same class, made of other values; none where it was made of none that can be others."""
        kind, sent, by_name = facts_of(made)["made_by"]
        for change in (_larger, _opposite, _empty):
            parts = [_altered(each, change) for each in sent]
            named = {name: _altered(each, change) for name, each in by_name.items()}
            if parts == sent and named == by_name:
                continue
            try:
                yield self.ask("call", kind, parts, named)
            except Exception:  # noqa: BLE001 - whatever the code raises: it makes no objects of such values
                continue

    def familiar(self, remote: Remote) -> bool:
        """Whether the test itself names the class of this object."""
        return facts_of(remote).get("type") in self._familiar

    # ── what is sent ─────────────────────────────────────────────────────────────────────────────────────────────────

    def sent(self, value: Any, sending: _Sending | None = None) -> list[Any]:
        """A value as it is sent."""
        sending = _Sending() if sending is None else sending
        if isinstance(value, Remote):
            return ["h", number_of(value)]
        if id(value) in self._coroutines:
            return ["h", self._coroutines[id(value)][1]]
        try:
            encode(value)
        except TypeError as error:
            return self._sent_parts(value, error, sending)
        sending.things += changeable(value)
        return ["v", value]

    def _sent_parts(self, value: Any, error: TypeError, sending: _Sending) -> list[Any]:  # noqa: PLR0911 - one per kind
        """What holds objects of the code or of the test, or is known to every interpreter by a name."""
        if type(value) is list:
            sending.things.append(value)
        if type(value) in (list, tuple):
            return [type(value).__name__, [self.sent(item, sending) for item in value]]
        if type(value) is dict:
            sending.things.append(value)
            return ["dict", [[self.sent(key, sending), self.sent(item, sending)] for key, item in value.items()]]
        if isinstance(value, range):
            return ["range", value.start, value.stop, value.step]
        if isinstance(value, (Iterator, KeysView, ValuesView, ItemsView)):
            items = list(itertools.islice(value, _MOST_ITEMS + 1))
            if len(items) <= _MOST_ITEMS:
                return ["iterator", [self.sent(item, sending) for item in items]]
        if known := _known_name(value):
            return ["known", *known]
        if type(value).__name__ in self._classes and hasattr(value, "__dict__"):
            return self._sent_object(value, sending)
        if callable(value) and not isinstance(value, type):
            return self._sent_function(value)
        return self._not_sent(value, error)

    def _not_sent(self, value: Any, error: TypeError) -> NoReturn:
        """Of what cannot be handed over: it is the code's doing where the test has made it of a type from the code."""
        if type(value) in self._types:
            self.contradict(f"the test made a {type(value).__name__!r} of what the code returned: {error}")
        self.unjudgeable = f"the test hands over something that is not plain data: {error}"
        raise UnjudgeableError(self.unjudgeable)

    def _sent_object(self, value: Any, sending: _Sending) -> list[Any]:
        """An object of a class that the tests define, by what it holds; the code gets one like it."""
        if id(value) in sending.seen:
            return ["again", sending.seen[id(value)]]
        number = sending.seen[id(value)] = len(sending.seen)
        sending.things.append(value)
        state = [[name, self.sent(each, sending)] for name, each in vars(value).items()]
        return ["made", number, type(value).__name__, self._classes[type(value).__name__], state]

    def _sent_function(self, value: Callable[..., Any]) -> list[Any]:
        """A function of the test, which the code can have called here."""
        key = value if getattr(type(value), "__hash__", None) else id(value)
        number = self._function_numbers.setdefault(key, len(self._functions))
        if number == len(self._functions):
            self._functions.append(value)
        name, doc = getattr(value, "__name__", None), getattr(value, "__doc__", None)
        name = name if isinstance(name, str) else type(value).__name__
        return ["function", number, name, doc if isinstance(doc, str) else None]

    def sent_error(self, error: BaseException, *, wholly: bool) -> list[Any]:
        """An exception, for code that is told of it; its arguments only where it is `wholly` told."""
        names = [each.__name__ for each in type(error).__mro__]
        arguments = list(error.args) if wholly else []
        try:
            encode(arguments)
        except TypeError:
            arguments = [str(error)]
        return ["error", names, arguments]

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
                if frame[0] != nonce:
                    continue
                answer = _well_formed(frame[1])
                if answer[0] == "printed":
                    _show(answer[1])
                    answer = list(answer[2])
                if answer[0] != "back":
                    return answer
                self._call_back(*answer[1:])
        except OSError:
            pass
        raise CodeGoneError("the process of the code ended before it answered")

    def _call_back(self, number: int, arguments: list[Any], named: dict[str, Any]) -> None:
        """Call a function of the test for the code. A check that fails in it fails the test, whatever the code does."""
        function = self._handed_over(number, self._functions)
        try:
            value = function(
                *[self._whole(argument) for argument in arguments],
                **{str(name): self._whole(argument) for name, argument in named.items()},
            )
            outcome = [True, self.sent(value)]
        except Exception as error:  # noqa: BLE001 - whatever the function raises, the code is told
            if isinstance(error, AssertionError):
                self.contradiction = f"a function of the test was called with something wrong: {error}"
            outcome = [False, self.sent_error(error, wholly=not isinstance(error, AssertionError))[1:]]
        self._frames.send(os.urandom(NONCE_BYTES), encode(["back", *outcome]).encode())

    def _remote(self, number: int, known: dict[str, Any]) -> Any:
        """What stands for an object: always the same."""
        if number in self._remotes:
            return self._remotes[number]
        facts = {fact: known.get(fact) for fact in _KNOWN_FACTS}
        remote = self._remotes[number] = _kind_of(facts["type"])(self, number, facts)
        if facts["awaitable"] is not True:
            return remote
        coroutine = self._remotes[number] = _awaiting(remote)
        self._coroutines[id(coroutine)] = coroutine, number
        return coroutine

    def _whole(self, part: Any, things: Sequence[Any] = (), depth: int = _DEPTH) -> Any:  # noqa: PLR0911 - one per kind
        """A value that may hold objects, or what the test handed over itself."""
        match part:
            case ["v", value]:
                return value
            case ["h", int(number), dict(known)]:
                return self._remote(number, known)
            case ["same", int(number)]:
                return self._handed_over(number, things)
            case ["function", int(number)]:
                return self._handed_over(number, self._functions)
            case ["known", "builtins", str(name)] if isinstance(getattr(builtins, name, None), type):
                self._types.add(getattr(builtins, name))
                return getattr(builtins, name)
            case ["list" | "tuple" as kind, list(items)] if depth:
                whole = [self._whole(item, things, depth - 1) for item in items]
                return whole if kind == "list" else tuple(whole)
            case ["dict", list(pairs)] if depth:
                return {
                    self._whole(key, things, depth - 1): self._whole(value, things, depth - 1) for key, value in pairs
                }
        return self._no_answer()

    def _handed_over(self, number: Any, things: Sequence[Any]) -> Any:
        if type(number) is not int or not 0 <= number < len(things):
            self._no_answer()
        return things[number]

    def _no_answer(self) -> NoReturn:
        self.gone = "the process of the code wrote no answer"
        raise CodeGoneError(self.gone)

    def _exception(self, names: Any, arguments: Any, text: Any, held: dict[Any, Any]) -> BaseException:
        names = [str(name) for name in names]
        cause = self._inner(held.pop("__cause__", None))
        for name in names:
            known = self.exceptions.get(name) or getattr(builtins, name, None)
            if not (isinstance(known, type) and issubclass(known, BaseException)):
                continue
            if issubclass(known, SystemExit):
                known = CodesExit
            elif not issubclass(known, Exception) or "Exception" not in names:
                break
            error: BaseException
            try:
                error = known(*arguments)
            except Exception:  # noqa: BLE001 - one that wants other arguments; its text is what counts
                error = self._made(known, arguments, str(text), held)
            error.__cause__ = cause
            return _with_attributes(error, str(text), held)
        return RemoteError(str(text)) if "Exception" in names else RemoteExit(str(text))

    def _inner(self, part: Any) -> BaseException | None:
        """An exception that another one holds."""
        match part:
            case [list(), list(), str(), dict()]:
                return self._exception(*part)
        return None

    def _made(self, kind: type[BaseException], arguments: list[Any], text: str, held: dict[Any, Any]) -> BaseException:
        """An exception of a class that wants other arguments than those that were told."""
        if issubclass(kind, BaseExceptionGroup):
            parts = held.pop("exceptions", None)
            told = filter(None, map(self._inner, parts if isinstance(parts, list) else ()))
            fitting = [each for each in told if isinstance(each, Exception) or not issubclass(kind, Exception)]
            return kind.__new__(kind, str((arguments or [text])[0]), fitting or [RemoteError(text)])
        error = kind.__new__(kind)
        error.args = tuple(arguments)
        return error


def _with_attributes(error: BaseException, text: str, held: dict[Any, Any]) -> BaseException:
    """An exception with what the code's holds, for tests that look at it."""
    for name, value in held.items():
        if isinstance(name, str) and name.isidentifier() and not name.startswith("_") and not hasattr(error, name):
            setattr(error, name, value)
    if isinstance(error, CodesError):
        error.text = text.partition(": ")[2]
    return error


class CodesError(BaseException):
    """What every exception class of the code is here: written as the code writes it."""

    text: str | None = None

    def __str__(self) -> str:
        return super().__str__() if self.text is None else self.text


def _show(printed: str) -> None:
    """What the code printed is the test's output, where the test looks at that."""
    if sys.stdout is not sys.__stdout__:
        sys.stdout.write(printed)


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
        case ["printed", str(), list(shown)] if _is_answer(shown):
            return list(answer)
        case list() if _is_answer(answer):
            return list(answer)
    raise CodeGoneError("the process of the code wrote no answer")


def _is_answer(answer: list[Any]) -> bool:
    match answer:
        case ["v", _, dict()] | ["h", int(), dict()] | ["parts", list(), dict()]:
            return True
        case ["x", list(), list(), str(), dict()] | ["back", int(), list(), dict()]:
            return True
    return False


class _Items:
    """What an object gives when it is iterated over, kept so that it gives the same to all who ask."""

    def __init__(self, remote: Remote) -> None:
        self._link = link_of(remote)
        self._iterator = _plain_fact(remote, "iter")
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
            self._pulled.append(self._link.ask("pull", [self._link.sent(self._iterator)]))
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
        link, sending = link_of(self), _Sending()
        if builtins.input is not _INPUT:
            link.unjudgeable = "the test replaces 'input', which the code has for itself"
            raise UnjudgeableError(link.unjudgeable)
        link.statement.bring_again()
        sent = [link.sent(argument, sending) for argument in arguments]
        by_name = {name: link.sent(value, sending) for name, value in named.items()}
        value = link.ask("call", number_of(self), sent, by_name, things=sending.things)
        if isinstance(value, Remote) and facts_of(self).get("class"):
            facts_of(value)["made_by"] = number_of(self), sent, by_name
            if _names_a_class(facts_of(self).get("name")):
                facts_of(value)["constructed"] = True
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _SPECIAL:
            raise AttributeError(name)
        if not _is_known_to(self):
            _distrust(self, name)
        return link_of(self).operate("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        link_of(self).operate("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        link_of(self).operate("delete", self, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return GeneratorType if facts_of(self).get("generator") is True else type(self)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return link_of(self).operate("get", self, "__doc__")

    def __mro_entries__(self, bases: Any) -> Any:
        link_of(self).unjudgeable = f"the test derives a class from {facts_of(self).get('name')!r}, a class of the code"
        raise UnjudgeableError(link_of(self).unjudgeable)

    def __subclasscheck__(self, kind: Any) -> bool:
        return isinstance(kind, Remote) and bool(link_of(self).operate("issubclass", kind, self))

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
            item = _plain_fact(self, "next")
        except StopIteration:
            facts["ended"] = True
            if "length" in facts and facts["length"] != facts.get("given", 0):
                link_of(self).contradict(f"an object of length {facts['length']} gave {facts.get('given', 0)} items")
            raise
        facts["given"] = facts.get("given", 0) + 1
        return item

    def __aiter__(self) -> AsyncIterator[Any]:
        found: AsyncIterator[Any] = _plain_fact(self, "aiter")
        return found

    async def __anext__(self) -> Any:
        return _plain_fact(self, "anext")

    async def __aenter__(self) -> Any:
        return link_of(self).operate("aenter", self)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return _left(self, "aleave", error)

    def __bool__(self) -> bool:
        return _plain_fact(self, "bool") is True

    def __len__(self) -> int:
        length = _exactly(int, _plain_fact(self, "len"))
        facts = facts_of(self)
        if facts.get("iterator") is True:
            facts["length"] = length
        elif not facts.get("constructed"):
            _agree(self, length)
        return length

    def __str__(self) -> str:
        return _exactly(str, _plain_fact(self, "str"))

    def __repr__(self) -> str:
        return _exactly(str, link_of(self).operate("repr", self))

    def __int__(self) -> int:
        return _exactly(int, _plain_fact(self, "int"))

    def __float__(self) -> float:
        return _exactly(float, _plain_fact(self, "float"))

    def __round__(self, digits: int | None = None) -> Any:
        return _plain_fact(self, "round", *([] if digits is None else [digits]))

    def __format__(self, how: str) -> str:
        return _exactly(str, _plain_fact(self, "format", how))

    def __reversed__(self) -> Iterator[Any]:
        return iter(_plain_fact(self, "reversed"))

    def __getitem__(self, key: Any) -> Any:
        return _plain_fact(self, "getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        link_of(self).operate("setitem", self, key, value)

    def __delitem__(self, key: Any) -> None:
        link_of(self).operate("delitem", self, key)

    def __enter__(self) -> Any:
        return link_of(self).operate("enter", self)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return _left(self, "leave", error)

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
        if link_of(self).familiar(self):
            return _exactly(int, _plain_fact(self, "hash"))
        return hash((Remote, number_of(self)))


def _comparing(name: str) -> Callable[[Remote, Any], Any]:
    def compare(self: Remote, other: Any) -> Any:
        return _compared(name, self, other) if _comparable(self, other) else NotImplemented

    return compare


def _calculating(name: str, *, reflected: bool = False) -> Callable[[Remote, Any], Any]:
    def calculate(self: Remote, other: Any) -> Any:
        """A result that is plain, from an operand that is plain, could have been made to fit; it is refused."""
        if not link_of(self).familiar(self):
            return NotImplemented
        operands = (other, self) if reflected else (self, other)
        result = link_of(self).operate(name, *operands)
        if not isinstance(result, Remote):
            return result if isinstance(other, Remote) else NotImplemented
        facts = [facts_of(each) for each in operands if isinstance(each, Remote)]
        if not isinstance(other, Remote) and not facts[0].get("constructed"):
            facts_of(result)["fitted"] = True
        return _descended(result, facts)

    return calculate


def _single(name: str) -> Callable[[Remote], Any]:
    def calculate(self: Remote) -> Any:
        result = _plain_fact(self, name)
        return _descended(result, [facts_of(self)]) if isinstance(result, Remote) else result

    return calculate


def _descended(result: Remote, facts: list[dict[str, Any]]) -> Remote:
    """What comes of objects is as much to be trusted as they are."""
    for fact in ("constructed", "fitted"):
        facts_of(result)[fact] = facts_of(result).get(fact) or any(each.get(fact) for each in facts)
    return result


for _name in ("lt", "le", "gt", "ge"):
    setattr(Remote, f"__{_name}__", _comparing(_name))
for _name in ("neg", "pos", "invert", "abs"):
    setattr(Remote, f"__{_name}__", _single(_name))
for _name in (*_BINARY, "divmod"):
    setattr(Remote, f"__{_name.strip('_')}__", _calculating(_name))
    setattr(Remote, f"__r{_name.strip('_')}__", _calculating(_name, reflected=True))
for _name in _BINARY:
    setattr(Remote, f"__i{_name.strip('_')}__", _calculating(f"i{_name.strip('_')}"))


def _kind_of(name: Any) -> type[Remote]:
    """The class of what stands for objects of a class of this name, which tests may ask for."""
    if name not in _kinds:
        fitting = isinstance(name, str) and name.isidentifier() and len(_kinds) < _MOST_KINDS
        if not fitting:
            return Remote
        _kinds[name] = type(name, (Remote,), {"__slots__": (), "__doc__": vars(Remote)["__doc__"]})
    return _kinds[name]


def _left(remote: Remote, how: str, error: BaseException | None) -> bool:
    """Leave a context. The code may swallow what the test raises in it on purpose, but no objection of the test."""
    link = link_of(remote)
    if error is None:
        link.ask(how, [link.sent(remote), ["v", None]])
        return False
    on_purpose = link.raised_on_purpose(error)
    return link.ask(how, [link.sent(remote), link.sent_error(error, wholly=on_purpose)]) is True and on_purpose


def type_of(value: Any) -> Any:
    """What `type` says; of what stands for an object, the class of the object."""
    if not isinstance(value, Remote):
        return type(value)
    return GeneratorType if facts_of(value).get("generator") is True else link_of(value).operate("type", value)


def link_of(remote: Remote) -> Link:
    """The connection to the process in which the object is."""
    link: Link = object.__getattribute__(remote, "_reward_kit_link")
    return link


def number_of(remote: Remote) -> int:
    """The number by which its own process knows the object."""
    number: int = object.__getattribute__(remote, "_reward_kit_number")
    return number


def facts_of(remote: Remote) -> dict[str, Any]:
    """What is known of it."""
    facts: dict[str, Any] = object.__getattribute__(remote, "_reward_kit_facts")
    return facts


def _names_a_class(name: Any) -> bool:
    """Whether a test that calls this means to make an object, by the way that classes are written."""
    return isinstance(name, str) and name.lstrip("_")[:1].isupper()


def _plain_fact(remote: Remote, operation: str, *values: Any) -> Any:
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


def _altered(part: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    """A part of a request with another value; what is not plain stays."""
    return ["v", change(part[1])] if part[0] == "v" else part


def _larger(value: Any) -> Any:  # noqa: PLR0911 - one per kind
    match value:
        case bool():
            return not value
        case int() | float():
            return value + _FAR
        case str():
            return f"{value}≠"
        case list():
            return [*value, *value[-1:], _FAR]
        case tuple():
            return (*map(_larger, value),)
        case dict():
            return {**value, "≠": _FAR}
    return value


def _opposite(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return -value - 7
        case str():
            return f"≠{value[::-1]}"
        case list() | tuple():
            return type(value)([_opposite(each) for each in reversed(value)])
    return _larger(value)


def _empty(value: Any) -> Any:
    return type(value)() if isinstance(value, (int, float, str, list, dict)) else _larger(value)


def _exactly(kind: type[_T], value: Any) -> _T:
    if type(value) is not kind:
        raise TypeError(f"the code gives a {type(value).__name__!r} where a {kind.__name__!r} must be")
    return value


def _become(mine: Any, now: Any) -> None:
    """Change what was handed over as the code changed its copy."""
    match mine, now:
        case (list(), list()) | (bytearray(), bytearray()):
            mine[:] = now
        case (deque(), list()):
            mine.clear()
            mine.extend(now)
        case (dict(), dict()) | (set(), set()):
            mine.clear()
            mine.update(now)
        case _ if type(mine).__module__ == "numpy":
            if type(mine) is type(now) and mine.shape == now.shape:
                mine[...] = now
        case _, dict() if hasattr(mine, "__dict__") and all(isinstance(name, str) for name in now):
            vars(mine).clear()
            # What the test's class does is not for the code to replace.
            vars(mine).update(
                {name: each for name, each in now.items() if not callable(getattr(type(mine), name, None))}
            )
