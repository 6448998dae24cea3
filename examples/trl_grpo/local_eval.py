# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or the model before training, `python local_eval.py --model local`."""

from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Judge an answer to each sum that is held out, and print how many are right."""
    options = answering_options(__doc__).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        "math_reward",
        model=options.model,
        n=options.n,
        temperature=0,
        max_tokens=32,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    print(f"right: {result.mean_score:.3f} of {result.judged} answers")


if __name__ == "__main__":
    main()
