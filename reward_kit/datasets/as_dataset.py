# SPDX-License-Identifier: Apache-2.0
"""Rows as a Hugging Face `Dataset`: the loader of the older package, under its names.

Configs name these functions as `_target_`, and scripts call them. A run does not: it reads samples, in `loader`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from reward_kit.config_models import DatasetConfig, validated
from reward_kit.datasets.columns import CONTENT, USER_TURN
from reward_kit.datasets.feed import Feed
from reward_kit.datasets.rows import BadRows
from reward_kit.datasets.sources import open_source
from reward_kit.errors import needs_extra
from reward_kit.inherited_config import not_passed_on, remark, take
from reward_kit.models import Sample

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["load_and_process_dataset", "load_derived_dataset"]

_log = logging.getLogger(__name__)


def load_and_process_dataset(
    source_type: str | None = None,
    path_or_name: str | None = None,
    split: str | None = None,
    config_name: str | None = None,
    data_files: Any = None,
    max_samples: int | None = None,
    column_mapping: Mapping[str, str | None] | None = None,
    preprocessing_steps: Sequence[str] | None = None,
    **settings: Any,
) -> Dataset:
    """The rows of a file or of a Hugging Face dataset, renamed and preprocessed, as a `Dataset`.

    Further `settings` are those of the config's `dataset`. Those that never had an effect are passed over. Of
    `hf_extra_load_params` the `revision` counts; a warning names the rest.
    """
    given = {
        "source_type": source_type, "path_or_name": path_or_name, "split": split, "config_name": config_name,
        "data_files": data_files, "max_samples": max_samples, "column_mapping": dict(column_mapping or {}),
        "preprocessing_steps": list(preprocessing_steps or []), **settings,
    }  # fmt: skip
    config = _config(given)
    rows = Feed(config, open_source).rows(BadRows(skip=config.on_bad_row == "skip"))
    shown = ({name: value for name, value in row.columns.items() if name not in _HIDDEN} for row in rows)
    return _dataset(shown, config.max_samples)


def load_derived_dataset(
    base_dataset: Mapping[str, Any],
    system_prompt: str | None = None,
    output_format: str = "evaluation_format",
    transformations: Sequence[Any] = (),
    derived_column_mapping: Mapping[str, str] | None = None,
    derived_max_samples: int | None = None,
    **settings: Any,
) -> Dataset:
    """The rows of a derived dataset as prompts: `id`, `user_query`, `ground_truth_for_eval`, and every other column.

    `base_dataset` are the settings of the dataset it is made from.
    """
    from reward_kit.datasets.loader import load_samples  # which has these functions among its names

    given = {
        "base_dataset": base_dataset, "system_prompt": system_prompt, "output_format": output_format,
        "transformations": list(transformations), "derived_column_mapping": dict(derived_column_mapping or {}),
        "derived_max_samples": derived_max_samples, **settings,
    }  # fmt: skip
    config = _config(given)
    return _dataset(map(_prompt, load_samples(config)), config.max_samples)


def _prompt(sample: Sample) -> dict[str, Any]:
    """A sample as a row of the older package's prompts."""
    first, last = sample.messages[0], sample.messages[-1]
    system = {"system_prompt": first.text} if first.role == "system" else {}
    asked = {"id": sample.id, "user_query": last.text, "ground_truth_for_eval": sample.ground_truth}
    return {**sample.columns, **asked, **system}


_HIDDEN = (USER_TURN, CONTENT)


def _config(given: Mapping[str, Any]) -> DatasetConfig:
    taken = take({"dataset": {name: value for name, value in given.items() if value is not None}})
    if lost := not_passed_on(taken.ignored):
        _log.warning(remark(lost))
    return validated(DatasetConfig, taken.values["dataset"], "The dataset")


def _dataset(rows: Iterable[Mapping[str, Any]], limit: int | None) -> Dataset:
    with needs_extra("A Hugging Face `Dataset`", "hf"):
        from datasets import Dataset
    return Dataset.from_list(list(islice(rows, limit)))
