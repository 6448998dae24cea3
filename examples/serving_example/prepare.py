# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

The products stand for the prompts of a training with verifiable answers, such as `PrimeIntellect/SYNTHETIC-1`.
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PRODUCTS = [(first, second) for first in range(6, 12) for second in (7, 8, 9, 12)]
ANSWERED = 6
"""How many of the products have stored answers."""


def dataset_row(first: int, second: int) -> dict[str, Any]:
    """A product as a row of the dataset."""
    question = {"role": "user", "content": f"What is {first} x {second}?"}
    return {"id": f"{first}x{second}", "messages": [question], "ground_truth": str(first * second)}


def answered_rows(first: int, second: int, knows: bool) -> list[dict[str, Any]]:
    """A product with a right answer, a wrong one, and one that may have no number, so that it cannot be judged."""
    row, product = dataset_row(first, second), first * second
    texts = [f"It is {product}.", f"It is {product - 1}.", f"It is {product}." if knows else "No idea."]
    return [{**row, "messages": [*row["messages"], {"role": "assistant", "content": text}]} for text in texts]


def main(folder: Path) -> None:
    """Write both files."""
    chosen = enumerate(PRODUCTS[:ANSWERED])
    stored = [row for number, pair in chosen for row in answered_rows(*pair, knows=number > 0)]
    for name, lines in (("dataset.jsonl", [dataset_row(*pair) for pair in PRODUCTS]), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
