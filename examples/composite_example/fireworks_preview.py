# SPDX-License-Identifier: Apache-2.0
"""See what the reward says of stored answers, then create it as an evaluator at Fireworks.

python fireworks_preview.py                     judged on this machine; needs no key
python fireworks_preview.py --create composite-v1    creates the evaluator composite-v1 (needs FIREWORKS_API_KEY)
"""

import argparse
from pathlib import Path

from reward_kit.evaluation import Evaluator

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Preview; create where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--create", metavar="ID", help="create the evaluator at Fireworks under this id")
    parser.add_argument("--hosted", action="store_true", help="have Fireworks' older preview service judge instead")
    options = parser.parse_args()
    evaluator = Evaluator()
    evaluator.load_reward(f"{HERE / 'reward.py'}:evaluate")
    evaluator.preview(HERE / "answers.jsonl", max_samples=5, hosted=options.hosted).display()
    if options.create:
        created = evaluator.create(options.create)
        print(f"Created: {created['name']}")


if __name__ == "__main__":
    main()
