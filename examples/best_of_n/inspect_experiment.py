# SPDX-License-Identifier: Apache-2.0
"""Say what best-of-N experiments found: `reward-kit inspect` under the name scripts know it by.

python examples/best_of_n/inspect_experiment.py outputs/best_of_n/offline_run.parquet
"""

import sys

from reward_kit.cli import main

if __name__ == "__main__":
    main(["inspect", *sys.argv[1:]])
