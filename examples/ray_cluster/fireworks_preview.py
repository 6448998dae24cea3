# SPDX-License-Identifier: Apache-2.0
"""See what the reward says of stored answers, then create it as an evaluator at Fireworks.

python fireworks_preview.py                    judged on this machine; needs no key
python fireworks_preview.py --create ray-v1    creates the evaluator ray-v1 (needs FIREWORKS_API_KEY)
"""

from pathlib import Path

from reward_kit.reward_scripts import preview_script

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    preview_script(f"{HERE / 'reward.py'}:mentions_the_answer", HERE / "answers.jsonl", samples=8)
