# SPDX-License-Identifier: Apache-2.0
"""A DigestMap behaves as a dict does, in a fraction of its memory."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.utils.digest_map import DigestMap, digest64

LARGEST_KEY = 2**64 - 1
LARGEST_VALUE = 2**63 - 1

any_key = st.integers(0, LARGEST_KEY)
colliding_key = st.integers(0, 40).map(lambda number: number << 58)
"""Keys that all want slot 0, so that probing is what is tested."""
any_value = st.integers(0, LARGEST_VALUE)


@given(st.lists(st.tuples(any_key | colliding_key | st.integers(0, 20), any_value), max_size=200))
def test_behaves_as_a_dict(puts: list[tuple[int, int]]) -> None:
    model: dict[int, int] = {}
    tested = DigestMap()
    for key, value in puts:
        model[key] = value
        tested.put(key, value)
        assert tested.get(key) == value
        assert len(tested) == len(model)
    for key, value in model.items():
        assert tested.get(key) == value
        assert key in tested


@given(st.sets(any_key | colliding_key, max_size=100), any_key | colliding_key)
def test_a_key_that_was_not_put_is_absent(keys: set[int], absent: int) -> None:
    tested = DigestMap()
    for key in keys - {absent}:
        tested.put(key, 1)
    assert absent not in tested
    assert tested.get(absent) == -1
    assert tested.get(absent, 7) == 7


def test_grows_and_keeps_every_entry() -> None:
    tested = DigestMap()
    keys = [digest64(str(number)) for number in range(20_000)]
    for number, key in enumerate(keys):
        tested.put(key, number)
    assert len(tested) == len(keys)
    assert [tested.get(key) for key in keys] == list(range(len(keys)))


@pytest.mark.parametrize("entries", [1_000, 10_000, 50_000])
def test_costs_at_most_forty_bytes_an_entry(entries: int) -> None:
    tested = DigestMap()
    for number in range(entries):
        tested.put(digest64(str(number)), number)
    size = sys.getsizeof(tested._keys) + sys.getsizeof(tested._values)
    assert size <= 40 * entries + 256


@pytest.mark.parametrize("key", [-1, -8, 2**64, 2**70])
def test_a_key_out_of_range_is_absent_and_cannot_be_put(key: int) -> None:
    tested = DigestMap()
    for number in range(6):
        tested.put(number, number)
    assert key not in tested
    with pytest.raises(OverflowError):
        tested.put(key, 1)
    assert len(tested) == 6


def test_a_negative_value_is_refused() -> None:
    tested = DigestMap()
    with pytest.raises(ValueError, match="negative"):
        tested.put(1, -1)
    assert 1 not in tested


def test_a_digest_is_a_key() -> None:
    assert digest64("süß") == digest64("süß")
    assert all(0 <= digest64(text) <= LARGEST_KEY for text in ("", "a", "süß", b"", b"\xff"))


def test_text_that_is_not_valid_unicode_has_a_digest() -> None:
    assert digest64("\ud800") != digest64("\ud801")
