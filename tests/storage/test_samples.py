# SPDX-License-Identifier: Apache-2.0
"""Each sample is stored once, whatever a crash leaves of the file, and is read back as it was."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.errors import StorageError
from reward_kit.models import Message, Sample
from reward_kit.storage.samples import SAMPLES, Samples

few = settings(max_examples=40)  # each one waits for the disk
count = itertools.count()
orders = st.lists(st.integers(0, 5), min_size=1, max_size=12)
"""The samples by number, in the order in which they come by; many come several times."""


def a_sample(number: int, **changes: object) -> Sample:
    text = f"question {number} " + "x" * 1000 * number
    sample = Sample(id=f's"{number}', messages=[Message(role="user", content=text)], position=number)
    return sample.model_copy(update=changes)


def somewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.getbasetemp() / f"{os.getpid()}-samples-{next(count)}"
    directory.mkdir()
    return directory / SAMPLES


def write(path: Path, order: list[int], *, compact: bool = True) -> None:
    with contextlib.closing(Samples(path)) as samples:
        for number in order:
            samples.keep(a_sample(number))
        if compact:
            samples.compact()


@few
@given(order=orders)
def test_each_is_stored_once_in_dataset_order_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    path = somewhere(tmp_path_factory)
    write(path, order)
    lines = path.read_bytes().splitlines()
    assert [Sample.model_validate_json(line).position for line in lines] == sorted(set(order))
    with contextlib.closing(Samples(path)) as writer, contextlib.closing(Samples(path, read_only=True)) as reader:
        for number in order:
            name = writer.keep(a_sample(number))
            assert reader.sample(name, number) == writer.sample(name, number) == a_sample(number)
            assert reader.sample(name, number + 7).position == number + 7, "the row has moved since"
    assert path.read_bytes().splitlines() == lines


@few
@given(order=orders, cut=st.integers(0, 40_000))
def test_wherever_a_crash_tears_the_file_writing_again_makes_the_same(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], cut: int
) -> None:
    path = somewhere(tmp_path_factory)
    write(path, order)
    whole = path.read_bytes()
    write(path, order, compact=False)
    path.write_bytes(path.read_bytes()[: cut % (len(whole) + 1)])
    write(path, order)
    assert path.read_bytes() == whole


@few
@given(order=orders, place=st.integers(0, 40_000))
def test_a_damaged_line_finds_nobody_and_is_written_again(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], place: int
) -> None:
    path = somewhere(tmp_path_factory)
    write(path, order)
    whole = bytearray(path.read_bytes())
    damaged = bytearray(whole)
    damaged[place % (len(whole) - 1)] ^= 1
    path.write_bytes(damaged)
    with contextlib.closing(Samples(somewhere(tmp_path_factory))) as other:
        for number in order:
            name = other.keep(a_sample(number))
            with contextlib.closing(Samples(path, read_only=True)) as reader:
                try:
                    assert reader.sample(name, number) == a_sample(number)
                except StorageError as error:
                    assert "samples.jsonl" in str(error)
    try:
        write(path, order)
    except StorageError as error:  # where the only line of a file is damaged, nobody knows whose the file is
        assert "is not a file that a run wrote" in str(error) and path.read_bytes() == damaged
    else:
        assert path.read_bytes() == whole


def test_the_one_of_another_truth_is_another_one(tmp_path: Path) -> None:
    with contextlib.closing(Samples(tmp_path / SAMPLES)) as samples:
        names = [samples.keep(a_sample(1, ground_truth=truth)) for truth in ("1", 1, None, "1")]
        assert names[0] == names[3] and len(set(names)) == samples.keys == 3
        assert [samples.sample(name, 0).ground_truth for name in names] == ["1", 1, None, "1"]


@pytest.mark.parametrize("content", [b'{"question": "mine"}\n', b"no line at all", b'{"schema":2,"id":"a"}\n'])
def test_a_file_of_this_name_that_is_somebody_elses_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / SAMPLES
    path.write_bytes(content)
    with pytest.raises(StorageError, match="is not a file that a run wrote"):
        write(path, [1])
    assert path.read_bytes() == content


def test_what_a_run_appends_is_found_by_whoever_reads_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / SAMPLES
    with contextlib.closing(Samples(path)) as writer, contextlib.closing(Samples(path, read_only=True)) as reader:
        for number in range(6):
            name = writer.keep(a_sample(number))
            writer.flush()
            assert reader.sample(name, number) == a_sample(number)


def test_nothing_is_read_or_made_where_nothing_is_put(tmp_path: Path) -> None:
    with contextlib.closing(Samples(tmp_path / SAMPLES)) as samples:
        samples.compact()
        samples.sync()
        assert samples.keys == 0
    assert not (tmp_path / SAMPLES).exists()
