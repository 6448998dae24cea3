# SPDX-License-Identifier: Apache-2.0
"""Train a model with this reward, by TRL's GRPO.

python trl_grpo_integration.py --dry-run        one step without a model: stored answers are its completions
python trl_grpo_integration.py --model Qwen/Qwen3-0.6B --steps 100     needs pip install 'reward-kit[train]'
"""

from pathlib import Path

from columns import DATASET  # type: ignore[import-not-found]  # beside this file

from reward_kit.config_models import DatasetConfig
from reward_kit.reward_scripts import grpo_script

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    grpo_script(
        "math",
        DatasetConfig(path_or_name=str(HERE / "dataset.jsonl"), **DATASET),
        HERE / "answers.jsonl",
        tokens=2048,
        output="outputs/openr1_grpo",
    )
