# SPDX-License-Identifier: Apache-2.0
"""A game for a very small model: turn a dial to the number that was asked for."""

from __future__ import annotations

from typing import Any, Literal

from reward_kit.agent import World, tool
from reward_kit.models import Sample

START = 3
TARGETS = (1, 5)  # two turns away


class Dial(World):
    """A dial that stands at 3. It may be turned to the left and to the right, by one number a call."""

    def __init__(self, sample: Sample) -> None:
        self.place, self.target = START, int(sample.ground_truth)

    def start(self) -> str:
        return self._seen()

    @tool
    def turn(self, way: Literal["left", "right"]) -> str:
        """Turn the dial by one.

        Args:
            way: where to
        """
        if self.place != self.target:  # there it clicks, and turns no more
            self.place += 1 if way == "right" else -1
        return self._seen()

    def facts(self) -> dict[str, Any]:
        return {"place": self.place}

    def _seen(self) -> str:
        way = "there" if self.place == self.target else "too low" if self.place < self.target else "too high"
        return f"The dial is at {self.place}: {way}"


def opened(facts: dict[str, Any], ground_truth: int, **kwargs: Any) -> float:
    """1 where the dial was turned to the target."""
    return float(facts["place"] == ground_truth)


def rows() -> list[dict[str, Any]]:
    """One task for each target."""
    return [
        {"prompt": [{"role": "user", "content": f"Turn the dial to {target}."}], "answer": target} for target in TARGETS
    ]
