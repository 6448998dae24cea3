# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

The problems stand for GSM8K (`openai/gsm8k`, 8,792 of them). `convert_dataset.py` brings a file of that set into the
shape of ours, and `dataset=gsm8k` reads it from Hugging Face.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent


class Problem(NamedTuple):
    """A problem, how it is calculated, and the number that comes out."""

    id: str
    question: str
    calculation: str
    result: int


SHOWN = [
    Problem("pens", "Ann has 2 pens and buys 6 more. How many pens does she have?", "2 + 6", 8),
    Problem("wheels", "There are 4 cars and each has 4 wheels. How many wheels are there?", "4 * 4", 16),
]
"""Two worked examples that open every conversation: without them, a very small model rambles."""

PROBLEMS = [
    Problem("apples", "Tom has 3 apples and finds 4 more. How many apples does he have?", "3 + 4", 7),
    Problem("eggs", "A box holds 6 eggs. How many eggs do 3 boxes hold?", "3 * 6", 18),
    Problem("sum-8-7", "What is 8 + 7?", "8 + 7", 15),
    Problem("difference-14-6", "What is 14 - 6?", "14 - 6", 8),
    Problem("product-6-7", "What is 6 times 7?", "6 * 7", 42),
    Problem("quotient-20-4", "What is 20 divided by 4?", "20 / 4", 5),
    Problem("half-18", "What is half of 18?", "18 / 2", 9),
    Problem("books", "A book costs 5 dollars. How many dollars do 4 books cost?", "4 * 5", 20),
    Problem("pages", "Ben reads 10 pages a day. How many pages does he read in 5 days?", "5 * 10", 50),
    Problem("cats", "A cat has 4 legs. How many legs do 5 cats have?", "5 * 4", 20),
    Problem("weeks", "How many days are in 2 weeks?", "2 * 7", 14),
    Problem("hours", "How many minutes are in 3 hours?", "3 * 60", 180),
    Problem("dollars", "Leo had 20 dollars and spent 8. How many dollars are left?", "20 - 8", 12),
    Problem("marbles", "There are 7 red and 6 blue marbles in a bag. How many marbles are there?", "7 + 6", 13),
    Problem("sequence", "What is the next number: 2, 4, 6, 8?", "8 + 2", 10),
    Problem("sheep", "A farmer has 15 sheep and buys 10 more. How many sheep does he have?", "15 + 10", 25),
    Problem("balloons", "Each of 6 children has 2 balloons. How many balloons are there?", "6 * 2", 12),
    Problem("percent", "What is 10% of 50?", "50 / 10", 5),
    Problem("square-5", "What is 5 squared?", "5 * 5", 25),
    Problem("root-16", "What is the square root of 16?", "16 / 4", 4),
    Problem("perimeter", "A square has sides of length 4. What is its perimeter?", "4 * 4", 16),
    Problem("area", "A rectangle is 6 long and 3 wide. What is its area?", "6 * 3", 18),
    Problem("cents", "How many cents are in 2 dollars?", "2 * 100", 200),
    Problem("running", "Nina ran 3 km on Monday and 5 km on Tuesday. How many km did she run in total?", "3 + 5", 8),
    Problem("dozen", "A dozen eggs is 12. How many eggs are in 3 dozen?", "3 * 12", 36),
    Problem(
        "cards", "Jack has twice as many cards as Jill. Jill has 9 cards. How many cards does Jack have?", "2 * 9", 18
    ),
    Problem("spiders", "A spider has 8 legs. How many legs do 3 spiders have?", "3 * 8", 24),
    Problem("days", "How many hours are in 2 days?", "2 * 24", 48),
    Problem("shells", "Zoe has 8 shells and finds 5 more. How many shells does she have?", "8 + 5", 13),
    Problem("tickets", "A ticket costs 6 dollars. How many dollars do 5 tickets cost?", "5 * 6", 30),
    Problem("savings", "Omar saves 3 dollars a week. How many dollars does he have after 8 weeks?", "8 * 3", 24),
    Problem("cookies", "There were 10 cookies and 4 were eaten. How many cookies are left?", "10 - 4", 6),
]


def worked(problem: Problem) -> str:
    """The answer that shows its work."""
    return f"{problem.calculation} = {problem.result}"


def dataset_row(problem: Problem) -> dict[str, Any]:
    """A problem as a conversation that waits for its answer."""
    turns = []
    for shown in SHOWN:
        turns += [{"role": "user", "content": shown.question}, {"role": "assistant", "content": worked(shown)}]
    turns.append({"role": "user", "content": problem.question})
    return {"id": problem.id, "messages": turns, "ground_truth": str(problem.result)}


def answered_rows(problem: Problem, number: int) -> list[dict[str, Any]]:
    """A problem with four answers, of which one to four are right: as a weak model would have given them."""
    wrong = f"{problem.calculation} = {problem.result + 1}"
    answers = [worked(problem), f"It is {problem.result}.", worked(problem), worked(problem)]
    for place in range(1, 1 + number % 4):
        answers[place] = wrong
    row = dataset_row(problem)
    return [{**row, "messages": [*row["messages"], {"role": "assistant", "content": text}]} for text in answers]


def main(folder: Path) -> None:
    """Write both files."""
    rows = [dataset_row(problem) for problem in PROBLEMS]
    stored = [row for number, problem in enumerate(PROBLEMS[:8]) for row in answered_rows(problem, number)]
    for name, lines in (("dataset.jsonl", rows), ("answers.jsonl", stored)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
