# SPDX-License-Identifier: Apache-2.0
"""Have a model answer stored prompts again, and compare the new answers with the old ones, prompt by prompt.

python fireworks_regenerate.py                       with mock_model.py; needs no key
python fireworks_regenerate.py --model fireworks/qwen3-8b    needs FIREWORKS_API_KEY
"""

import argparse
from pathlib import Path

from reward_kit.evaluation import regenerate

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Regenerate, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mock", help="who answers; mock: mock_model.py (default)")
    parser.add_argument("--n", type=int, default=2, help="new answers per prompt (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("outputs/coding_again"), help="(%(default)s)")
    options = parser.parse_args()
    found = regenerate(
        HERE / "answers.jsonl",
        f"{HERE / 'reward.py'}:evaluate",
        model=options.model,
        n=options.n,
        max_tokens=800,
        output_dir=options.output,
        mock={"function_path": f"{HERE / 'mock_model.py'}:answer"},
    )
    print(f"old answers: {found.old.mean_score:.3f} right, new answers: {found.new.mean_score:.3f} right")
    print(found.conclusion)


if __name__ == "__main__":
    main()
