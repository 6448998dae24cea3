# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

Twelve numbers, each to be written as an expression. There are many right answers, so a group of answers can be varied.
They stand for tasks such as Countdown (`Jiayi-Pan/Countdown-Tasks-3to4`).
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TARGETS = (6, 8, 10, 12, 14, 15, 16, 18, 20, 24, 30, 36)


TASK = "Write an expression of whole numbers with + or * whose value is {n}, and nothing else. {n} alone is none."


def answered_rows(n: int) -> list[dict[str, Any]]:
    """A number with four answers: one that is given twice, one that is given once, and a wrong one."""
    asked = {"role": "user", "content": TASK.format(n=n)}
    said = (f"{n - 1} + 1", f"{n - 1} + 1", f"{n - 2} + 2", str(n))
    return [
        {"id": f"n{n}", "messages": [asked, {"role": "assistant", "content": text}], "ground_truth": str(n)}
        for text in said
    ]


def main(folder: Path) -> None:
    """Write both files."""
    rows = [{"id": f"n{n}", "user_query": TASK.format(n=n), "ground_truth": str(n)} for n in TARGETS]
    stored = [row for n in TARGETS for row in answered_rows(n)]
    for name, lines in (("dataset.jsonl", rows), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
