# SPDX-License-Identifier: Apache-2.0
"""See what the reward says of stored answers, then create it as an evaluator at Fireworks.

python fireworks_preview.py                       judged on this machine; needs no key
python fireworks_preview.py --create served-v1    creates the evaluator served-v1 (needs FIREWORKS_API_KEY)
"""

from pathlib import Path

from reward_kit.reward_scripts import preview_script

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    preview_script(f"{HERE / 'reward.py'}:right_number", HERE / "answers.jsonl", samples=6)
