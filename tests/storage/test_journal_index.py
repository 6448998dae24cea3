# SPDX-License-Identifier: Apache-2.0
"""The order a journal notes while it is written is the order that reading it finds."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reward_kit.storage.journal_index import JournalIndex, ScannedOrder, WrittenOrder

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


# ── what a journal holds ─────────────────────────────────────────────────────────────────────────────────────────────

STATUS = (b"ok", b"failed", b"retry")
heads = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5), st.sampled_from(STATUS)), max_size=12
)
"""Of each line: its sample, its response index, where it says that its sample stands, and its status."""
Heads = list[tuple[int, int, int, bytes]]


def index_of(lines: Heads) -> JournalIndex:
    index = JournalIndex()
    parts = [(b"2", b'"s%d"' % name, b"%d" % draw, b"%d" % place, b"ab", status, b"0.5")
             for name, draw, place, status in lines]  # fmt: skip
    index.note_all(list(enumerate(parts)))
    return index


def in_order(lines: Heads) -> Heads:
    """The last line of each key, every sample at one place."""
    last = {(name, draw): status for name, draw, _, status in lines}
    return [(name, draw, name, status) for (name, draw), status in sorted(last.items())]


@given(heads)
def test_an_index_knows_the_last_line_of_each_key(lines: Heads) -> None:
    index = index_of(lines)
    last = {(name, draw): (status, number) for number, (name, draw, _, status) in enumerate(lines)}
    assert (len(index), index.lines, index.cost) == (len(last), len(lines), 0.5 * len(lines))
    for name in range(7):
        for draw in range(4):
            status, number = last.get((name, draw), (None, None))
            assert index.status(f"s{name}", draw) == (None if status is None else status.decode())
            assert index.offset(f"s{name}", draw) == number


@given(heads)
def test_a_file_is_in_order_when_each_key_has_one_line_at_its_place(lines: Heads) -> None:
    places = [(place, draw) for _, draw, place, _ in lines]
    owners = {(name, place) for name, _, place, _ in lines}
    one_place_each = len(owners) == len({name for name, _ in owners}) == len({place for _, place in owners})
    rises = all(one < other for one, other in pairwise(places))
    assert index_of(lines).is_in_order is (rises and one_place_each)


@given(heads, heads, st.booleans())
def test_two_journals_side_by_side_say_what_looking_up_each_key_says(
    ours: Heads, theirs: Heads, is_sorted: bool
) -> None:
    mine = index_of(in_order(ours))
    other = index_of(in_order(theirs) if is_sorted else theirs)
    looked_up = [other.status(f"s{name}", draw) for name, draw, _, _ in in_order(ours)]
    assert mine.statuses_in(other) == looked_up
    assert [found.offset for found in mine.entries()] == list(range(len(in_order(ours))))
