# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path

from columns import DATASET  # type: ignore[import-not-found]  # beside this file

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Judge some answers per problem in the sandbox, and print how many problems they solve."""
    options = answering_options(__doc__, n=2).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        "deepcoder_code",
        params={"timeout": 6},
        dataset=DATASET,
        model=options.model,
        n=options.n,
        temperature=0.6,
        max_tokens=32768,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    for k in (1, options.n):
        print(f"pass@{k}: {result.pass_at(k).value:.3f}")


if __name__ == "__main__":
    main()
