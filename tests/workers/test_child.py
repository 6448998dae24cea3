# SPDX-License-Identifier: Apache-2.0
"""The frames, pickles and stamps that a pool and its workers exchange."""

from __future__ import annotations

import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.workers import child


@given(st.lists(st.binary(max_size=300), max_size=50), st.integers(0, 2**63))
def test_a_frame_gives_back_its_blobs(blobs: list[bytes], worked_ns: int) -> None:
    frame = child.pack(blobs, worked_ns)
    mark, length, count, worked = child.HEADER.unpack_from(frame)
    assert mark == child.MARK
    body = frame[child.HEADER.size :]
    assert (length, worked) == (len(body), worked_ns)
    assert child.unpack(body, count) == blobs


@given(st.integers(0, 2**40))
def test_a_stamp_holds_the_low_bits_of_the_serial_and_the_time(serial: int) -> None:
    before = time.monotonic_ns() // 1000
    word = child.stamp(serial)
    assert word < 2**64
    assert word % 2**child.SERIAL_BITS == serial % 2**child.SERIAL_BITS
    assert before <= word >> child.SERIAL_BITS <= time.monotonic_ns() // 1000


def test_what_pickle_cannot_do_is_pickled_by_value() -> None:
    offset = 3
    add = pickle.loads(child.encode(lambda value: value + offset))
    assert add(4) == 7
    assert pickle.loads(child.encode("a text about __main__")) == "a text about __main__"


def test_what_nothing_can_pickle_is_refused() -> None:
    with pytest.raises(TypeError, match="generator"):
        child.encode(number for number in range(3))


def test_an_exception_that_cannot_be_printed_is_still_described() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    kind, message, trace = child.describe(Mute())
    assert (kind, message) == ("Mute", "")
    assert "Mute" in trace


def test_a_long_message_is_cut() -> None:
    _, message, _ = child.describe(ValueError("x" * 10**6))
    assert 1000 < len(message) < 10_000
