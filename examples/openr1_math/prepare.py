# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

Ten problems of ours in the shape of `open-r1/OpenR1-Math-220k` (93,733 problems in its default part). A row there holds
a problem, its answer, and solutions of a model, each with a flag that says whether Math-Verify found it right.
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

PROBLEMS = [
    ("Solve $2x + 6 = 20$ for $x$.", "7", "2x = 14", r"x = 7", r"x = 13"),
    ("What is the area of a circle with radius 3?", r"9\pi", "The area is \\pi r^2", r"9\pi", r"6\pi"),
    ("Factor $x^2 - 9$.", "(x-3)(x+3)", "A difference of squares", r"(x+3)(x-3)", r"(x-3)^2"),
    ("Compute $\\frac{1}{3} + \\frac{1}{6}$.", r"\frac{1}{2}", "The common denominator is 6", r"0.5", r"\frac{2}{9}"),
    ("What is $\\sqrt{72}$ in simplest form?", r"6\sqrt{2}", "72 = 36 \\cdot 2", r"6\sqrt{2}", r"2\sqrt{6}"),
    ("Solve $x^2 = 16$.", r"x = \pm 4", "Both signs work", r"\pm 4", r"4"),
    ("For which $x$ is $x + 2 > 5$?", r"(3, \infty)", "Subtract 2", r"x > 3", r"x \geq 3"),
    ("What is the sum of the first 50 odd numbers?", "2500", "It is 50^2", r"2500", r"2550"),
    ("What is $7! / 5!$?", "42", "7 \\cdot 6", r"42", r"7"),
    ("What is the slope of $3x + 2y = 8$?", r"-\frac{3}{2}", "y = -\\frac{3}{2}x + 4", r"-1.5", r"\frac{3}{2}"),
]
"""The problem, the answer, a thought, and the last word of a right and of a wrong solution."""


def solution(thought: str, last: str) -> str:
    """A solution as a reasoning model writes it."""
    return f"<think>\n{thought}.\n</think>\n\n{thought}, so the answer is $\\boxed{{{last}}}$."


def row(number: int, problem: tuple[str, str, str, str, str]) -> dict[str, Any]:
    """A problem with a right and a wrong solution, in the columns of the original."""
    asked, answer, thought, right, wrong = problem
    flags = [number % 2 == 0, number % 2 == 1]
    generations = [solution(thought, right if flag else wrong) for flag in flags]
    return {
        "problem": asked,
        "solution": f"{thought}.",
        "answer": answer,
        "problem_type": "Algebra",
        "question_type": "math-word-problem",
        "source": "ours",
        "uuid": f"ours-{number:02}",
        "is_reasoning_complete": [True, True],
        "generations": generations,
        "correctness_math_verify": flags,
        "correctness_llama": None,
        "finish_reasons": None,
        "correctness_count": 1,
        "messages": [
            {"role": "user", "content": asked},
            {"role": "assistant", "content": generations[flags.index(True)]},
        ],
    }


def answered_rows(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A problem with its solutions, each a conversation."""
    asked = row["messages"][0]
    return [
        {"id": row["uuid"], "ground_truth": row["answer"],
         "messages": [asked, {"role": "assistant", "content": solved}]}
        for solved in row["generations"]
    ]  # fmt: skip


def main(folder: Path) -> None:
    """Write both files."""
    rows = [row(number, problem) for number, problem in enumerate(PROBLEMS)]
    stored = [answered for one in rows for answered in answered_rows(one)]
    for name, lines in (("dataset.jsonl", rows), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
