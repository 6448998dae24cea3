# SPDX-License-Identifier: Apache-2.0
"""A command looks for reference cycles less often; a library call leaves its caller's collector alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_kit import Message, evaluate
from reward_kit.cli_commands.garbage import collect_rarely


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_a_command_collects_rarely_from_its_start_and_not_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_end: list[object] = []
    monkeypatch.setattr("atexit.register", at_the_end.append)
    gc.set_threshold(700, 10, 10)
    collect_rarely()
    assert gc.get_threshold() == (10_000, 10, 10)
    assert at_the_end == [gc.freeze]


@pytest.mark.parametrize("chosen", [(0, 10, 10), (50_000, 5, 5)])
def test_somebodys_own_choice_of_seldom_or_never_stands(
    chosen: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atexit.register", lambda _: None)
    gc.set_threshold(*chosen)
    collect_rarely()
    assert gc.get_threshold() == chosen


def test_the_library_leaves_the_collector_of_its_caller_alone(tmp_path: Path) -> None:
    gc.set_threshold(700, 10, 10)
    seen: list[tuple[tuple[int, int, int], int]] = []
    frozen = gc.get_freeze_count()

    async def reward(messages: list[Message]) -> float:
        seen.append((gc.get_threshold(), gc.get_freeze_count()))
        return 1.0

    evaluate([{"user_query": "2+2?", "assistant_response": "4"}], reward, output_dir=tmp_path / "run")
    assert seen == [((700, 10, 10), frozen)]
