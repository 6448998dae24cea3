# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Play some episodes per sample, and print how many end well."""
    options = answering_options(__doc__, n=2).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'reward.py'}:evaluate",
        agent={"environment": f"{HERE / 'shop.py'}:Shop", "max_turns": 12},
        system_prompt=(
            "You work with the SQLite database of a shop. Use the tool to look at its tables and to change them. "
            'In the end write one line "Answer: …" with nothing but the number or the name, or "Answer: done" after a '
            "change."
        ),
        model=options.model,
        n=options.n,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    print(f"right: {result.mean_score:.3f} of {result.judged} episodes")
    print(f"pass@{options.n}: {result.pass_at(options.n).value:.3f}")


if __name__ == "__main__":
    main()
