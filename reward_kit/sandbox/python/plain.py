# SPDX-License-Identifier: Apache-2.0
"""Plain data as text, for what crosses a sandbox's border: the arguments of a call, and what it returned.

    1 "a" [1] null 0.5      themselves
    (1, 2)                  {"tuple": [1, 2]}          {1: "a"}    {"dict": [[1, "a"]]}
    {1, 2}                  {"set": [1, 2]}            b"\\xff"     {"bytes": "ff"}
    1 + 2j                  {"complex": [1.0, 2.0]}    10**5000    {"int": "0x…"}
    Fraction(1, 2)          {"fraction": [1, 2]}       decimals, dates and times by their text, deques as lists
    P(x=1, y=2)             {"named": ["P", ["x", "y"], [1, 2]]}, a tuple with names
    numpy's arrays          {"array": ["<i8", [2, 3], "00…"]} between a test and the code; else lists, or not plain
    Counter, OrderedDict, defaultdict                  as dicts, under their own names

Only Python's own types come out, however clever a subclass went in: an `int` that claims to equal everything is
written as the number it holds. Reading text from a hostile writer is safe: it is a `ValueError`, or plain data, in
bounded time. Standard library only.
"""

from __future__ import annotations

import datetime as dates
import json
import re
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from decimal import Decimal
from fractions import Fraction
from typing import Any

__all__ = ["carry_arrays", "changeable", "decode", "encode"]

_DEPTH = 200
_LEAVES = frozenset({int, str, bool, float, type(None)})
_CAREFUL, _LOOSE = 1, 2
"""How data are written: with care for numbers that are too long, and with lists for what stands for them."""
_DTYPE = re.compile(r"[<>|=]?[biufcSUMm]\d{1,4}(\[\d{0,4}[a-zA-Z]{1,2}\])?")
"""What the items of an array are, where that says everything of them."""
_SMALL_INT = 1 << 63
_CROWD = 64
_LISTED = (Iterator, range, deque, KeysView, ValuesView, ItemsView)
_NUMBERS = (Decimal, Fraction)
_DIGITS, _BITS = 1000, 4096
"""What a decimal or a fraction may have: calculating with more could take for ever."""
_FACTORIES: dict[str, Callable[[], Any]] = {
    each.__name__: each for each in (list, dict, set, int, float, str, tuple, bool)
}
"""What a defaultdict may make its values by."""
_MOST_NAMED = 100
"""Kinds of tuples with names, and names in one, that are made here; making them takes long."""
_named: dict[tuple[Any, ...], Callable[..., Any]] = {}
_dump = json.JSONEncoder(separators=(",", ":")).encode
_load = json.JSONDecoder().decode


def encode(value: object, *, loose: bool = False) -> str:
    """The text of plain data; a `TypeError` names what is not.

    `loose`: what stands for plain data is taken for it: iterators, ranges and views are the lists of what they give,
    decimals and fractions numbers.
    """
    if loose:
        value = _loosened(value, _DEPTH)
    try:
        return _dump(_shape(value, _DEPTH, _LOOSE if loose else 0))
    except ValueError:  # more digits than Python writes in decimal, in a list that was taken as it is
        return _dump(_shape(value, _DEPTH, (_LOOSE if loose else 0) | _CAREFUL))


def decode(text: str) -> Any:
    """The data of such a text; a `ValueError` when it is not one."""
    try:
        return _read(_load(text))
    except (RecursionError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"this is not plain data: {error}") from error


def changeable(*values: object) -> list[Any]:
    """Everything in plain data that can be changed in place, in an order that reader and writer both find."""
    found: list[Any] = []
    waiting: list[Any] = list(reversed(values))
    while waiting:
        value = waiting.pop()
        if type(value) in _LEAVES:
            continue
        if isinstance(value, (list, dict, set, deque, bytearray)) or type(value).__name__ == "ndarray":
            found.append(value)
        if isinstance(value, (list, tuple, deque)) and not set(map(type, value)) <= _LEAVES:
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
    return found


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shape(value: object, depth: int, how: int = 0) -> object:
    """The value in what JSON has; lists of leaves are taken as they are, which is what makes long ones cheap."""
    if not depth:
        raise TypeError("data nested this deeply, or within itself, is not plain")
    if type(value) in _LEAVES and not (how & _CAREFUL and type(value) is int):
        return value
    if isinstance(value, list):
        if type(value) is list and not how & _CAREFUL and set(map(type, value)) <= _LEAVES:
            return value
        return _items(list.__iter__(value), depth, how)
    if _carried and type(value).__module__ == "numpy":
        return _write_array(value, depth, how)
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value, depth, how)
    if type(value).__module__ == "numpy" and (how & _LOOSE or not hasattr(value, "setflags") or not _is_array(value)):
        return _shape(value.tolist(), depth - 1, how)  # type: ignore[attr-defined]
    raise TypeError(f"a {type(value).__name__!r} is not plain data")


