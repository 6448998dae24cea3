# SPDX-License-Identifier: Apache-2.0
"""Writes dataset.jsonl: frozen lakes of three sizes, drawn with a seed. Each can be crossed.

    python -m examples.agent_frozen_lake.prepare [FOLDER]

They stand for FrozenLake of Gymnasium (`FrozenLake-v1`), whose ice is slippery; ours is not.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from examples.agent_frozen_lake.lake import TASK, way

SEED = 16
SIZES = (4, 5, 6)
LAKES_PER_SIZE = 4
HOLES = 0.3


def drawn(size: int, dice: random.Random) -> tuple[str, int]:
    """A lake, and how many moves its shortest way has. Lakes without a way are drawn again."""
    while True:
        squares = ["O" if dice.random() < HOLES else "." for _ in range(size * size)]
        squares[0], squares[-1] = "S", "G"
        rows = ["".join(squares[start : start + size]) for start in range(0, size * size, size)]
        moves = way(rows, (0, 0))
        if moves is not None:
            return " ".join(rows), len(moves)


def rows() -> Iterator[dict[str, Any]]:
    """The rows of the dataset."""
    dice = random.Random(SEED)
    for size in SIZES:
        for number in range(LAKES_PER_SIZE):
            lake, shortest = drawn(size, dice)
            prompt = [{"role": "system", "content": TASK}]
            yield {"id": f"lake-{size}x{size}-{number}", "messages": prompt, "lake": lake, "shortest": shortest}


if __name__ == "__main__":
    text = "".join(f"{json.dumps(row)}\n" for row in rows())
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    (folder / "dataset.jsonl").write_text(text, encoding="utf-8")
