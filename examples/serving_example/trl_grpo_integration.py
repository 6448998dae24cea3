# SPDX-License-Identifier: Apache-2.0
"""Train a model with this reward, by TRL's GRPO. With REWARD_SERVER=ADDRESS, that server judges.

python trl_grpo_integration.py --dry-run        one step without a model: stored answers are its completions
python trl_grpo_integration.py --model Qwen/Qwen3-0.6B --steps 100     needs pip install 'reward-kit[train]'
"""

import os
from pathlib import Path

from reward_kit.reward_scripts import grpo_script

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    grpo_script(
        os.environ.get("REWARD_SERVER", f"{HERE / 'reward.py'}:right_number"),
        HERE / "dataset.jsonl",
        HERE / "answers.jsonl",
        tokens=48,
        output="outputs/serving_grpo",
    )