def _loosened(value: Any, depth: int) -> Any:
    """The value with everything in it that stands for plain data replaced by it."""
    if not depth or type(value) in _LEAVES:
        return value
    if isinstance(value, _LISTED):
        value = list(value)
    if type(value) in (list, tuple):
        return type(value)([_loosened(item, depth - 1) for item in value])
    if type(value) is dict:
        return {key: _loosened(item, depth - 1) for key, item in value.items()}
    if isinstance(value, _NUMBERS):
        return int(value) if value == int(value) else float(value)
    return value


def _items(values: Any, depth: int, how: int) -> list[object]:
    return [_shape(value, depth - 1, how) for value in values]


def _write_int(value: Any, _depth: int, _how: int) -> object:
    number = int.__index__(value)
    return number if -_SMALL_INT < number < _SMALL_INT else {"int": hex(number)}


def _write_dict(value: Any, depth: int, how: int) -> object:
    kind = next((each for each in (OrderedDict, Counter, defaultdict) if isinstance(value, each)), dict)
    pairs: Any = [_items(pair, depth, how) for pair in (kind if kind is OrderedDict else dict).items(value)]
    if kind is defaultdict:
        maker = value.default_factory
        name = next((name for name, each in _FACTORIES.items() if each is maker), None)
        return {"defaultdict": [name, pairs]} if name else {"dict": pairs}
    return {kind.__name__: pairs}


def _write_tuple(value: Any, depth: int, how: int) -> object:
    items = _items(tuple.__iter__(value), depth, how)
    names = None if type(value) is tuple else getattr(type(value), "_fields", None)
    if type(names) is tuple and len(names) == len(items) and all(type(name) is str for name in names):
        return {"named": [type(value).__name__, list(names), items]}
    return {"tuple": items}


def _write_set(value: Any, depth: int, how: int) -> object:
    kind = set if isinstance(value, set) else frozenset
    return {kind.__name__: _items(kind.__iter__(value), depth, how)}


def _write_fraction(value: Any, depth: int, how: int) -> object:
    return {"fraction": _items([value.numerator, value.denominator], depth, how)}


_Write = Callable[[Any, int, int], object]
_WRITERS: tuple[tuple[type | tuple[type, ...], _Write], ...] = (
    (int, _write_int),
    (str, lambda value, *_: str.__str__(value)),
    (float, lambda value, *_: float.__float__(value)),
    (tuple, _write_tuple),
    (dict, _write_dict),
    ((set, frozenset), _write_set),
    (bytes, lambda value, *_: {"bytes": bytes(memoryview(value)).hex()}),
    (bytearray, lambda value, *_: {"bytearray": bytes(memoryview(value)).hex()}),
    (complex, lambda value, *_: {"complex": [complex.real.__get__(value), complex.imag.__get__(value)]}),
    (Decimal, lambda value, *_: {"decimal": Decimal.__str__(value)}),
    (Fraction, _write_fraction),
    (deque, lambda value, depth, how: {"deque": _items(deque.__iter__(value), depth, how)}),
    (dates.datetime, lambda value, *_: {"datetime": dates.datetime.isoformat(value)}),
    (dates.date, lambda value, *_: {"date": dates.date.isoformat(value)}),
    (dates.time, lambda value, *_: {"time": dates.time.isoformat(value)}),
    (dates.timedelta, lambda value, *_: {"timedelta": [value.days, value.seconds, value.microseconds]}),
)


# ── arrays of numpy ──────────────────────────────────────────────────────────────────────────────────────────────────

