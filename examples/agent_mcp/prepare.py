# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write it elsewhere.

Three orders, each with the stock of its own warehouse. They stand for tasks over the tools of MCP servers, such as
those of the benchmark MCP-Universe.
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Stock = dict[str, dict[str, int]]

ORDERS: list[tuple[str, int, str, Stock]] = [
    ("one-shelf", 2, "lamp", {"A": {"lamp": 5}, "B": {"chair": 1}}),
    ("two-shelves", 4, "chair", {"A": {"chair": 3}, "B": {"chair": 2}}),
    ("other-shelf", 1, "desk", {"A": {"lamp": 9}, "C": {"desk": 1}}),
]


def row(name: str, amount: int, item: str, stock: Stock) -> dict[str, Any]:
    """An order as a row of the dataset."""
    asked = f"Please bring {amount} of '{item}' to the shipping desk."
    return {"id": name, "user_query": asked, "ground_truth_for_eval": {item: amount}, "stock": stock}


def main(folder: Path) -> None:
    """Write the file."""
    (folder / "dataset.jsonl").write_text("".join(json.dumps(row(*order)) + "\n" for order in ORDERS))
    print(f"{len(ORDERS)} rows written to dataset.jsonl.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
