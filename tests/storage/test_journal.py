# SPDX-License-Identifier: Apache-2.0
"""The journal: what was appended is there after any tear, in order, once; a file of others is refused untouched."""

from __future__ import annotations

import errno
import itertools
import os
import resource
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reward_kit.errors import StorageError
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_lines import Entry, Head

STATUSES = ("ok", "failed", "retry")
few = settings(max_examples=40)  # each one waits for the disk
count = itertools.count()


def somewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / f"{os.getpid()}-{next(count)}.jsonl"


def entry(
    name: str, index: int = 0, position: int = 0, *, said: Any = "x", status: Any = "ok", cost: float | None = 0.5
) -> Entry:
    return Entry(Head(name, index, position, "ab12", status, cost), orjson.dumps({"said": said}))


def fill(path: Path, *entries: Entry) -> Path:
    with Journal(path) as journal:
        journal.append(entries)
    return path


def held(path: Path) -> list[tuple[str, int, Any]]:
    """What a journal holds, in order."""
    with Journal(path, read_only=True) as journal:
        lines = map(orjson.loads, journal.in_order())
        return [(line["id"], line["response_index"], line["said"]) for line in lines]


def raw(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


# ── appending and opening again ──────────────────────────────────────────────────────────────────────────────────────

names = st.text(min_size=1, max_size=8)
entries = st.lists(
    st.builds(
        entry,
        name=names,
        index=st.integers(0, 3),
        position=st.just(0),
        said=st.text(max_size=20),
        status=st.sampled_from(STATUSES),
        cost=st.none() | st.floats(0, 10),
    ),
    max_size=12,
)


def in_places(items: list[Entry]) -> list[Entry]:
    """The same entries, with one position for each id."""
    places: dict[str, int] = {}
    return [
        Entry(item.head._replace(position=places.setdefault(item.head.id, len(places))), item.body) for item in items
    ]


def last_of_each(items: list[Entry]) -> dict[tuple[str, int], Entry]:
    return {(item.head.id, item.head.response_index): item for item in items}


@few
@given(entries, st.data())
def test_whatever_was_appended_is_there_after_a_tear_at_any_byte(
    tmp_path_factory: pytest.TempPathFactory, items: list[Entry], data: st.DataObject
) -> None:
    path = somewhere(tmp_path_factory)
    items = in_places(items)
    fill(path, *items)
    size = data.draw(st.integers(0, path.stat().st_size))
    os.truncate(path, size)
    whole = path.read_bytes().count(b"\n")
    survivors = last_of_each(items[:whole])
    with Journal(path) as journal:
        index = journal.index()
        assert len(index) == len(survivors)
        assert index.lines == whole
        assert index.cost == pytest.approx(sum(item.head.cost or 0 for item in items[:whole]))
        for (name, number), item in survivors.items():
            offset = index.offset(name, number)
            assert offset is not None
            assert index.status(name, number) == item.head.status
            assert orjson.loads(journal.line_at(offset))["said"] == orjson.loads(item.body)["said"]
        journal.append([entry("after the tear", 9, 99)])
    assert len(raw(path)) == whole + 1


@few
@given(entries)
def test_compaction_leaves_the_last_line_of_each_key_in_dataset_order(
    tmp_path_factory: pytest.TempPathFactory, items: list[Entry]
) -> None:
    path = somewhere(tmp_path_factory)
    items = in_places(items)
    fill(path, *items)
    expected = sorted(last_of_each(items).values(), key=lambda item: (item.head.position, item.head.response_index))
    before = held(path)
    with Journal(path) as journal:
        journal.compact()
        assert not journal.compact(), "a second time there is nothing to do"
        assert journal.index().is_in_order, "whoever has read it need not look again"
        journal.append([entry("one more", 0, 99)])
    lines = raw(path)
    assert [(line["id"], line["response_index"]) for line in lines[:-1]] == [
        (item.head.id, item.head.response_index) for item in expected
    ]
    assert [(line["id"], line["response_index"], line["said"]) for line in lines[:-1]] == before
    assert lines[-1]["id"] == "one more"


@few
@given(entries, st.randoms(use_true_random=False))
def test_rows_that_moved_are_put_where_they_stand_now(
    tmp_path_factory: pytest.TempPathFactory, items: list[Entry], dice: Any
) -> None:
    path = somewhere(tmp_path_factory)
    items = in_places(items)
    fill(path, *items)
    now = list({item.head.id for item in items})
    dice.shuffle(now)
    with Journal(path) as journal:
        journal.compact(lambda head: now.index(head.id))
    expected = sorted((now.index(name), index) for name, index in last_of_each(items))
    assert [(now.index(line["id"]), line["response_index"]) for line in raw(path)] == expected
    assert [(now.index(name), index) for name, index, _ in held(path)] == expected, "the new places must be remembered"


@few
@given(
    st.lists(
        st.builds(
            entry,
            name=st.sampled_from("abcd"),
            index=st.integers(0, 2),
            position=st.integers(0, 5),
            said=st.integers(0, 99),
        ),
        max_size=16,
    )
)
def test_a_sample_is_in_one_place_even_where_its_lines_name_several(
    tmp_path_factory: pytest.TempPathFactory, items: list[Entry]
) -> None:
    path = fill(somewhere(tmp_path_factory), *items)
    place = {item.head.id: item.head.position for item in items}  # where it was seen last
    last = {key: orjson.loads(item.body)["said"] for key, item in last_of_each(items).items()}
    found = held(path)
    assert {(name, index): said for name, index, said in found} == last
    assert len(found) == len(last)
    assert [place[name] for name, _, _ in found] == sorted(place[name] for name, _, _ in found)
    groups = [name for i, (name, _, _) in enumerate(found) if i == 0 or found[i - 1][0] != name]
    assert len(groups) == len(set(groups)), "the lines of a sample stand together"
    with Journal(path) as journal:
        journal.compact()
    assert held(path) == found
    assert [(line["id"], line["response_index"], line["said"]) for line in raw(path)] == found


@few
@example([entry("a", 0, 0), entry("b", 0, 1), entry("a", 1, 2)])  # in order by what the lines say, and one sample moved
@given(
    st.lists(
        st.builds(entry, name=st.sampled_from("abc"), index=st.integers(0, 2), position=st.integers(0, 3)), max_size=8
    )
)
def test_the_order_of_the_lines_is_the_same_whether_or_not_they_were_indexed(
    tmp_path_factory: pytest.TempPathFactory, items: list[Entry]
) -> None:
    path = fill(somewhere(tmp_path_factory), *items)
    with Journal(path) as journal:
        expected = list(journal.in_order())
        index = journal.index()
        assert list(journal.in_order()) == expected
        assert not index.is_in_order or list(journal.lines()) == expected


def test_few_lines_at_distant_positions_cost_no_more_than_few_lines(tmp_path: Path) -> None:
    path = fill(tmp_path / "j", entry("far", 10**6, 10**9), entry("near", 0, 3), entry("mid", 5, 10**8))
    assert [name for name, _, _ in held(path)] == ["near", "mid", "far"]


def test_long_lines_are_read_whole(tmp_path: Path) -> None:
    long = "é" * 300_000
    path = fill(tmp_path / "j", entry("a", said=long), entry("b", 0, 1))
    assert held(path) == [("a", 0, long), ("b", 0, "x")]


def test_a_sample_that_changed_under_its_id_is_noticed(tmp_path: Path) -> None:
    with Journal(fill(tmp_path / "j", entry("a"))) as journal:
        index = journal.index()
    assert index.has_other_content("a", "ff")
    assert not index.has_other_content("a", "ab12")
    assert not index.has_other_content("unknown", "ff")


# ── files that must not be touched ───────────────────────────────────────────────────────────────────────────────────

FOREIGN = [b'{"id": "mine"}', b'{"id": "mine"}\n', b"# notes\nand more", b'[1]\n{"schema":1', b"\n", b"\xff\xfe\n"]


@pytest.mark.parametrize("content", FOREIGN)
def test_a_file_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="not a line of a run"), Journal(path) as journal:
        journal.index()
    assert path.read_bytes() == content


