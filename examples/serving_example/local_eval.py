# SPDX-License-Identifier: Apache-2.0
"""The same run from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`.

A server is started for the run, unless REWARD_SERVER names one that runs already.
"""

from pathlib import Path

from served import served  # type: ignore[import-not-found]  # beside this file

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Have the server judge four answers per product, and print how many are right."""
    options = answering_options(__doc__, n=4).parse_args()
    with served() as address:
        result = evaluate(
            HERE / "dataset.jsonl",
            address,
            model=options.model,
            n=options.n,
            output_dir=options.output,
            mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
        )
        result.raise_for_failures()
    print(f"right: {result.mean_score:.3f} of {result.judged} answers")


if __name__ == "__main__":
    main()
