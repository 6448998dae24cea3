# SPDX-License-Identifier: Apache-2.0
"""Evaluate shell tasks in two phases, generation and execution: `reward-kit shell` under the name scripts know it by.

python examples/shell_tasks/generation_separated.py --model mock --dataset examples/shell_tasks/dataset.jsonl
"""

import sys

from reward_kit.cli import main

if __name__ == "__main__":
    main(["shell", *sys.argv[1:]])
