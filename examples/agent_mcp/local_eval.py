# SPDX-License-Identifier: Apache-2.0
"""Evaluate from Python: `python local_eval.py`, or with a model of yours, `--model openai/gpt-6-luna`."""

import sys
from pathlib import Path

from reward_kit import evaluate
from reward_kit.reward_scripts import answering_options, errors_in_a_sentence

HERE = Path(__file__).resolve().parent
WAREHOUSE = f"{HERE / 'warehouse.py'}:Warehouse"


@errors_in_a_sentence()
def main() -> None:
    """Have each order filled some times, and print how many times the desk has what was asked for."""
    options = answering_options(__doc__, n=2).parse_args()
    result = evaluate(
        HERE / "dataset.jsonl",
        f"{HERE / 'reward.py'}:delivered",
        agent={
            "environment": "reward_kit.agent:McpEnvironment",
            "max_turns": 10,
            "params": {
                "command": [sys.executable, "-m", "reward_kit.agent.mcp.server", WAREHOUSE, "--facts"],
                "sandbox": "none",
                "start": [{"tool": "fill", "columns": {"shelves": "stock"}}],
                "facts": {"warehouse": {"tool": "world_facts"}},
                "deterministic": True,
            },
        },
        system_prompt="You work in a warehouse. Use your tools. When the order is on the desk, say so.",
        model=options.model,
        n=options.n,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    result.raise_for_failures()
    print(f"delivered: {result.mean_score:.3f} of {result.judged} orders")
    print(f"pass@{options.n}: {result.pass_at(options.n).value:.3f}")


if __name__ == "__main__":
    main()
