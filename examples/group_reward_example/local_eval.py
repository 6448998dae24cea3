# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path
from statistics import mean

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Judge the six answers to a number together, and print how many are right and how many are the only one."""
    options = answering_options(__doc__, n=6).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'reward.py'}:varied",
        model=options.model,
        n=options.n,
        temperature=1.0,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    metrics = [row["evaluation_metrics"] for row in result.rows()]
    print(f"score: {result.mean_score:.3f}")
    for name in ("right", "only_one"):
        print(f"{name}: {mean(one[name]['score'] for one in metrics):.3f} of {len(metrics)} answers")


if __name__ == "__main__":
    main()
