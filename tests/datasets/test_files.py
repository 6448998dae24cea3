# SPDX-License-Identifier: Apache-2.0
"""Paths, globs and directories; counting and recognising files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.datasets.files import DatasetNotFoundError, count_lines, file_format, files_of, fingerprint, open_bytes
from reward_kit.errors import DatasetError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.jsonl", "a.jsonl", "notes.txt", "c.jsonl.gz"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "d.jsonl").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jsonl", "jsonl"),
        ("a.JSONL.gz", "jsonl"),
        ("a.tsv", "csv"),
        ("a.pq", "parquet"),
        ("a.txt", None),
        ("a", None),
    ],
)
def test_the_suffix_names_the_format(name: str, expected: str | None) -> None:
    assert file_format(name) == expected


def test_a_glob_gives_its_files_in_sorted_order(folder: Path) -> None:
    assert [file.name for file in files_of(str(folder / "*.jsonl*"))] == ["a.jsonl", "b.jsonl", "c.jsonl.gz"]
    assert folder / "deep" / "d.jsonl" in files_of(str(folder / "**" / "*.jsonl"))


def test_a_directory_gives_its_data_files(folder: Path) -> None:
    assert [file.name for file in files_of(str(folder))] == ["a.jsonl", "b.jsonl", "c.jsonl.gz"]


def test_a_file_whose_name_looks_like_a_glob_is_itself(tmp_path: Path) -> None:
    (tmp_path / "data[1].jsonl").touch()
    assert files_of(str(tmp_path / "data[1].jsonl")) == [tmp_path / "data[1].jsonl"]


def test_a_missing_file_is_one_sentence_that_names_the_nearest(folder: Path) -> None:
    (folder / "questions.jsonl").touch()
    with pytest.raises(
        DatasetError, match=r"There is no file '.*question\.jsonl' \(did you mean '.*questions\.jsonl'"
    ) as caught:
        files_of(str(folder / "question.jsonl"))
    assert isinstance(caught.value, FileNotFoundError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["*.csv", "nowhere/a.jsonl", "empty"])
def test_a_path_that_means_no_file_says_so(folder: Path, name: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(DatasetNotFoundError, match=r"Correct `dataset\.path_or_name`"):
        files_of(str(folder / name))


@given(lines=st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=30), ended=st.booleans())
def test_lines_are_counted_as_iteration_counts_them(
    lines: list[bytes], ended: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("count") / "a.jsonl"
    path.write_bytes(b"\n".join(lines) + (b"\n" if ended else b""))
    with open_bytes(path) as file:
        assert count_lines([path]) == sum(1 for _ in file)


def test_counting_stops_at_its_bound_and_before_compressed_files(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_bytes(b"{}\n" * 1_000_000)
    packed.write_bytes(gzip.compress(b"{}\n"))
    assert count_lines([plain, packed]) is None
    bounded = count_lines([plain], up_to=5)
    assert bounded is not None
    assert 5 <= bounded < 1_000_000


def test_a_file_of_the_same_size_and_modification_time_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("1\n")
    status = path.stat()
    before = fingerprint([path])
    while path.stat().st_ctime_ns == status.st_ctime_ns:  # the file system's clock has ticks
        path.write_text("2\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size and path.stat().st_mtime_ns == status.st_mtime_ns
    assert fingerprint([path]) != before


def test_the_fingerprint_follows_the_files(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    before = fingerprint([path])
    assert fingerprint([path]) == before
    os.utime(path, ns=(1, 1))
    assert fingerprint([path]) != before
