# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write it elsewhere.

Twelve numbers, each to be written as an expression. There are many right answers, so a group of answers can be varied.
They stand for tasks such as Countdown (`Jiayi-Pan/Countdown-Tasks-3to4`).
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGETS = (6, 8, 10, 12, 14, 15, 16, 18, 20, 24, 30, 36)


def main(folder: Path) -> None:
    """Write the file."""
    text = "Write an expression of whole numbers with + or * whose value is {n}, and nothing else. {n} alone is none."
    rows = [{"id": f"n{n}", "user_query": text.format(n=n), "ground_truth": str(n)} for n in TARGETS]
    (folder / "dataset.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows)} rows written to dataset.jsonl.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
