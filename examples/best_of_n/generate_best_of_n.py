# SPDX-License-Identifier: Apache-2.0
"""Run a best-of-N experiment: `reward-kit best-of-n` under the name scripts know it by.

python examples/best_of_n/generate_best_of_n.py --config examples/best_of_n/experiments/offline.yaml
"""

import sys

from reward_kit.cli import main

if __name__ == "__main__":
    main(["best-of-n", *sys.argv[1:]])
