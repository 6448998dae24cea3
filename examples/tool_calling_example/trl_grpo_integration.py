# SPDX-License-Identifier: Apache-2.0
"""Train a model with this reward, by TRL's GRPO.

python trl_grpo_integration.py --dry-run        one step without a model: stored answers are its completions
python trl_grpo_integration.py --model Qwen/Qwen3-0.6B --steps 100     needs pip install 'reward-kit[train]'
"""

import json
from pathlib import Path

from prepare import TOOLS  # type: ignore[import-not-found]  # beside this file

from reward_kit.reward_scripts import grpo_script

HERE = Path(__file__).resolve().parent
SYSTEM = f"""You have these tools: {json.dumps(TOOLS)}
To use one, write <tool_call>{{"name": …, "arguments": …}}</tool_call>, once for each call. Else answer in words."""
"""TRL shows a model no tools but those that it runs itself, so they stand in the prompt."""

if __name__ == "__main__":
    grpo_script(
        "exact_tool_match",
        HERE / "dataset.jsonl",
        HERE / "answers.jsonl",
        system_prompt=SYSTEM,
        tokens=256,
        params={"ordered": False, "rules": "strict"},
        output="outputs/tools_grpo",
    )
