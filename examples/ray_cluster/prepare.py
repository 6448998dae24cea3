# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

The sums stand for sets that are too large for one machine, such as `AI-MO/NuminaMath-1.5` (900,000 problems).
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SUMS = [(12 + 5 * number, 7 + 3 * number) for number in range(24)]
ANSWERED = 8
"""How many of the sums have stored answers."""


def dataset_row(first: int, second: int) -> dict[str, Any]:
    """A sum as a row of the dataset."""
    question = {"role": "user", "content": f"What is {first} + {second}?"}
    return {"id": f"{first}+{second}", "messages": [question], "ground_truth": str(first + second)}


def answered_rows(first: int, second: int, wrong: int) -> list[dict[str, Any]]:
    """A sum with four answers, of which so many are wrong."""
    row = dataset_row(first, second)
    texts = [f"It is {first + second + (place < wrong)}." for place in range(4)]
    return [{**row, "messages": [*row["messages"], {"role": "assistant", "content": text}]} for text in texts]


def main(folder: Path) -> None:
    """Write both files."""
    rows = [dataset_row(*pair) for pair in SUMS]
    stored = [row for number, pair in enumerate(SUMS[:ANSWERED]) for row in answered_rows(*pair, wrong=number % 4)]
    for name, lines in (("dataset.jsonl", rows), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
