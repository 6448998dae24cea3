# SPDX-License-Identifier: Apache-2.0
"""The file that grows and the file that is replaced: whole lines or none, the old content or the new."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import StorageError
from reward_kit.storage.files import Draft, GrowingFile

LINES = st.lists(st.binary(max_size=200).map(lambda data: data.replace(b"\n", b"") + b"\n"), max_size=8)


@contextlib.contextmanager
def room_for(size: int) -> Iterator[None]:
    """Files may not grow beyond `size`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@given(LINES, st.data())
def test_whatever_a_crash_leaves_whole_lines_stay_and_appending_goes_on(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("torn") / "lines"
    whole = b"".join(lines)
    left = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:left])
    kept = whole[: whole[:left].rfind(b"\n") + 1]
    with GrowingFile(path, read_only=True) as looked_at:
        assert b"".join(looked_at.lines()) == kept
    assert path.stat().st_size == left  # who only looks changes nothing
    with GrowingFile(path) as file:
        file.cut_torn_line()
        assert file.append(b"more\n") == len(kept)
    assert path.read_bytes() == kept + b"more\n"


@given(LINES, st.integers(0, 300))
def test_a_block_is_written_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], room: int
) -> None:
    path = tmp_path_factory.mktemp("full") / "lines"
    block = b"".join(lines)
    with GrowingFile(path) as file, room_for(room):
        if len(block) <= room:
            file.append(block)
        else:
            with pytest.raises(StorageError, match=r"Cannot write to .* make room"):
                file.append(block)
            block = b""
        assert file.end == len(block)
    assert path.read_bytes() == block


@pytest.mark.parametrize("ends_well", [True, False])
def test_who_was_alone_lets_the_next_one_in(tmp_path: Path, ends_well: bool) -> None:
    with GrowingFile(tmp_path / "lines") as file, GrowingFile(tmp_path / "lines") as other:
        with contextlib.suppress(ZeroDivisionError), file.alone():
            file.append(b"a\n")
            with pytest.raises(BlockingIOError):
                fcntl.flock(other.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            1 / ends_well
        fcntl.flock(other.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with other.alone():
            assert other.append(b"b\n") == 2


def test_a_file_whose_name_leads_to_another_is_read_as_it_is(tmp_path: Path) -> None:
    with GrowingFile(tmp_path / "lines") as file:
        file.append(b"first\nsecond\n")
        assert not file.is_replaced
        with Draft(tmp_path / "lines") as draft:
            draft.write(b"x\ny\nz\n")
        assert file.is_replaced
        lines = file.lines(len(b"first\n"))
        assert next(lines) == b"second\n" == file.line_at(len(b"first\n"))
        (tmp_path / "lines").unlink()
        assert file.is_replaced and [*file.lines()] == [b"first\n", b"second\n"]


def test_a_batch_is_forced_to_the_disk_where_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", forced.append)
    for always, count in ((False, 0), (True, 2)):
        (tmp_path / "lines").write_bytes(b"known\n")
        forced.clear()
        with GrowingFile(tmp_path / "lines", always_on_disk=always) as file:
            file.append(b"a\n")
            file.append(b"b\n")
            assert len(forced) == count
        assert len(forced) == count + 1  # closing


class Disk:
    """What a loss of power would leave: what was forced, of files under names that were forced, too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._held: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        monkeypatch.setattr(os, "fsync", self._force)

    def _force(self, descriptor: int) -> None:
        place, number = Path(os.readlink(f"/proc/self/fd/{descriptor}")), os.fstat(descriptor).st_ino
        if place.is_dir():
            self._names[number] = {path.name: path.stat().st_ino for path in place.iterdir()}
        else:
            self._held[number] = place.read_bytes()

    def left_in(self, folder: Path) -> dict[str, bytes]:
        names = self._names.get(folder.stat().st_ino, {})
        return {name: self._held.get(number, b"") for name, number in names.items()}


@given(blocks=st.lists(LINES.filter(bool).map(b"".join), min_size=1, max_size=5), anew=LINES.map(b"".join))
def test_what_is_said_to_be_on_the_disk_survives_a_loss_of_power(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[bytes], anew: bytes
) -> None:
    folder = tmp_path_factory.mktemp("power")
    with pytest.MonkeyPatch.context() as monkeypatch:
        disk = Disk(monkeypatch)
        with GrowingFile(folder / "always", always_on_disk=True) as always, GrowingFile(folder / "closed") as closed:
            for number, block in enumerate(blocks, start=1):
                always.append(block)
                closed.append(block)
                assert disk.left_in(folder)["always"] == b"".join(blocks[:number])
            closed.write_anew([anew])
        assert disk.left_in(folder)["closed"] == anew
        with Draft(folder / "new") as draft:
            draft.write(anew)
        assert disk.left_in(folder)["new"] == anew


def test_a_block_that_is_not_on_the_disk_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with GrowingFile(tmp_path / "lines", always_on_disk=True) as file:
        file.append(b"a\n")
        with monkeypatch.context() as broken, pytest.raises(StorageError, match="Input/output error"):
            broken.setattr(os, "fsync", refuse)
            file.append(b"b\n")
    assert (tmp_path / "lines").read_bytes() == b"a\n"


@pytest.mark.parametrize("ends_well", [True, False])
def test_a_draft_takes_the_place_of_the_file_or_leaves_no_trace(tmp_path: Path, ends_well: bool) -> None:
    target = tmp_path / "folder" / "file"
    with contextlib.suppress(ZeroDivisionError), Draft(target, make_folder=True) as draft:
        draft.write_all([b"old"])
    with contextlib.suppress(ZeroDivisionError), Draft(target, mode=0o640) as draft:
        draft.write(b"new")
        assert target.read_bytes() == b"old"
        1 / ends_well
    assert target.read_bytes() == (b"new" if ends_well else b"old")
    assert [path.name for path in target.parent.iterdir()] == ["file"]
    if ends_well:
        assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_draft_that_does_not_fit_is_told_with_what_to_do(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with (
        room_for(10),
        pytest.raises(StorageError, match=r"file.*Name another\."),
        Draft(target, advice="Name another.") as draft,
    ):
        draft.write(b"x" * 5_000_000)
    with pytest.raises(StorageError, match=r"Name another\."):
        Draft(tmp_path / "no folder" / "file", advice="Name another.")
    assert target.read_bytes() == b"old" and [path.name for path in tmp_path.iterdir()] == ["file"]
