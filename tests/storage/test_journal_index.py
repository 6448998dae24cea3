"""The order a journal notes while it is written is the order that reading it finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reward_kit.storage.journal_index import ScannedOrder, WrittenOrder

places = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=60)


@given(places)
def test_what_was_noted_while_writing_agrees_with_what_is_scanned(lines: list[tuple[int, int]]) -> None:
    written, scanned = WrittenOrder(), ScannedOrder()
    for offset, (position, index) in enumerate(lines):
        written.note([(position, index, b"x")])
        scanned.note(b"%d" % position, position, index, offset, says=position)
    last = {place: offset for offset, place in enumerate(lines)}
    expected = [last[place] for place in sorted(last)]
    assert list(written.offsets()) == expected
    assert [offset for _, offset in scanned.places()] == expected
    assert written.is_sorted == (list(range(len(lines))) == expected)


@given(places, st.integers(10**5, 10**12))
def test_far_positions_are_sorted_instead_of_given_slots(lines: list[tuple[int, int]], far: int) -> None:
    order = WrittenOrder()
    order.note([(position, index, b"x") for position, index in lines])
    order.note([(far, 0, b"x")])
    offsets = list(order.offsets())
    assert offsets[-1] == len(lines)
    assert len(offsets) == len(set(lines)) + 1
