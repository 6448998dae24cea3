"""Within the block cycles are looked for less often; afterwards as before."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from reward_kit.utils.garbage import rare_collections


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
