# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Judge four answers per problem, and print how many are right."""
    options = answering_options(__doc__, n=4).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'main.py'}:evaluate",
        model=options.model,
        n=options.n,
        output_dir=options.output,
        system_prompt="Write the calculation and its result.",
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    print(f"right: {result.mean_score:.3f} of {result.judged} answers")
    print(f"pass@{options.n}: {result.pass_at(options.n).value:.3f}")


if __name__ == "__main__":
    main()
