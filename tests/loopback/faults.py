# SPDX-License-Identifier: Apache-2.0
"""How much of a large matrix of faults a test tries: a little of it, or REWARD_KIT_FAULTS times as much.

`make test-kills` tries twelve times as much, which is the whole of most.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["MORE", "TIMES", "some"]

TIMES = int(os.environ.get("REWARD_KIT_FAULTS", "1"))
MORE = TIMES > 1

Point = TypeVar("Point")


def some(points: Sequence[Point], count: int, seed: object) -> list[Point]:
    """`count` of the points, or `TIMES` as many; the same ones each time, in their order."""
    if count * TIMES >= len(points):
        return list(points)
    places = sorted(random.Random(str(seed)).sample(range(len(points)), count * TIMES))
    return [points[place] for place in places]
