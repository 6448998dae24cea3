# SPDX-License-Identifier: Apache-2.0
"""Cycles are looked for less often and only among what is new; afterwards as before."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_kit import Message, evaluate
from reward_kit.cli_commands.garbage import collect_rarely, rare_collections


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_cycles_are_looked_for_less_often_until_the_block_ends_however_it_does() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ZeroDivisionError), rare_collections():
        assert gc.get_threshold() == (10_000, 10, 10)
        raise ZeroDivisionError
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (50_000, 5, 5)])
def test_somebodys_own_choice_of_seldom_or_never_stands(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    with rare_collections():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


class _Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_only_what_was_made_since_is_collected_and_afterwards_everything() -> None:
    before = _Cycle()
    old = weakref.ref(before)
    with rare_collections():
        made = _Cycle()
        new = weakref.ref(made)
        del before, made
        gc.collect()
        assert (old() is None, new() is None) == (False, True)
    gc.collect()
    assert old() is None


def test_what_somebody_else_set_aside_stays_so() -> None:
    gc.freeze()
    try:
        with rare_collections():
            pass
        assert gc.get_freeze_count() > 2_000
    finally:
        gc.unfreeze()


def test_the_library_leaves_the_collector_of_its_caller_alone(tmp_path: Path) -> None:
    gc.set_threshold(700, 10, 10)
    seen: list[tuple[tuple[int, int, int], int]] = []
    frozen = gc.get_freeze_count()

    async def reward(messages: list[Message]) -> float:
        seen.append((gc.get_threshold(), gc.get_freeze_count()))
        return 1.0

    evaluate([{"user_query": "2+2?", "assistant_response": "4"}], reward, output_dir=tmp_path / "run")
    assert seen == [((700, 10, 10), frozen)]


def test_a_command_collects_rarely_from_its_start_and_not_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_end: list[object] = []
    monkeypatch.setattr("atexit.register", at_the_end.append)
    gc.set_threshold(700, 10, 10)
    collect_rarely()
    assert gc.get_threshold() == (10_000, 10, 10)
    assert at_the_end == [gc.freeze]
