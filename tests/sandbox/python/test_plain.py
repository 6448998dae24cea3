# SPDX-License-Identifier: Apache-2.0
"""Plain data across a sandbox's border: it comes back equal, and hostile text does no harm."""

from __future__ import annotations

import datetime as dates
import math
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reward_kit.sandbox.python.plain import decode, encode

Pair = namedtuple("Pair", "number text")

hashable = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text() | some.binary(),
    lambda inner: some.tuples(inner, inner) | some.frozensets(inner, max_size=3),
    max_leaves=5,
)
plain = some.recursive(
    hashable
    | some.complex_numbers(allow_nan=False)
    | some.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**300), max_value=10**300)
    | some.fractions()
    | some.dates()
    | some.datetimes(timezones=some.none() | some.just(dates.UTC))
    | some.times()
    | some.timedeltas()
    | some.lists(some.integers()).map(deque)
    | some.lists(some.text()).map(Counter)
    | some.lists(some.tuples(some.text(), some.integers())).map(OrderedDict)
    | some.lists(some.tuples(some.text(), some.integers())).map(lambda pairs: defaultdict(int, pairs))
    | some.tuples(some.integers(), some.text()).map(Pair._make)
    | some.binary().map(bytearray),
    lambda inner: some.lists(inner) | some.tuples(inner) | some.dictionaries(hashable, inner) | some.sets(hashable),
    max_leaves=20,
)


def exact(value: Any) -> Any:
    """The value with its types, so that 1, 1.0 and True differ."""
    if isinstance(value, (list, tuple)):
        kind: Any = type(value)
        return (getattr(kind, "_fields", kind), [exact(item) for item in value])
    if isinstance(value, dict):
        return (type(value), [(exact(key), exact(item)) for key, item in value.items()])
    if isinstance(value, (set, frozenset)):
        return (type(value), sorted(repr(exact(item)) for item in value))
    return (type(value), value)


@given(plain)
def test_what_goes_in_comes_out(value: Any) -> None:
    assert exact(decode(encode(value))) == exact(value)


@given(some.text() | some.from_regex(r'[\[\]{}",:0-9a-z]*'))
def test_any_text_is_plain_data_or_refused(text: str) -> None:
    try:
        value = decode(text)
    except ValueError:
        return
    assert exact(decode(encode(value))) == exact(value) or "nan" in repr(value)


def test_what_is_not_a_number_stays_so() -> None:
    assert math.isnan(decode(encode(float("nan"))))


@pytest.mark.parametrize("value", [object(), len, range(3), [[{1: object()}]], iter([]), int])
def test_other_things_are_named(value: object) -> None:
    with pytest.raises(TypeError, match="is not plain data"):
        encode(value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[", "[" * 100_000, "1" * 5000, '{"tuple":[' * 50_000),
        *('{"tuple": 5}', '{"a": 1, "b": 2}', '{"set": [[1]]}', '{"dict": [[1]]}', '{"dict": [[[], 1]]}', '{"x": 1}'),
        *('{"int": 5}', '{"bytes": "zz"}', '{"complex": [1, 2, 3]}'),
        *('{"decimal": "sNaN"}', '{"decimal": "1e99999999"}', '{"decimal": "x"}', '{"date": "2024-02-30"}'),
        *('{"fraction": [1, 0]}', '{"fraction": [1]}', '{"fraction": [1.5, 2]}', '{"timedelta": [999999999999, 0, 0]}'),
    ],
)
def test_broken_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode(text)


def test_a_flood_of_equal_hashes_is_refused() -> None:
    members = ",".join(str((2**61 - 1) * number) for number in range(100_000))
    for text in (f'{{"set":[{members}]}}', f'{{"frozenset":[{members}]}}'):
        with pytest.raises(ValueError, match="same hash"):
            decode(text)
    pairs = ",".join(f"[{(2**61 - 1) * number},0]" for number in range(100_000))
    with pytest.raises(ValueError, match="same hash"):
        decode(f'{{"dict":[{pairs}]}}')


def test_a_flood_among_others_is_refused() -> None:
    flood = [(2**61 - 1) * number for number in range(1000)]
    with pytest.raises(ValueError, match="same hash"):
        decode(encode([*range(1001)]).replace("[", '{"set":[', 1)[:-1] + f",{','.join(map(str, flood))}]}}")


def test_a_dict_in_an_order_of_its_own_keeps_it() -> None:
    value = OrderedDict(a=1, b=2)
    value.move_to_end("a")
    assert list(decode(encode(value))) == ["b", "a"]


@pytest.mark.parametrize("parts", ['["P q",["x"],[0]]', '["Q",["__class__"],[0]]', '["Q",[[]],[0]]'])
def test_a_tuple_with_names_that_cannot_be_is_refused(parts: str) -> None:
    with pytest.raises(ValueError, match=r"plain data|names"):
        decode(f'{{"named":{parts}}}')


MANY_KINDS = """
from reward_kit.sandbox.python.plain import decode
many = ",".join('{"named":["P%d",["x"],[%d]]}' % (number, number) for number in range(10_000))
made = decode(f"[{many}]")
assert made == [(number,) for number in range(10_000)]
kinds = {type(one) for one in made}
assert tuple in kinds and 50 < len(kinds) < 200, len(kinds)
assert type(decode('{"named":["P0",["x"],[1]]}')) is type(made[0]) is not tuple
assert type(decode('{"named":["P0",["x"],[0,1]]}')) is tuple
"""


def test_kinds_of_tuples_are_not_made_without_end() -> None:
    """In a process of its own, which may use up its kinds."""
    subprocess.run([sys.executable, "-c", MANY_KINDS], check=True)
