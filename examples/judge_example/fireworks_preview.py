# SPDX-License-Identifier: Apache-2.0
"""See what the reward says of stored answers, then create it as an evaluator at Fireworks.

python fireworks_preview.py                      judged on this machine; needs no key
python fireworks_preview.py --create judge-v1    creates the evaluator judge-v1 (needs FIREWORKS_API_KEY)

The judge is mock_model.py, or the model that the variable JUDGE names. At Fireworks it must be a real one:

JUDGE=fireworks/qwen3-8b python fireworks_preview.py --create judge-v1
"""

from pathlib import Path

from rubric import params  # type: ignore[import-not-found]  # beside this file

from reward_kit.reward_scripts import preview_script

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    preview_script("judge", HERE / "answers.jsonl", samples=6, params=params())
