# SPDX-License-Identifier: Apache-2.0
"""The same run from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent
GAME = HERE.parent / "agent_frozen_lake"


@errors_in_a_sentence()
def main() -> None:
    """Walk some times over each lake, and print how many walks reach the goal."""
    options = answering_options(__doc__, n=16).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{GAME / 'lake.py'}:reached",
        agent={"environment": f"{GAME / 'lake.py'}:Lake", "max_turns": 12},
        model=options.model,
        n=options.n,
        output_dir=options.output,
        mock={"function_path": f"{GAME / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    print(f"reached the goal: {result.mean_score:.3f} of {result.judged} walks")


if __name__ == "__main__":
    main()
