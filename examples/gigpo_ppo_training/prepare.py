# SPDX-License-Identifier: Apache-2.0
"""Make `dataset.jsonl`: `python prepare.py`, or `python prepare.py FOLDER` to write it elsewhere.

The six lakes that `train.py` plays on, as rows of a dataset. They stand for FrozenLake of Gymnasium (`FrozenLake-v1`),
whose ice is slippery; ours is not.
"""

import json
import sys
from pathlib import Path

from reward_kit.utils.module_loader import load_function

HERE = Path(__file__).resolve().parent
GAME = HERE.parent / "agent_frozen_lake" / "lake.py"


def main(folder: Path) -> None:
    """Write the file."""
    rows = [
        {
            "id": sample.id,
            "messages": [turn.model_dump(exclude_none=True) for turn in sample.messages],
            **sample.columns,
        }
        for sample in load_function(f"{GAME}:samples")()
    ]
    (folder / "dataset.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows)} rows written to dataset.jsonl.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
