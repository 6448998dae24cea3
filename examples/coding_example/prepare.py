# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl` and `answers.jsonl` from the families in `code_families.py`.

    python prepare.py [FOLDER]      write both files, here or into a folder
    python prepare.py --check [N]   run all right and wrong solutions, or those of N problems, in the sandbox

Right outputs are what the right solution gives, so each problem has at least one solution. The problems stand for MBPP
(`google-research-datasets/mbpp`, functions) and APPS (`codeparrot/apps`, programs); both are read as they are.
"""

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from code_families import Problem, problems  # type: ignore[import-not-found]  # beside this file

HERE = Path(__file__).resolve().parent
FUNCTION = "Give the whole function in one Python code block."
PROGRAM = "Give the whole Python program in one code block."


def output_of(problem: Problem, given: Any) -> str:
    """What the right solution gives for an input."""
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if problem.entry_point is not None:
            exec(problem.right, names)
            return json.dumps(names[problem.entry_point](*given))
        before, sys.stdin = sys.stdin, io.StringIO(given)
        try:
            exec(problem.right, names)
        finally:
            sys.stdin = before
    return printed.getvalue()


def input_of(problem: Problem, given: Any) -> str:
    """An input as tests write it: one JSON value per line for a function, the text itself for a program."""
    return given if problem.entry_point is None else "\n".join(map(json.dumps, given))


def dataset_row(problem: Problem) -> dict[str, Any]:
    """A problem with its tests. They are JSON text, which every table can hold."""
    tests = [
        {"input": input_of(problem, given), "expected_output": output_of(problem, given)} for given in problem.inputs
    ]
    return {
        "id": problem.id,
        "user_query": f"{problem.statement} {PROGRAM if problem.entry_point is None else FUNCTION}",
        "ground_truth": json.dumps(tests),
        "entry_point": problem.entry_point,
        "family": problem.family,
    }


def said(code: str) -> str:
    """A solution as a model writes it."""
    return f"Here is the solution:\n\n```python\n{code}\n```"


def answered_rows(row: dict[str, Any], solutions: list[str]) -> list[dict[str, Any]]:
    """A problem with answers to it, each a conversation."""
    asked = {"role": "user", "content": row["user_query"]}
    rest = {name: value for name, value in row.items() if name != "user_query"}
    return [{**rest, "messages": [asked, {"role": "assistant", "content": said(code)}]} for code in solutions]


def stored_answers() -> list[dict[str, Any]]:
    """Four answers to the first problem of every second family: the right solution twice, and the wrong ones."""
    families = {problem.family for problem in problems()}
    return [
        row for problem in problems()[: len(families) : 2]
        for row in answered_rows(dataset_row(problem), [problem.right, *problem.wrong, problem.right])
    ]  # fmt: skip


def check(most: int | None) -> None:
    """Judge every solution in the sandbox: right ones must pass all tests, and wrong ones must not."""
    from reward_kit import evaluate

    known = problems()[:most]
    rows = [row for one in known for row in answered_rows(dataset_row(one), [one.right, *one.wrong])]
    result = evaluate(rows, f"{HERE / 'reward.py'}:evaluate")
    result.raise_for_failures()
    scores: dict[str, list[float]] = {}
    for row in result.rows():
        scores.setdefault(row["id"], []).append(row["evaluation_score"])
    bad = [name for name, (right, *wrong) in scores.items() if right != 1.0 or any(wrong)]
    if bad:
        sys.exit(f"The solutions of these problems are not what they should be: {', '.join(bad)}.")
    print(f"{len(known)} problems: each right solution passes, and each of {len(rows) - len(known)} wrong ones fails.")


def main(folder: Path) -> None:
    """Write both files."""
    for name, lines in (("dataset.jsonl", map(dataset_row, problems())), ("answers.jsonl", stored_answers())):
        rows = list(lines)
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        print(f"{len(rows)} rows written to {name}.")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
