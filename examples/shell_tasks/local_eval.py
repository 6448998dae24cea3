# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Run some commands per task in sandboxes, and print how many did their work."""
    options = answering_options(__doc__, n=3).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        "shell_reward",
        dataset={"column_mapping": {"user_query": "task"}},
        model=options.model,
        n=options.n,
        max_tokens=800,
        output_dir=options.output,
        system_prompt="Solve the task with one bash command. Answer with the command and nothing else.",
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    print(f"did their work: {result.mean_score:.3f} of {result.judged} commands")


if __name__ == "__main__":
    main()
