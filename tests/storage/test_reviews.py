# SPDX-License-Identifier: Apache-2.0
"""`reviews.jsonl`: appended to by several processes at a time, and whole after kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reward_kit.errors import StorageError
from reward_kit.storage.reviews import Review, Says, append_review, last_words, read_reviews, reviews_path

REVIEW = Review(
    id="q1", response_index=0, says="wrong", note="1/2 is 0.5", reviewer="ada", at="2026-01-01T00:00:00.000+00:00",
    score=0.0, passed=False, reason="not equal", results_digest="d1", answer_digest="a1", chosen="random",
    probability=0.25, pool=4,
)  # fmt: skip

WRITER = """
import sys
from pathlib import Path
from dataclasses import replace
from tests.storage.test_reviews import REVIEW
from reward_kit.storage.reviews import append_review
number = 0
while number < int(sys.argv[3]):
    append_review(Path(sys.argv[1]), replace(REVIEW, id=f"{sys.argv[2]}-{number}", note="x" * 3000))
    number += 1
    print(number, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def test_what_was_said_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    assert read_reviews(path) == []
    second = replace(REVIEW, says="right", note="", probability=None, pool=None, chosen="browsing")
    for review in (REVIEW, second):
        append_review(path, review)
    assert read_reviews(path) == [REVIEW, second]
    assert last_words(read_reviews(path)) == {("ada", "q1", 0): second}


def test_a_person_passes_what_they_call_a_right_pass_or_a_wrong_failure() -> None:
    words: tuple[Says, ...] = ("right", "wrong", "unclear")
    said = [(passed, says) for passed in (True, False, None) for says in words]
    found = [replace(REVIEW, passed=passed, says=says).human_passes for passed, says in said]
    assert found == [True, False, None, False, True, None, None, None, None]


def test_the_file_stands_beside_what_it_is_about(tmp_path: Path) -> None:
    assert reviews_path(tmp_path) == tmp_path / "reviews.jsonl"
    assert reviews_path(tmp_path / "results.jsonl") == tmp_path / "reviews.jsonl"
    assert reviews_path(tmp_path / "one.parquet") == tmp_path / "one.parquet.reviews.jsonl"


def test_any_text_can_be_a_note(tmp_path: Path) -> None:
    note = "\x00\x1b[31m\u202e\n<script>" + "\ud800"
    append_review(tmp_path / "r.jsonl", replace(REVIEW, note=note))
    (found,) = read_reviews(tmp_path / "r.jsonl")
    assert found.note == note.replace("\ud800", "?")


def test_a_torn_line_is_not_there_and_makes_room_for_the_next(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    append_review(path, REVIEW)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:-10])
    assert read_reviews(path) == [REVIEW]
    append_review(path, replace(REVIEW, id="q2"))
    assert [review.id for review in read_reviews(path)] == ["q1", "q2"]
    path.write_bytes(whole[:70])  # the first line of all is torn
    append_review(path, REVIEW)
    assert read_reviews(path) == [REVIEW]


def test_a_changed_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    append_review(path, REVIEW)
    path.write_bytes(path.read_bytes().replace(b"wrong", b"right"))
    with pytest.raises(StorageError, match=r"Line 1 .* is damaged"):
        read_reviews(path)


def test_a_place_where_nothing_can_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Earlier reviews are kept"):
        append_review(tmp_path / "no such folder" / "reviews.jsonl", REVIEW)


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    writers = [writer(path, name, 60) for name in ("a", "b")]
    for one in writers:
        one.communicate(timeout=60)
        assert one.returncode == 0
    ids = [review.id for review in read_reviews(path)]
    for name in ("a", "b"):
        assert [one for one in ids if one.startswith(name)] == [f"{name}-{number}" for number in range(60)]


def test_what_was_acknowledged_survives_kill(tmp_path: Path) -> None:
    path = tmp_path / "reviews.jsonl"
    kept: list[str] = []
    for attempt in range(3):
        process = writer(path, f"w{attempt}", 1_000_000)
        assert process.stdout is not None
        seen = 0
        while seen < 7:
            seen = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read()  # not `communicate`: it passes by what `readline` has read ahead
        process.wait(timeout=60)
        process.stdout.close()
        seen = max([seen, *map(int, rest.split("\n")[:-1])])
        kept += [f"w{attempt}-{number}" for number in range(seen)]
        append_review(path, replace(REVIEW, id=f"after {attempt}"))
        kept.append(f"after {attempt}")
    ids = [review.id for review in read_reviews(path)]
    assert set(kept) <= set(ids)
    assert len(ids) - len(kept) <= 3, "at most the one that was just written is there without having been told"
