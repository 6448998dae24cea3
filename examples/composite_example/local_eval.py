# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path
from statistics import mean

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Judge some answers per problem, and print the mean of the score and of each part."""
    options = answering_options(__doc__, n=2).parse_args()
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
