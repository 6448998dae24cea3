# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

Six problems of ours in the shapes of `agentica-org/DeepCoder-Preview-Dataset`, about 24,000 problems. Its three parts
for training write their tests in three ways: `taco` as two lists, `primeintellect` and `lcbv5` as lists of cases.
"""

import json
import sys
from pathlib import Path
from typing import Any

from columns import ours  # type: ignore[import-not-found]  # beside this file
from mock_model import answer  # type: ignore[import-not-found]  # beside this file

from reward_kit.models import Message

HERE = Path(__file__).resolve().parent


def taco(problem: str, cases: list[tuple[str, str]]) -> dict[str, Any]:
    """A program, with its tests as two lists."""
    return {
        "problem": problem,
        "tests": json.dumps({"inputs": [a for a, _ in cases], "outputs": [b for _, b in cases]}),
    }


def prime(problem: str, function: str, cases: list[tuple[list[Any], Any]]) -> dict[str, Any]:
    """A function, with its name in every test."""
    tests = [{"type": "function_call", "fn_name": function, "input": a, "output": [b]} for a, b in cases]
    return {"problem": problem, "tests": json.dumps(tests)}


def livecodebench(problem: str, cases: list[tuple[str, str]]) -> dict[str, Any]:
    """A program, with a kind in every test."""
    return {"problem": problem, "tests": json.dumps([{"input": a, "output": b, "testtype": "stdin"} for a, b in cases])}


PROBLEMS = [
    taco("Read two integers in one line and print their greatest common divisor.",
         [("12 18\n", "6\n"), ("7 5\n", "1\n"), ("0 9\n", "9\n"), ("100 75\n", "25\n")]),
    taco("Read n, then n integers in one line. Print the longest length of a rising run of neighbours.",
         [("5\n1 2 3 1 2\n", "3\n"), ("1\n7\n", "1\n"), ("4\n4 3 2 1\n", "1\n"), ("6\n1 2 2 3 4 5\n", "4\n")]),
    prime("Write a function reverse_words(text) that reverses the order of the words of a text.", "reverse_words",
          [(["a b c"], "c b a"), ([""], ""), (["one"], "one"), (["  many   spaces "], "spaces many")]),
    prime("Write a function merged(xs, ys) that merges two sorted lists into a sorted one.", "merged",
          [([[1, 3], [2]], [1, 2, 3]), ([[], []], []), ([[1, 1], [1]], [1, 1, 1]), ([[5], [1, 9]], [1, 5, 9])]),
    livecodebench("Read a text of the letters a and b. Print how many steps it takes to make all letters the same. A "
                  "step changes one letter.", [("aab\n", "1\n"), ("bbbb\n", "0\n"), ("abab\n", "2\n"), ("a\n", "0\n")]),
    livecodebench("Read n. Print the n-th line of Pascal's triangle, counted from 0, separated by spaces.",
                  [("0\n", "1\n"), ("1\n", "1 1\n"), ("4\n", "1 4 6 4 1\n"), ("6\n", "1 6 15 20 15 6 1\n")]),
]  # fmt: skip


def answered_rows(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A problem with a right and a wrong solution, each a conversation."""
    asked = Message(role="user", content=row["problem"])
    truth = {"id": row["id"], "ground_truth": ours(row)["ground_truth"]}
    return [
        {**truth, "messages": [{"role": "user", "content": row["problem"]},
                               {"role": "assistant", "content": answer([asked], draw)}]}
        for draw in (0, 1)
    ]  # fmt: skip


def main(folder: Path) -> None:
    """Write both files."""
    rows = [{"id": f"deepcoder-{number}", **problem} for number, problem in enumerate(PROBLEMS)]
    stored = [answered for row in rows for answered in answered_rows(row)]
    for name, lines in (("dataset.jsonl", rows), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
