# SPDX-License-Identifier: Apache-2.0
"""A row of OpenR1-Math-220k as a run wants it."""

from pathlib import Path
from typing import Any

DATASET = {
    "format": "standard",
    "preprocess": [f"{Path(__file__).resolve()}:ours"],
    "id_column": "uuid",
    "prompt_template": "{{ user_query }}\n\nThink step by step, and end with the answer inside \\boxed{}.",
}
"""How the rows are read, for the scripts: the same as in `conf/`."""


def ours(row: dict[str, Any]) -> dict[str, Any] | None:
    """The problem is asked, and its answer is the ground truth. Rows without an answer (proofs) are left out.

    `messages` goes: it ends with a solution, which a model must not see.
    """
    if not row.get("answer") or row["answer"] == "proof":
        return None
    kept = {name: value for name, value in row.items() if name not in ("messages", "solution", "problem", "answer")}
    return {**kept, "user_query": row["problem"], "ground_truth": row["answer"]}
