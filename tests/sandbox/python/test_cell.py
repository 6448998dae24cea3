# SPDX-License-Identifier: Apache-2.0
"""One run as a supervisor sees it: how it begins and ends, and how long it is waited for."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest

from reward_kit.sandbox.python import cell as zygote_cell
from reward_kit.sandbox.python.cell import (
    Cell,
    CellProgram,
    Everyone,
    Forker,
    OwnerGoneError,
    Patience,
    ProgramEnd,
    StarvedError,
    Watch,
)
from reward_kit.sandbox.python.messages import longest

# ── from its beginning to its end ─────────────────────────────────────────────────────────────────────────────────────


class FakeZygote:
    """The other end of a cell's conversation: starts a real process, but for nothing that isolates it."""

    def __init__(self, command: Sequence[str], *, says: bytes = b"+", cpu: float = 0.25) -> None:
        """Run `command` for the next cell; `says` is what the program reports of its beginning."""
        self._command = command
        self._says = says
        self._cpu = cpu
        self.request: dict[str, Any] = {}
        self.task = b""
        self.task_is_sealed = False
        ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.owner, owners_end = socket.socketpair()
        self.forker = Forker(ours, None, owners_end)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._theirs, 1 << 16, 16)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self.request = json.loads(data)
        *streams, task, entered = descriptors
        with open(task, "rb") as file:
            self.task = file.read()
            self.task_is_sealed = bool(fcntl.fcntl(task, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE)
        if not self._command:
            os.close(entered)
            self._theirs.send(json.dumps({"error": "no more processes"}).encode())
            return
        output = [(os.POSIX_SPAWN_DUP2, streams[1], 1)]
        program = os.posix_spawnp(self._command[0], list(self._command), os.environ, file_actions=output)
        pidfds = [os.pidfd_open(program) for _ in range(2)]  # the namespace's first process, and the program
        socket.send_fds(self._theirs, [b"started"], pidfds)
        os.write(entered, self._says)
        for descriptor in (*streams, *pidfds, entered):
            os.close(descriptor)
        _, status, _ = os.wait4(program, 0)
        self._theirs.send(json.dumps({"status": status, "cpu_seconds": self._cpu, "largest": 4096}).encode())

    def close(self) -> None:
        self._thread.join(60)
        for each in (self._theirs, self.owner, self.forker.connection, self.forker.owner):
            each.close()


LIMITS = {"cpu_seconds": 10, "memory_mb": 64}


@pytest.fixture
def zygote() -> Iterator[Callable[..., FakeZygote]]:
    made: list[FakeZygote] = []

    def make(*command: str, **options: Any) -> FakeZygote:
        made.append(FakeZygote(command, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def cell_of(zygote: FakeZygote) -> Cell:
    with open(os.devnull, "r+b", buffering=0) as nowhere:
        return Cell(zygote.forker, LIMITS, CellProgram([nowhere.fileno()] * 3, b"what to do"))


def ended(zygote: FakeZygote, cell: Cell) -> ProgramEnd:
    """How its program ended by itself."""
    watch = Watch(zygote.forker, cell)
    assert watch.ended(watch.wait(time.monotonic() + 60))
    return cell.end()


def test_a_program_is_told_what_to_do_by_a_file_that_nobody_can_change(zygote: Callable[..., FakeZygote]) -> None:
    fake = zygote("true")
    ended(fake, cell_of(fake))
    assert fake.request == {"limits": LIMITS, "descriptors": [5]}
    assert (fake.task, fake.task_is_sealed) == (b"what to do", True)


@pytest.mark.parametrize(
    ("script", "code", "signal_number"), [("exit 0", 0, None), ("exit 7", 7, None), ("kill -TERM $$", None, 15)]
)
def test_its_end_is_what_the_kernel_says(
    zygote: Callable[..., FakeZygote], script: str, code: int | None, signal_number: int | None
) -> None:
    fake = zygote("sh", "-c", script)
    ending = ended(fake, cell_of(fake))
    assert (ending.exit_code, ending.signal, ending.oom_killed) == (code, signal_number, False)
    assert (ending.cpu_seconds, ending.peak_memory_bytes) == (0.25, 4096)


def test_ending_a_cell_kills_what_is_in_it(zygote: Callable[..., FakeZygote]) -> None:
    fake = zygote("sleep", "600")
    ending = cell_of(fake).end()
    assert (ending.exit_code, ending.signal) == (None, signal.SIGKILL)


@pytest.mark.parametrize(("cpu", "told"), [(9.0, signal.SIGXCPU), (2.0, signal.SIGKILL)])
def test_a_kill_at_the_end_of_its_cpu_time_is_one_for_that(
    zygote: Callable[..., FakeZygote], cpu: float, told: int
) -> None:
    fake = zygote("sh", "-c", "kill -KILL $$", cpu=cpu)
    assert ended(fake, cell_of(fake)).signal == told


def test_what_a_zygote_refuses_is_said(zygote: Callable[..., FakeZygote]) -> None:
    with pytest.raises(OSError, match=r"^no more processes$"):
        cell_of(zygote())


@pytest.mark.parametrize(("says", "told"), [(b"OSError: no mount", "OSError: no mount"), (b"", "it was killed")])
def test_a_run_that_did_not_begin_is_no_run(zygote: Callable[..., FakeZygote], says: bytes, told: str) -> None:
    with pytest.raises(OSError, match=f"^the run could not begin: {told}$"):
        cell_of(zygote("sleep", "600", says=says))


def test_nobody_goes_on_for_an_owner_who_has_gone(zygote: Callable[..., FakeZygote]) -> None:
    fake = zygote("sleep", "600")
    cell = cell_of(fake)
    watch = Watch(fake.forker, cell)
    assert watch.wait(time.monotonic()) == {}
    fake.owner.shutdown(socket.SHUT_RDWR)
    with pytest.raises(OwnerGoneError):
        watch.wait(time.monotonic() + 60)
    cell.end()


# ── how long it is waited for ─────────────────────────────────────────────────────────────────────────────────────────


class Seen:
    """A cell of which only this is known."""

    def __init__(
        self, cpu: float = 0.0, reaped: float = 0.0, others: int = 0, starved: float = 0.0, ready: int = 1
    ) -> None:
        self._everyone = Everyone(cpu, reaped, others, ready, starved)

    def everyone(self) -> Everyone:
        return self._everyone


def is_over(monkeypatch: pytest.MonkeyPatch, cell: Seen, elapsed: float, pressure: float = 0.0) -> bool:
    """Whether a run that may take a second is given up after so many."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(zygote_cell, "_pressure", lambda: pressure)
    patience = Patience(cast(Cell, cell), 1.0)
    now[0] += elapsed
    return patience.is_over()


def test_the_time_it_had_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_over(monkeypatch, Seen(), 0.9)
    assert is_over(monkeypatch, Seen(), 1.1)
    assert is_over(monkeypatch, Seen(), 1.1, pressure=1.0), "alone, it knows how long it waited"


def test_the_time_it_waited_for_a_processor_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_over(monkeypatch, Seen(starved=3.0), 3.9)
    assert is_over(monkeypatch, Seen(starved=3.0), 4.1)
    assert not is_over(monkeypatch, Seen(others=1, starved=3.0), 3.9)
    with pytest.raises(StarvedError):
        is_over(monkeypatch, Seen(starved=1e6), longest(1.0) + 0.1)


def test_what_an_earlier_run_used_and_waited_for_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    seen = Seen(cpu=50.0, starved=7.0)
    patience = Patience(cast(Cell, seen), 1.0, Everyone(49.9, 0.0, 0, 0, 4.0))
    now[0] += 3.5
    assert not patience.is_over()
    now[0] += 0.45
    assert not patience.is_over()
    asleep = Patience(cast(Cell, seen), 1.0, seen.everyone())
    now[0] += 1.1
    assert asleep.is_over()


def test_children_that_have_ended_waited_as_others_did(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_over(monkeypatch, Seen(reaped=0.1), 3.9, pressure=0.9)
    assert is_over(monkeypatch, Seen(reaped=0.1), 3.9, pressure=0.5)
    with pytest.raises(StarvedError):
        is_over(monkeypatch, Seen(reaped=0.1), longest(1.0) + 0.1, pressure=1.0)


def test_sleepers_wait_for_no_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_over(monkeypatch, Seen(others=5, reaped=1.0, ready=0), 1.1, pressure=1.0)


def test_who_had_all_processors_has_waited_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = float(os.cpu_count() or 1)
    assert is_over(monkeypatch, Seen(cpu=everything, others=100, starved=9.0), 1.1, pressure=1.0)
    assert not is_over(monkeypatch, Seen(cpu=everything / 2, others=100, starved=9.0), 1.1, pressure=1.0)