def test_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = fill(tmp_path / "j", entry("a"))
    newer = path.read_bytes().replace(b'"schema":3', b'"schema":4')
    path.write_bytes(newer + newer[:40])
    with pytest.raises(StorageError, match="schema 4, and this version reads 1 to 3"), Journal(path) as journal:
        journal.index()
    assert path.read_bytes().startswith(newer)


@pytest.mark.parametrize("broken", [b'{"schema":1,"id":"a"}\n', b'{"schema":1,"id":"a","response_index":0,\n', b"{}\n"])
def test_a_broken_line_in_the_middle_is_named_by_its_number(tmp_path: Path, broken: bytes) -> None:
    path = fill(tmp_path / "j", entry("a"))
    path.write_bytes(path.read_bytes() + broken + path.read_bytes())
    with pytest.raises(StorageError, match="line 2"), Journal(path) as journal:
        journal.index()


def test_reading_only_changes_nothing(tmp_path: Path) -> None:
    path = fill(tmp_path / "j", entry("b", 0, 1), entry("a"))
    torn = path.read_bytes() + b'{"schema":1,"id":"torn'
    path.write_bytes(torn)
    path.chmod(0o444)
    assert [name for name, _, _ in held(path)] == ["a", "b"]
    assert path.read_bytes() == torn


@pytest.mark.parametrize("read_only", [True, False])
def test_a_path_that_cannot_be_opened_is_one_sentence(tmp_path: Path, read_only: bool) -> None:
    with pytest.raises(StorageError, match="Cannot open"):
        Journal(tmp_path / "missing" / "j", read_only=read_only)
    with pytest.raises(StorageError, match="Cannot open"):
        Journal(tmp_path, read_only=False)


# ── no room ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_write_that_does_not_fit_leaves_no_half_line(tmp_path: Path) -> None:
    path = fill(tmp_path / "j", entry("a"), entry("b", 0, 1))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(path) as journal:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, hard))
        try:
            for _ in range(2):
                with pytest.raises(StorageError, match=r"make room, then run the same command again"):
                    journal.append([entry("c", 0, 2)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.read_bytes() == before
        journal.append([entry("d", 0, 3)])
    assert [name for name, _, _ in held(path)] == ["a", "b", "d"]


def test_a_compaction_that_does_not_fit_leaves_everything(tmp_path: Path) -> None:
    path = fill(tmp_path / "j", entry("b", 0, 1), entry("a"))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(path) as journal:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) - 50, hard))
        try:
            with pytest.raises(StorageError, match="Its content is complete"):
                journal.compact()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["j"]


def test_what_does_not_reach_the_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = fill(tmp_path / "j.jsonl", entry("a"))
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError, match=r"not on the disk.*run the same command again"), Journal(path) as journal:
        journal.append([entry("b", position=1)])
    with Journal(path, read_only=True) as somebody_elses:
        somebody_elses.sync()
    monkeypatch.undo()
    assert held(path) == [("a", 0, "x"), ("b", 0, "x")]
