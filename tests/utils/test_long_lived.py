"""What is set aside from the garbage collector, and that it comes back."""

from __future__ import annotations

import gc
import weakref

import pytest

from reward_kit.utils.long_lived import long_lived_set_aside


class _Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_only_what_was_made_since_is_collected_and_afterwards_everything() -> None:
    before = _Cycle()
    old = weakref.ref(before)
    with long_lived_set_aside():
        made = _Cycle()
        new = weakref.ref(made)
        del before, made
        gc.collect()
        assert (old() is None, new() is None) == (False, True)
    gc.collect()
    assert old() is None


def test_it_ends_with_an_error_too() -> None:
    with pytest.raises(RuntimeError), long_lived_set_aside():
        raise RuntimeError
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_set_aside_stays_so() -> None:
    gc.freeze()
    try:
        with long_lived_set_aside():
            pass
        assert gc.get_freeze_count() > 2_000
    finally:
        gc.unfreeze()
