# SPDX-License-Identifier: Apache-2.0
"""Have a model answer stored prompts again, and compare the new answers with the old ones, prompt by prompt.

python fireworks_regenerate.py                               with mock_model.py; needs no key
python fireworks_regenerate.py --model fireworks/qwen3-8b    needs FIREWORKS_API_KEY
"""

from pathlib import Path

from reward_kit.reward_scripts import regenerate_script

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    regenerate_script(
        "math_reward",
        HERE / "answers.jsonl",
        mock=f"{HERE / 'mock_model.py'}:answer",
        n=2,
        output="outputs/sums_again",
    )
