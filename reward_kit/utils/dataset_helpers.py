# SPDX-License-Identifier: Apache-2.0
"""`load_jsonl_to_hf_dataset`, at the import path that users of the older package have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from reward_kit.errors import DatasetError, MissingExtraError

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
    """A JSON lines file as a Hugging Face `Dataset`, each row through `transform_fn` (None drops it) and the filter.

    A line that is no object, and a column that is missing in the end, are a `DatasetError`: neither is passed over.
    """
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingExtraError("A Hugging Face `Dataset`", "hf") from error
    from reward_kit.common_utils import load_jsonl

    rows = list(_kept(load_jsonl(dataset_path), transform_fn, dataset_filter_fn))
    columns = {name for row in rows for name in row}
    if rows and (missing := [name for name in (prompt_column, *(required_columns or ())) if name not in columns]):
        raise DatasetError(
            f"{dataset_path!r} has no column {missing[0]!r} after the transformation; there are "
            f"{', '.join(sorted(columns))}. Have `transform_fn` make it, or name another."
        )
    return Dataset.from_list(rows)


def _kept(
    rows: list[Row], transform: Callable[[Row], Row | None] | None, wanted: Callable[[Row], bool] | None
) -> Iterator[Row]:
    for row in rows:
        made = row if transform is None else transform(row)
        if made is not None and (wanted is None or wanted(made)):
            yield made
