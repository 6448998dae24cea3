# SPDX-License-Identifier: Apache-2.0
"""The same run from Python: `python local_eval.py`, or on a Ray cluster, `python local_eval.py --engine ray`."""

from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Judge four answers per sum, and print how many are right."""
    parser = answering_options(__doc__, n=4)
    parser.add_argument("--engine", default="local", choices=["local", "ray"], help="where it runs (%(default)s)")
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
    result.raise_for_failures()
    print(f"right: {result.mean_score:.3f} of {result.judged} answers")


if __name__ == "__main__":
    main()
