# SPDX-License-Identifier: Apache-2.0
"""The same run from Python: `python local_eval.py`, or on a Ray cluster, `python local_eval.py --engine ray`."""

import argparse
from pathlib import Path

from reward_kit import evaluate

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Judge four answers per sum, and print how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mock", help="who answers; mock: mock_model.py (default)")
    parser.add_argument("--n", type=int, default=4, help="answers per sum (%(default)s)")
    parser.add_argument("--engine", default="local", choices=["local", "ray"], help="where it runs (%(default)s)")
    parser.add_argument("--output", type=Path, help="a directory to keep everything in; run again to go on")
    options = parser.parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'reward.py'}:mentions_the_answer",
        model=options.model,
        n=options.n,
        engine=options.engine,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    print(f"right: {result.mean_score:.3f} of {result.judged} answers")


if __name__ == "__main__":
    main()
