# SPDX-License-Identifier: Apache-2.0
"""Train a model with this reward, by TRL's GRPO.

python trl_grpo_integration.py --dry-run        one step without a model: stored answers are its completions
python trl_grpo_integration.py --model Qwen/Qwen3-0.6B --steps 100     needs pip install 'reward-kit[train]'
"""

from pathlib import Path

from reward_kit.config_models import DatasetConfig
from reward_kit.reward_scripts import grpo_script

HERE = Path(__file__).resolve().parent
TEXTS = 11
"""The rows of the splits math and code, which come first. In tool_calling, a model has to be shown its tools."""

if __name__ == "__main__":
    grpo_script(
        f"{HERE / 'reward.py'}:evaluate",
        DatasetConfig(path_or_name=str(HERE / "dataset.jsonl"), format="nemotron", max_samples=TEXTS),
        HERE / "answers.jsonl",
        output="outputs/best_of_n_grpo",
    )
