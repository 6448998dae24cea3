# SPDX-License-Identifier: Apache-2.0
"""A checksum tells what was written from what was damaged, and from what never had a checksum."""

from __future__ import annotations

import string
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.utils.checksums import (
    check_document,
    check_line,
    check_parquet,
    check_text,
    seal_parquet,
    sealed_document,
    sealed_line,
    sealed_text,
    unsealed,
)

values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20)
names = st.text(string.ascii_letters, min_size=1, max_size=8).filter(lambda name: name != "check")
objects = st.dictionaries(names, values, min_size=1, max_size=5)


def line_of(fields: dict[str, object]) -> bytes:
    return orjson.dumps(fields) + b"\n"


def with_another_bit(text: bytes, bit: int) -> bytes:
    damaged = bytearray(text)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(objects)
def test_a_line_is_as_it_was_written_with_its_newline_and_without(fields: dict[str, object]) -> None:
    line = line_of(fields)
    sealed = sealed_line(line)
    assert check_line(sealed) is check_line(sealed.removesuffix(b"\n")) is True
    assert orjson.loads(sealed).keys() == {*fields, "check"}
    assert unsealed(sealed) == line


@given(objects)
def test_a_line_without_a_checksum_has_none(fields: dict[str, object]) -> None:
    line = line_of(fields)
    assert check_line(line) is None
    assert unsealed(line) == line


@given(objects, st.data())
def test_no_flipped_bit_of_a_line_goes_unnoticed(fields: dict[str, object], data: st.DataObject) -> None:
    sealed = sealed_line(line_of(fields)).removesuffix(b"\n")
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    assert check_line(with_another_bit(sealed, bit)) is not True


def test_a_damaged_seal_is_damage_and_not_a_missing_seal() -> None:
    sealed = sealed_line(line_of({"id": "a", "content": "42"})).removesuffix(b"\n")
    seal = sealed.index(b"check")
    for place in range(seal, seal + len("check")):
        assert check_line(sealed[:place] + b"?" + sealed[place + 1 :]) is False
        assert check_line(sealed[:place] + sealed[place + 1 :]) is False


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(objects)
def test_a_document_is_what_was_written_and_sealing_again_changes_nothing(fields: dict[str, object]) -> None:
    sealed = sealed_document(fields)
    read = orjson.loads(sealed)
    assert sealed_document(read) == sealed
    assert check_document(read) is True
    assert read == fields, "the checksum is taken out"


@given(objects, names, values)
def test_a_document_with_another_value_is_damaged(fields: dict[str, object], name: str, value: object) -> None:
    read = orjson.loads(sealed_document(fields))
    changed = {name: value, **{key: kept for key, kept in read.items() if key != name}}
    if {key: kept for key, kept in changed.items() if key != "check"} != fields:
        assert check_document(changed) is False


@pytest.mark.parametrize(("last", "verdict"), [("chock", False), ("chek", False), ("checks", False), ("score", None)])
def test_a_document_whose_seal_lost_its_name(last: str, verdict: bool | None) -> None:
    assert check_document({"id": "a", last: "1c291ca3"}) is verdict


def test_an_empty_document_never_had_a_checksum() -> None:
    assert check_document({}) is None


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.text(string.ascii_letters + " :", max_size=12), max_size=6), st.data())
def test_a_text_is_as_it_was_written_and_every_other_byte_is_seen(lines: list[str], data: st.DataObject) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    sealed = sealed_text(text)
    assert check_text(sealed) is True
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    assert check_text(with_another_bit(sealed, bit)) is not True


def test_a_text_with_a_damaged_seal_is_told_from_one_without() -> None:
    sealed = sealed_text(b"n: 4\n")
    assert check_text(b"n: 4\n") is check_text(b"") is None
    assert check_text(sealed.replace(b"n: 4", b"n: 5")) is False
    assert check_text(sealed.replace(b"check", b"chuck")) is False


# ── Parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def a_file_like_parquet(path: Path, pages: bytes = b"PAR1" + b"page" * 100, footer: bytes = b"footer") -> Path:
    """What matters of the format: the footer stands last, before its length and PAR1."""
    path.write_bytes(pages + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


def test_a_sealed_parquet_file_keeps_its_footer_where_readers_look(tmp_path: Path) -> None:
    path = a_file_like_parquet(tmp_path / "a.parquet")
    written = path.read_bytes()
    assert check_parquet(path) is None
    seal_parquet(path)
    sealed = path.read_bytes()
    assert check_parquet(path) is check_parquet(path, pages=True) is True
    assert sealed.endswith(written[-14:])
    assert sealed.startswith(written[:-14])


def test_damage_to_pages_is_found_when_all_of_a_parquet_file_is_asked_for(tmp_path: Path) -> None:
    path = a_file_like_parquet(tmp_path / "a.parquet")
    seal_parquet(path)
    path.write_bytes(with_another_bit(path.read_bytes(), 8 * 50))
    assert check_parquet(path) is True, "the footer is whole"
    assert check_parquet(path, pages=True) is False


@pytest.mark.parametrize("from_the_end", range(1, 15))
def test_damage_to_the_footer_or_its_length_is_found(tmp_path: Path, from_the_end: int) -> None:
    path = a_file_like_parquet(tmp_path / "a.parquet")
    seal_parquet(path)
    sealed = path.read_bytes()
    path.write_bytes(with_another_bit(sealed, 8 * (len(sealed) - from_the_end)))
    assert check_parquet(path) is False


def test_pages_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    path = a_file_like_parquet(tmp_path / "a.parquet", pages=bytes(3 << 20))
    seal_parquet(path)
    assert check_parquet(path, pages=True) is True
    path.write_bytes(with_another_bit(path.read_bytes(), 8 * 1000))
    assert check_parquet(path, pages=True) is False
