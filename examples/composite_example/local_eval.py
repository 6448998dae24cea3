# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

import argparse
from pathlib import Path
from statistics import mean

from reward_kit import evaluate

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Judge some answers per problem, and print the mean of the score and of each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mock", help="who answers; mock: mock_model.py (default)")
    parser.add_argument("--n", type=int, default=2, help="answers per problem (%(default)s)")
    parser.add_argument("--output", type=Path, help="a directory to keep everything in; run again to go on")
    options = parser.parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'reward.py'}:evaluate",
        model=options.model,
        n=options.n,
        max_tokens=800,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    metrics = [row["evaluation_metrics"] for row in result.rows()]
    print(f"score: {result.mean_score:.3f}")
    for part in ("both_given", "answer", "program"):
        scores = [one[part]["score"] for one in metrics if part in one]
        print(f"{part}: {mean(scores):.3f} of {len(scores)} answers")


if __name__ == "__main__":
    main()
