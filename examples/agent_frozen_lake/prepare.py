# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write it elsewhere.

Frozen lakes of three sizes, drawn with a seed. Each can be crossed. They stand for FrozenLake of Gymnasium
(`FrozenLake-v1`), whose ice is slippery; ours is not.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lake import TASK, way  # type: ignore[import-not-found]  # beside this file

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


def main(folder: Path) -> None:
    """Write the file."""
    made = list(rows())
    (folder / "dataset.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    print(f"{len(made)} rows written to dataset.jsonl.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
