# SPDX-License-Identifier: Apache-2.0
"""Make the data: `python prepare.py`, or `python prepare.py FOLDER` to write them elsewhere.

    dataset.jsonl     64 sums that training never sees: to measure with, before and after
    training.jsonl    256 sums to train on
    answers.jsonl     stored answers to eight of the latter

They stand for sets of harder problems, such as GSM8K (`openai/gsm8k`) or `open-r1/OpenR1-Math-220k`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from sums import Sum, held_out, training  # type: ignore[import-not-found]  # beside this file

HERE = Path(__file__).resolve().parent


def row(one: Sum, number: int) -> dict[str, Any]:
    """A sum as a row of a dataset."""
    messages = [{"role": "user", "content": one.question}]
    return {"id": f"sum-{number:03}", "messages": messages, "ground_truth": one.answer}


def answered_rows(one: Sum, number: int) -> list[dict[str, Any]]:
    """A sum with four answers, of which none to three are right: as the model gives them in its first steps."""
    texts = [f"{one.first} + {one.second} = {int(one.answer) + (place >= number % 4)}" for place in range(4)]
    asked = row(one, number)
    return [{**asked, "messages": [*asked["messages"], {"role": "assistant", "content": text}]} for text in texts]


def main(folder: Path) -> None:
    """Write the files."""
    files = {
        "dataset.jsonl": [row(one, number) for number, one in enumerate(held_out(64))],
        "training.jsonl": [row(one, number) for number, one in enumerate(training(256))],
        "answers.jsonl": [line for number, one in enumerate(training(8)) for line in answered_rows(one, number)],
    }
    for name, lines in files.items():
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{len(lines)} rows written to {name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
