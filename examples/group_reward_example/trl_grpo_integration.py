# SPDX-License-Identifier: Apache-2.0
"""Train a model with this reward, by TRL's GRPO.

python trl_grpo_integration.py --dry-run        one step without a model: stored answers are its completions
python trl_grpo_integration.py --model Qwen/Qwen3-0.6B --steps 100     needs pip install 'reward-kit[train]'
"""

from pathlib import Path

from reward_kit.reward_scripts import grpo_script

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    grpo_script(
        f"{HERE / 'reward.py'}:varied",
        HERE / "dataset.jsonl",
        HERE / "answers.jsonl",
        tokens=32,
        output="outputs/group_grpo",
    )
