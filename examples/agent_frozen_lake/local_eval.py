# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Walk some times over each lake, and print how many walks reach the goal."""
    options = answering_options(__doc__, n=8).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'reward.py'}:crossed",
        agent={"environment": f"{HERE / 'lake.py'}:Lake", "max_turns": 24},
        model=options.model,
        n=options.n,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    print(f"reached the goal: {result.mean_score:.3f} of {result.judged} walks")
    print(f"pass@{options.n}: {result.pass_at(options.n).value:.3f}")


if __name__ == "__main__":
    main()
