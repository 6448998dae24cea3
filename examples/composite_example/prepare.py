# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

Each problem asks for a number and for a function that computes it for any n. The tests call the function with other n,
so one that only returns the number fails them. The problems stand for sets that ask for both, such as those made from
Project Euler, and for a mixture of `openai/gsm8k` and `google-research-datasets/mbpp`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from number_problems import FAMILIES, Problem, answers, problems  # type: ignore[import-not-found]  # beside this file

HERE = Path(__file__).resolve().parent


def dataset_row(problem: Problem) -> dict[str, Any]:
    """A problem with what each part of the reward needs."""
    return {
        "id": problem.id,
        "user_query": problem.text,
        "ground_truth": str(problem.result),
        "tests": json.dumps(problem.tests),
        "entry_point": problem.function,
    }


def answered_rows(problem: Problem) -> list[dict[str, Any]]:
    """A problem with one answer of each kind."""
    row = dataset_row(problem)
    asked = {"role": "user", "content": row.pop("user_query")}
    return [{**row, "messages": [asked, {"role": "assistant", "content": text}]} for text in answers(problem).values()]


def main(folder: Path) -> None:
    """Write both files."""
    stored = [row for problem in problems()[: len(FAMILIES)] for row in answered_rows(problem)]
    for name, lines in (("dataset.jsonl", list(map(dataset_row, problems()))), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
