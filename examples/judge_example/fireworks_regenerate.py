# SPDX-License-Identifier: Apache-2.0
"""Let a model answer stored prompts again, and compare the new answers with the old ones, prompt by prompt.

python fireworks_regenerate.py                               with mock_model.py; needs no key
python fireworks_regenerate.py --model fireworks/qwen3-8b    needs FIREWORKS_API_KEY
"""

from pathlib import Path

from rubric import params  # type: ignore[import-not-found]  # beside this file

from reward_kit.reward_scripts import regenerate_script

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    regenerate_script(
        "judge",
        HERE / "answers.jsonl",
        mock=f"{HERE / 'mock_model.py'}:explain",
        n=2,
        params=params(),
        output="outputs/judge_again",
    )
