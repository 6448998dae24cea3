# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path

from columns import DATASET  # type: ignore[import-not-found]  # beside this file

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Judge the stored solutions, then those of a model, and print how many are right."""
    options = answering_options(__doc__, n=4).parse_args()
    stored = evaluate(HERE / "dataset.jsonl", "math", dataset={**DATASET, "response_column": "generations"})
    print(f"stored solutions: {stored.mean_score:.3f} of {stored.judged} are right")
    result = evaluate(
        HERE / "dataset.jsonl",
        "math",
        dataset=DATASET,
        model=options.model,
        n=options.n,
        temperature=0.6,
        max_tokens=16384,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    print(f"new solutions: {result.mean_score:.3f} of {result.judged} are right")


if __name__ == "__main__":
    main()
