# SPDX-License-Identifier: Apache-2.0
"""How much of a large matrix of faults a test tries: some of it, or with REWARD_KIT_ALL_FAULTS=1 the whole."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["ALL", "some"]

ALL = bool(os.environ.get("REWARD_KIT_ALL_FAULTS"))

Point = TypeVar("Point")


def some(points: Sequence[Point], count: int, seed: object) -> list[Point]:
    """`count` of the points, the same ones each time, in their order; or all of them."""
    if ALL or count >= len(points):
        return list(points)
    places = sorted(random.Random(str(seed)).sample(range(len(points)), count))
    return [points[place] for place in places]
