# SPDX-License-Identifier: Apache-2.0
"""What samples are called in addresses and in reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from reward_kit.analysis.judged_answers import JudgedAnswers

__all__ = ["sample_names"]


def sample_names(answers: JudgedAnswers) -> pa.Array[Any]:
    """Each sample's id, and behind it the split where ids come again in others: `q17@test`."""
    import pyarrow as pa

    ids = answers.query_ids
    if len(ids.unique()) == len(ids):
        return ids
    splits = pa.array(answers.splits).take(answers.query_split)
    both = zip(ids.to_pylist(), splits.to_pylist(), strict=True)
    return pa.array([f"{name}@{split}" for name, split in both], pa.string())
