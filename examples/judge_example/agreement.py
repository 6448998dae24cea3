# SPDX-License-Identifier: Apache-2.0
"""How far do a judge's verdicts agree with labels? `python agreement.py RUN --label COLUMN`

Prints the share of answers on which both agree, Cohen's kappa (0: no better than chance, 1: always), both with 95 %
intervals, and the answers on which they differ. A tie is no verdict for either side, and is counted beside.
"""

import argparse
import json
from pathlib import Path

from reward_kit.statistics.weighted import DrawnItem, agreement_beyond_chance, weighted_rate

TIE = 0.5


def main() -> None:
    """Read the run's results, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the run's directory")
    parser.add_argument("--label", required=True, help="the column of the dataset with true or false")
    options = parser.parse_args()
    rows = [json.loads(line) for line in (options.run / "results.jsonl").read_text().splitlines()]
    judged = [row for row in rows if row.get("failure") is None]
    decided = [row for row in judged if row["evaluation_score"] != TIE]
    items = [DrawnItem(row["id"], 1.0, row["evaluation_score"] > TIE, row["columns"][options.label]) for row in decided]
    same = weighted_rate((item.cluster, item.weight, item.first == item.second) for item in items)
    kappa = agreement_beyond_chance(items)
    assert same is not None and kappa is not None, "all verdicts are the same: nothing can be said of agreement"
    print(f"{len(rows)} answers, {len(judged)} judged, {len(judged) - len(decided)} ties")
    print(f"agreement {same.value:.3f} (95 % interval {same.low:.3f} to {same.high:.3f})")
    print(f"kappa {kappa.value:.3f} (95 % interval {kappa.low:.3f} to {kappa.high:.3f})")
    differ = [str(item.cluster) for item in items if item.first != item.second]
    print(f"they differ on: {', '.join(differ) or 'none'}")


if __name__ == "__main__":
    main()
