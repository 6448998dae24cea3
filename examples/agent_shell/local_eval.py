# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent


@errors_in_a_sentence()
def main() -> None:
    """Have each job done some times, and print how many attempts leave the right files."""
    options = answering_options(__doc__, n=3).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'reward.py'}:answered",
        agent={
            "sandbox_tools": ["bash", "read_file", "write_file"],
            "capture": ["answer.txt", "server.ini"],
            "max_turns": 12,
        },
        sandbox={"timeout": 20, "memory_mb": 256},
        system_prompt=(
            "You work in a directory on a Linux machine. Use the tools to do what you are asked. Leave the files that "
            'you find there as they are, unless you are asked to change them. Say "Done." in the end.'
        ),
        model=options.model,
        n=options.n,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    print(f"right: {result.mean_score:.3f} of {result.judged} episodes")
    print(f"pass@{options.n}: {result.pass_at(options.n).value:.3f}")


if __name__ == "__main__":
    main()
