# SPDX-License-Identifier: Apache-2.0
"""Do our verdicts agree with those that the dataset stores? `python compare_verdicts.py outputs/openr1_solutions`"""

import json
import sys
from pathlib import Path


def main(run: Path) -> None:
    """Compare each verdict with the flag of the same solution, and print where they differ."""
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    judged = [row for row in rows if row.get("failure") is None]
    same = 0
    for row in judged:
        theirs = row["columns"]["correctness_math_verify"][row["response_index"]]
        ours = row["evaluation_score"] == 1.0
        same += ours == theirs
        if ours != theirs:
            print(f"{row['id']}, solution {row['response_index']}: we say {ours}, Math-Verify said {theirs}")
    print(f"{same} of {len(judged)} verdicts agree; {len(rows) - len(judged)} solutions could not be judged")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
