# SPDX-License-Identifier: Apache-2.0
"""Sums of two numbers of two digits: those to train on, and those that are held out to measure with."""

from __future__ import annotations

import random
from collections.abc import Set
from typing import NamedTuple

__all__ = ["Sum", "held_out", "training"]

TRAINING_SEED, HELD_OUT_SEED = 1, 2
HELD_OUT = 256


class Sum(NamedTuple):
    """Two numbers to be added."""

    first: int
    second: int

    @property
    def question(self) -> str:
        """What a model is asked."""
        return f"What is {self.first} + {self.second}?"

    @property
    def answer(self) -> str:
        """What is right."""
        return str(self.first + self.second)


def held_out(count: int = HELD_OUT) -> list[Sum]:
    """Sums that training never draws."""
    return _drawn(count, HELD_OUT_SEED, frozenset())


def training(count: int) -> list[Sum]:
    """Sums to train on. Some come several times; none is held out."""
    return _drawn(count, TRAINING_SEED, frozenset(held_out()))


def _drawn(count: int, seed: int, without: Set[Sum]) -> list[Sum]:
    dice = random.Random(seed)
    found: list[Sum] = []
    while len(found) < count:
        one = Sum(dice.randint(10, 99), dice.randint(10, 99))
        if one not in without:
            found.append(one)
    return found