_carried: list[bool] = []


def carry_arrays() -> None:
    """Have arrays, and numpy's numbers, cross as what they are: in processes that may load numpy for data."""
    _carried.append(True)
    _READERS["array"] = _read_array


def _is_array(value: object) -> bool:
    """Whether something of numpy's has parts; its single numbers are as good as Python's."""
    return getattr(value, "shape", ()) != () or not hasattr(value, "dtype") or type(value).__name__ == "ndarray"


def _write_array(value: Any, depth: int, how: int) -> object:
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        raise TypeError(f"a {type(value).__name__!r} is not plain data")
    if _DTYPE.fullmatch(dtype.str):
        return {"array": [dtype.str, list(shape), value.tobytes().hex()]}
    if dtype.str != "|O":
        raise TypeError(f"an array of {dtype} is not plain data")
    return {"array": ["O", list(shape), _items(value.ravel().tolist(), depth, how)]}


def _read_array(parts: Any) -> Any:
    dtype, shape, content = parts
    import numpy

    if dtype == "O":
        made = numpy.empty(len(content), dtype=object)
        for place, item in enumerate(content):
            made[place] = _read(item)
    elif _DTYPE.fullmatch(dtype):
        made = numpy.frombuffer(bytes.fromhex(content), dtype=dtype).copy()
    else:
        raise ValueError("an array of something else")
    return made.reshape(shape)[()]  # a number, where it has no dimensions


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(value: Any) -> Any:
    if type(value) in _LEAVES:
        return value
    if type(value) is list:
        return value if set(map(type, value)) <= _LEAVES else [_read(item) for item in value]
    ((kind, content),) = value.items()
    return _READERS[kind](content)


def _read_dict(pairs: Any) -> dict[Any, Any]:
    keys = _spread([_read(key) for key, _ in pairs])
    return dict(zip(keys, [_read(item) for _, item in pairs], strict=True))


def _read_named(parts: Any) -> tuple[Any, ...]:
    name, names, items = parts
    values = tuple([_read(item) for item in items])
    kind = (name, *names)
    if len(values) != len(names) or (kind not in _named and max(len(_named), len(names), len(name)) >= _MOST_NAMED):
        return values
    if kind not in _named:
        _named[kind] = namedtuple(name, names)
    made: tuple[Any, ...] = _named[kind](*values)
    return made


def _spread(values: list[Any]) -> list[Any]:
    """The values, unless so many share a hash that building a set of them would take for ever."""
    if len(values) > _CROWD and max(Counter(map(hash, values)).values()) > _CROWD:
        raise ValueError("too many of a set's members have the same hash")
    return values


def _read_decimal(text: str) -> Decimal:
    number = Decimal(text)
    if len(text) > _DIGITS or not number.is_finite() or abs(number.adjusted()) > _DIGITS:
        raise ValueError("a decimal without end, or of too many digits")
    return number


def _read_fraction(parts: list[Any]) -> Fraction:
    above, below = map(_read, parts)
    if not (type(above) is type(below) is int and max(above.bit_length(), below.bit_length()) <= _BITS):
        raise ValueError("a fraction of too many digits")
    return Fraction(above, below)


_READERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda digits: int(digits, 16),
    "tuple": lambda items: tuple([_read(item) for item in items]),
    "named": _read_named,
    "dict": _read_dict,
    "Counter": lambda pairs: Counter(_read_dict(pairs)),
    "OrderedDict": lambda pairs: OrderedDict(_read_dict(pairs)),
    "defaultdict": lambda parts: defaultdict(_FACTORIES[parts[0]], _read_dict(parts[1])),
    "set": lambda items: set(_spread([_read(item) for item in items])),
    "frozenset": lambda items: frozenset(_spread([_read(item) for item in items])),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "complex": lambda parts: complex(*map(float, parts)),
    "decimal": _read_decimal,
    "fraction": _read_fraction,
    "deque": lambda items: deque([_read(item) for item in items]),
    "datetime": dates.datetime.fromisoformat,
    "date": dates.date.fromisoformat,
    "time": dates.time.fromisoformat,
    "timedelta": lambda parts: dates.timedelta(*map(int, parts)),
}
