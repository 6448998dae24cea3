# SPDX-License-Identifier: Apache-2.0
"""Turn a file in the shape of GSM8K into rows for `reward-kit run`.

    python convert_dataset.py gsm8k_test.jsonl questions.jsonl --limit 100

Reads JSON lines, CSV or Parquet, a plain file or one of the Hugging Face hub's (download it first, or point
`dataset=gsm8k` at the hub directly). Each row needs a question and an answer; where the answer is a worked solution
that ends in `#### 72`, the number behind the marks becomes the ground truth and the solution is kept beside it.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of the file, by its suffix."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        for batch in pyarrow.parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
        return
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            yield from csv.DictReader(file)
        else:
            yield from (json.loads(line) for line in file if line.strip())


def convert(row: dict[str, Any], number: int, question: str, answer: str) -> dict[str, Any]:
    """One row in our shape."""
    solution, marks, final = str(row[answer]).rpartition("####")
    converted = {"id": str(row.get("id") or f"row-{number}"), "user_query": row[question]}
    converted["ground_truth_for_eval"] = final.strip()
    if marks:
        converted["solution"] = solution.strip()
    return converted


def parse_arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Turn a file in the shape of GSM8K into rows for reward-kit run.")
    parser.add_argument("source", type=Path, help="a .jsonl, .csv or .parquet file")
    parser.add_argument("target", type=Path, help="the .jsonl file to write")
    parser.add_argument("--question", default="question", help="the column with the problem (default: %(default)s)")
    parser.add_argument("--answer", default="answer", help="the column with the answer (default: %(default)s)")
    parser.add_argument("--limit", type=int, help="convert only so many rows")
    return parser.parse_args()


def main() -> None:
    """Convert, and say how many rows were written."""
    options = parse_arguments()
    count = 0
    with options.target.open("w", encoding="utf-8") as target:
        for row in islice(read_rows(options.source), options.limit):
            count += 1
            missing = [name for name in (options.question, options.answer) if name not in row]
            if missing:
                sys.exit(
                    f"Row {count} has no column {missing[0]!r}; it has {', '.join(row)}. "
                    "Name yours with --question or --answer."
                )
            target.write(json.dumps(convert(row, count, options.question, options.answer), ensure_ascii=False) + "\n")
    print(f"{count} rows written to {options.target}.")


if __name__ == "__main__":
    main()
