# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path
from statistics import mean

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Judge three answers per request, and print the share of right ones for each kind of request."""
    options = answering_options(__doc__, n=3).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        "exact_tool_match",
        params={"ordered": False, "rules": "strict"},
        model=options.model,
        n=options.n,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    scores: dict[str, list[float]] = {}
    for row in result.rows():
        scores.setdefault(row["columns"]["kind"], []).append(row["evaluation_score"])
    for kind, found in scores.items():
        print(f"{kind}: {mean(found):.3f} of {len(found)} answers are right")


if __name__ == "__main__":
    main()
