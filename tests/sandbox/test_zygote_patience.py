"""How long a run is waited for: not for what kept others from running, and not longer for what it did itself."""

from __future__ import annotations

import os
import time
from typing import cast

import pytest

from reward_kit.sandbox.python import cell as zygote_cell
from reward_kit.sandbox.python.cell import Cell, Everyone, Patience
from reward_kit.sandbox.python.messages import longest


class Seen:
    """A cell of which only this is known."""

    def __init__(
        self, cpu: float = 0.0, reaped: float = 0.0, others: int = 0, starved: float = 0.0, ready: int = 1
    ) -> None:
        self._everyone = Everyone(cpu, reaped, others, ready)
        self._starved = starved

    def everyone(self) -> Everyone:
        return self._everyone

    def starved_seconds(self) -> float:
        return self._starved


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
    assert is_over(monkeypatch, Seen(starved=1e6), longest(1.0) + 0.1)


@pytest.mark.parametrize("cell", [Seen(others=1), Seen(reaped=0.1)], ids=["living", "dead"])
def test_where_it_has_children_they_waited_as_others_did(monkeypatch: pytest.MonkeyPatch, cell: Seen) -> None:
    assert not is_over(monkeypatch, cell, 4.0, pressure=0.9)
    assert is_over(monkeypatch, cell, 4.0, pressure=0.5)
    assert is_over(monkeypatch, cell, longest(1.0) + 0.1, pressure=1.0)


def test_sleepers_wait_for_no_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_over(monkeypatch, Seen(others=5, reaped=1.0, ready=0), 1.1, pressure=1.0)


def test_who_had_all_processors_has_waited_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = float(os.cpu_count() or 1)
    assert is_over(monkeypatch, Seen(cpu=everything, others=100, starved=9.0), 1.1, pressure=1.0)
    assert not is_over(monkeypatch, Seen(cpu=everything / 2, others=100, starved=9.0), 1.1, pressure=1.0)
