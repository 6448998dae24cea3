# SPDX-License-Identifier: Apache-2.0
"""A cache can be looked into, and made smaller, and keeps the rest."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reward_kit.errors import StorageError
from reward_kit.generation.cache.entries import encode_entry, entries_path
from reward_kit.generation.cache.responses import ResponseCache, draw_key
from reward_kit.generation.cache.upkeep import info, prune
from reward_kit.models import Completion, Message

NOW = int(datetime.now(UTC).timestamp())
DAY = 86_400


def key(number: int) -> str:
    return draw_key(b"test", number)


def put_aged(directory: Path, number: int, days: int, model: str = "m") -> None:
    """An entry as it would have been written so many days ago."""
    entries = entries_path(directory)
    entries.parent.mkdir(parents=True, exist_ok=True)
    completion = Completion(message=Message(role="assistant", content=f"answer {number:04}"))
    with entries.open("ab") as file:
        file.write(encode_entry(key(number), completion, model=model, created=NOW - days * DAY))


def found(directory: Path, numbers: range) -> list[int]:
    with ResponseCache(directory) as cache:
        return [number for number in numbers if cache.get(key(number)) is not None]


def size(directory: Path) -> int:
    return sum(path.stat().st_size for path in (directory / "v1").iterdir())


@pytest.fixture
def aged(tmp_path: Path) -> Iterator[Path]:
    """Forty entries, number i being i days old."""
    for number in range(40):
        put_aged(tmp_path, number, number, model="old" if number >= 30 else "new")
    yield tmp_path


def test_info_counts_what_is_there(aged: Path) -> None:
    put_aged(aged, 3, 3, model="new")
    with entries_path(aged).open("ab") as file:
        file.write(b'\n{"key":"torn')
    seen = info(aged)
    assert (seen.entries, seen.superseded, seen.unreadable) == (40, 1, 1)
    assert seen.models == {"new": 30, "old": 10}
    assert seen.oldest == datetime.fromtimestamp(NOW - 39 * DAY, UTC)
    assert seen.newest == datetime.fromtimestamp(NOW, UTC)
    assert abs(seen.bytes - size(aged)) <= 1


def test_info_knows_which_model_answered(tmp_path: Path) -> None:
    with ResponseCache(tmp_path) as cache:
        cache.put(key(1), Completion(message=Message(role="assistant")), model="a/b")
    assert info(tmp_path).models == {"a/b": 1}


def test_a_directory_without_a_cache_is_empty(tmp_path: Path) -> None:
    assert info(tmp_path / "none").entries == 0
    assert prune(tmp_path / "none", everything=True).removed == 0
    assert not (tmp_path / "none").exists()


def test_prune_drops_what_is_older(aged: Path) -> None:
    report = prune(aged, older_than=timedelta(days=9.5))
    assert (report.kept, report.removed) == (10, 30)
    assert found(aged, range(40)) == list(range(10))


def test_prune_drops_the_oldest_until_the_rest_fits(aged: Path) -> None:
    entry = size(aged) // 40
    report = prune(aged, max_bytes=entry * 12 + entry // 2)
    assert report.kept == 12
    assert found(aged, range(40)) == list(range(12))
    assert report.bytes_after == size(aged) <= entry * 13


def test_prune_fits_entries_of_one_second(tmp_path: Path) -> None:
    for number in range(30):
        put_aged(tmp_path, number, 0)
    limit = size(tmp_path) // 3
    assert prune(tmp_path, max_bytes=limit).kept == 10
    assert 0 < size(tmp_path) <= limit


def test_prune_takes_both_bounds(aged: Path) -> None:
    entry = size(aged) // 40
    prune(aged, older_than=timedelta(days=20.5), max_bytes=30 * entry)
    assert found(aged, range(40)) == list(range(21))
    prune(aged, older_than=timedelta(days=20.5), max_bytes=5 * entry + 10)
    assert found(aged, range(40)) == list(range(5))


def test_prune_drops_everything_but_what_is_not_ours(aged: Path) -> None:
    (aged / "notes.txt").write_text("mine")
    (aged / "v0").mkdir()
    report = prune(aged, everything=True)
    assert (report.kept, report.removed, report.bytes_after) == (0, 40, 0)
    assert found(aged, range(40)) == []
    assert {path.name for path in aged.iterdir()} == {"notes.txt", "v0", "v1"}


def test_prune_always_drops_superseded_and_unreadable_lines(aged: Path) -> None:
    clean = size(aged)
    put_aged(aged, 3, 3)
    with entries_path(aged).open("ab") as file:
        file.write(b"rubbish\n\n")
    report = prune(aged)
    assert (report.kept, report.removed) == (40, 2)
    assert size(aged) == report.bytes_after
    assert size(aged) <= clean
    assert prune(aged).removed == 0
    assert found(aged, range(40)) == list(range(40))


def test_a_broken_later_line_does_not_supersede_a_good_entry(aged: Path) -> None:
    entries = entries_path(aged)
    good = next(line for line in entries.read_bytes().splitlines() if key(3).encode() in line)
    with entries.open("ab") as file:
        file.write(good[:-20] + b"}}\n")
    prune(aged)
    assert 3 in found(aged, range(40))


def test_an_open_cache_goes_on_in_the_new_files(aged: Path) -> None:
    with ResponseCache(aged) as cache:
        assert cache.get(key(1)) is not None
        prune(aged, everything=True)
        cache.put(key(100), Completion(message=Message(role="assistant", content="new")))
        assert cache.get(key(100)) is not None
        assert cache.get(key(101)) is None
    assert found(aged, range(102)) == [100]


def test_a_shared_file_keeps_its_permissions(aged: Path) -> None:
    entries = entries_path(aged)
    entries.chmod(0o660)
    put_aged(aged, 30, 0)
    prune(aged)
    assert stat.S_IMODE(entries.stat().st_mode) == 0o660


def test_a_file_that_cannot_be_replaced_is_a_clear_error(aged: Path) -> None:
    put_aged(aged, 3, 3)
    draft = aged / "v1" / "responses.jsonl.writing"
    draft.mkdir()
    before = size(aged)
    with pytest.raises(StorageError, match="Nothing in the cache is lost"):
        prune(aged)
    assert size(aged) <= before
    draft.rmdir()
    assert found(aged, range(40)) == list(range(40))
