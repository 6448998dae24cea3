# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Judge some answers per problem in the sandbox, and print pass@k with its interval."""
    parser = answering_options(__doc__, n=2)
    parser.add_argument(
        "--problems", type=int, default=21, help="how many of the 201 problems, one of each family first (%(default)s)"
    )
    options = parser.parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'reward.py'}:evaluate",
        dataset={"max_samples": options.problems},
        model=options.model,
        n=options.n,
        max_tokens=800,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    for k in range(1, options.n + 1):
        found = result.pass_at(k)
        print(f"pass@{k}: {found.value:.3f} (95 % interval {found.low:.3f} to {found.high:.3f})")


if __name__ == "__main__":
    main()
