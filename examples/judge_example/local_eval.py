# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or `JUDGE=openai/gpt-6-luna python local_eval.py` with that judge."""

from pathlib import Path
from statistics import mean

from rubric import params  # type: ignore[import-not-found]  # beside this file

from reward_kit import evaluate
from reward_kit.reward_scripts import errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Have the answers in the dataset graded, and print the mean grade of those that people call good, or poor."""
    result = evaluate(HERE / "dataset.jsonl", "judge", params=params())
    rows = list(result.rows())
    for label, good in (("good", True), ("poor", False)):
        grades = [row["evaluation_score"] for row in rows if row["columns"]["good"] is good]
        print(f"{label} answers: mean grade {mean(grades):.3f} of {len(grades)}")


if __name__ == "__main__":
    main()
