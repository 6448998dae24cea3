# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

import argparse
from pathlib import Path

from reward_kit import evaluate

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Judge four answers per problem, and print how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mock", help="who answers; mock: mock_model.py (default)")
    parser.add_argument("--n", type=int, default=4, help="answers per problem (%(default)s)")
    parser.add_argument("--output", type=Path, help="a directory to keep everything in; run again to go on")
    options = parser.parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'main.py'}:evaluate",
        model=options.model,
        n=options.n,
        output_dir=options.output,
        system_prompt="Write the calculation and its result.",
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    print(f"right: {result.mean_score:.3f} of {result.judged} answers")
    print(f"pass@{options.n}: {result.pass_at(options.n).value:.3f}")


if __name__ == "__main__":
    main()
