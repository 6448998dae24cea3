# SPDX-License-Identifier: Apache-2.0
"""A file of JSON lines as the training data of a Hugging Face trainer. The name is inherited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from reward_kit.errors import DatasetError, needs_extra

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["load_jsonl_to_hf_dataset"]

Row = dict[str, Any]


def load_jsonl_to_hf_dataset(
    dataset_path: str,
    transform_fn: Callable[[Row], Row | None] | None = None,
    prompt_column: str = "prompt",
    required_columns: Sequence[str] | None = None,
    dataset_filter_fn: Callable[[Row], bool] | None = None,
) -> Dataset:
    """Read a file of JSON lines into a `Dataset` for a trainer (extra `hf`).

    Each row is first given to `transform_fn`, which returns the new row, or None to drop it. Then `dataset_filter_fn`
    says whether the row stays. A row that stays must have the `prompt_column` and all `required_columns`; one that
    lacks any of them is a `DatasetError`, and so is a line that is not a JSON object.
    """
    with needs_extra("A Hugging Face `Dataset`", "hf"):
        from datasets import Dataset
    from reward_kit.common_utils import load_jsonl

    needed = dict.fromkeys([prompt_column, *(required_columns or [])])  # each name once, in this order
    chosen: list[Row] = []
    for number, read in enumerate(load_jsonl(dataset_path), start=1):
        row = transform_fn(read) if transform_fn else read
        if row is None or (dataset_filter_fn and not dataset_filter_fn(row)):
            continue
        for column in needed:
            if column not in row:
                raise DatasetError(
                    f"Row {number} of {dataset_path!r} has no column {column!r}, only {', '.join(map(repr, row))}. "
                    "Let `transform_fn` add it, or pass the right `prompt_column` and `required_columns`."
                )
        chosen.append(row)
    return Dataset.from_list(chosen)
