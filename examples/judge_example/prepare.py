# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl`, `pairs.jsonl` and `answers.jsonl`: `python prepare.py`; with a FOLDER, write them there.

Answers with labels of people: `good` says whether an answer is, `better` whether it is better than the other one. They
stand for sets of human preferences such as `lmarena-ai/arena-human-preference-140k` and `allenai/reward-bench-2`.
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PADDING = " I hope that this helps you. There are many ways to look at this question, and each of them has its merits."

QUESTIONS = [
    ("Why is the sky blue?", "Air scatters blue light more than red light.", "The sky mirrors the sea."),
    ("Why do we have seasons?", "The Earth's axis is tilted.", "The Earth is closer to the Sun in summer."),
    ("What is a prime number?", "A number above 1 that only 1 and itself divide.", "Any odd number."),
    ("Why does ice float?", "Ice is less dense than water.", "Ice is heavier than water."),
    ("What causes tides?", "Mostly the Moon's gravity.", "The wind over the sea."),
    ("How do plants make food?", "By photosynthesis, from light, water and carbon dioxide.", "They eat soil."),
    ("What does DNS do?", "It finds the address of a name.", "It encrypts web pages."),
    ("Why do we hear thunder after lightning?", "Sound is slower than light.", "Thunder starts later."),
    ("What is inflation?", "Prices rise over time.", "A country prints a flag."),
    ("What is a leap year for?", "It keeps the calendar in step with the Sun.", "It makes February fair."),
    ("What does a compiler do?", "It translates source code into a form a machine runs.", "It prints code."),
    ("Why do metals feel cold?", "They conduct heat away from the hand.", "They are always colder."),
]
"""A question, a good answer and a poor one."""


def labelled() -> list[dict[str, Any]]:
    """Each answer alone, with its label. Every third poor answer is long: such answers mislead weak judges."""
    rows = []
    for number, (question, good, poor) in enumerate(QUESTIONS):
        shown = poor + PADDING if number % 3 == 0 else poor
        rows += [
            {"id": f"q{number:02}-good", "user_query": question, "assistant_response": good, "good": True},
            {"id": f"q{number:02}-poor", "user_query": question, "assistant_response": shown, "good": False},
        ]
    return rows


def pairs() -> list[dict[str, Any]]:
    """Each question once, with one answer against the other; `ground_truth` is the other."""
    rows = []
    for number, (question, good, poor) in enumerate(QUESTIONS):
        better = number % 2 == 0
        shown = poor + PADDING if number % 3 == 0 else poor
        first, other = (good, shown) if better else (shown, good)
        rows.append({"id": f"q{number:02}", "user_query": question, "assistant_response": first,
                     "ground_truth": other, "better": better})  # fmt: skip
    return rows


def answered() -> list[dict[str, Any]]:
    """Each question with its good and its poor answer, as conversations: two answers to one prompt."""
    return [
        {"id": f"q{number:02}",
         "messages": [{"role": "user", "content": question}, {"role": "assistant", "content": said}]}
        for number, (question, good, poor) in enumerate(QUESTIONS) for said in (good, poor)
    ]  # fmt: skip


def main(folder: Path) -> None:
    """Write the files."""
    for name, rows in (("dataset.jsonl", labelled()), ("pairs.jsonl", pairs()), ("answers.jsonl", answered())):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        print(f"{len(rows)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
