# SPDX-License-Identifier: Apache-2.0
"""Who is killed when the processes of a sandbox have too much memory together, by what a /proc says of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_kit.sandbox.linux import memory
from reward_kit.sandbox.linux.memory import MemoryWatch

MIB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


class FakeProc:
    """A /proc of a few processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ticks = 0
        self.put(1, own=0)
        self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def put(self, process: int, *, own: int, shared: int = 0) -> None:
        """A process with so many MiB of its own, and so many that are its part of what several share."""
        directory = self.path / str(process)
        (directory / "task" / str(process)).mkdir(parents=True, exist_ok=True)
        fields = ["0"] * 40
        fields[0], fields[11], fields[17] = "S", str(self.ticks), "1"
        fields[21] = str((own + 2 * shared) * MIB // PAGE)  # all that is mapped, however many have it
        (directory / "stat").write_text(f"{process} (a ) name) {' '.join(fields)}\n")
        rollup = f"Pss: {(own + shared) << 10} kB\nPss_Anon: {own << 10} kB\nPss_Shmem: {shared << 10} kB\n"
        (directory / "smaps_rollup").write_text(f"00000000-ffffffff [rollup]\n{rollup}SwapPss: 0 kB\n")


@pytest.fixture
def proc(tmp_path: Path) -> Iterator[FakeProc]:
    proc = FakeProc(tmp_path)
    yield proc
    os.close(proc.descriptor)


class Watched:
    """A watch over a fake /proc that lets all processes have 100 MiB, and what it did."""

    def __init__(self, proc: FakeProc, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exceeded = 0
        self.killed: list[int] = []
        monkeypatch.setattr(memory, "kill_in", lambda _, process: self.killed.append(process))
        self.watch = MemoryWatch(proc.descriptor, 100 * MIB, self._count, stores=(), has_segments=False)

    def _count(self) -> None:
        self.exceeded += 1


@pytest.fixture
def watched(proc: FakeProc, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(proc, monkeypatch)


def test_nobody_is_killed_for_what_they_may_have(proc: FakeProc, watched: Watched) -> None:
    proc.put(7, own=60)
    proc.put(8, own=39)
    watched.watch.look()
    assert (watched.exceeded, watched.killed) == (0, [])


def test_the_largest_is_killed_when_all_together_have_too_much(proc: FakeProc, watched: Watched) -> None:
    proc.put(7, own=30)
    proc.put(8, own=45)
    proc.put(9, own=40)
    watched.watch.look()
    assert (watched.exceeded, watched.killed) == (1, [8])


def test_what_processes_share_counts_once(proc: FakeProc, watched: Watched) -> None:
    proc.put(7, own=20, shared=25)
    proc.put(8, own=20, shared=25)
    watched.watch.look()
    assert watched.killed == []
    proc.put(8, own=40, shared=25)
    watched.watch.look()
    assert watched.killed == [8]


def test_the_next_is_spared_while_the_last_is_still_going(proc: FakeProc, watched: Watched) -> None:
    proc.put(7, own=90)
    proc.put(8, own=80)
    watched.watch.look()
    watched.watch.look()
    assert watched.killed == [7]
    (proc.path / "7" / "stat").unlink()
    proc.put(9, own=70)
    watched.watch.look()
    assert watched.killed == [7, 8]


def test_the_first_process_is_nobodys_business(proc: FakeProc, watched: Watched) -> None:
    proc.put(1, own=500)
    watched.watch.look()
    assert watched.killed == []


def test_looking_ends_when_nothing_moves_and_only_the_shell_is_left(proc: FakeProc, watched: Watched) -> None:
    proc.put(7, own=1)
    watched.watch.begin()
    watched.watch.look()
    watched.watch.look()
    assert watched.watch.pause is not None, "a command is running"
    watched.watch.end()
    watched.watch.look()
    assert watched.watch.pause is None
    watched.watch.begin()
    assert watched.watch.pause is not None


def test_looking_goes_on_while_a_command_has_left_somebody(proc: FakeProc, watched: Watched) -> None:
    proc.put(7, own=1)
    proc.put(8, own=1)
    pauses = []
    for _ in range(8):
        watched.watch.look()
        pauses.append(watched.watch.pause)
    assert None not in pauses
    assert pauses == sorted(pauses), "those who are still are looked at ever less"  # type: ignore[type-var]
    proc.ticks = 100
    proc.put(8, own=1)
    watched.watch.look()
    assert watched.watch.pause is not None and pauses[-1] is not None and watched.watch.pause < pauses[-1]
