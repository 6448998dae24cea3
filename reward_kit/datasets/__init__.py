# SPDX-License-Identifier: Apache-2.0
"""Datasets: the only place where rows are interpreted.

A name is imported when it is first used: whoever reads single rows, as servers and trainers do, needs no sources.
"""

from typing import TYPE_CHECKING

from reward_kit.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from reward_kit.datasets.loader import (
        RolloutStream,
        SampleStream,
        load_rollouts,
        load_samples,
        rollouts_from_rows,
        samples_from_rows,
    )
    from reward_kit.datasets.row_ids import content_digest

__all__ = [
    "RolloutStream",
    "SampleStream",
    "content_digest",
    "load_rollouts",
    "load_samples",
    "rollouts_from_rows",
    "samples_from_rows",
]

if not TYPE_CHECKING:
    _LOADER = "reward_kit.datasets.loader"
    _HOMES = {name: _LOADER for name in __all__} | {"content_digest": "reward_kit.datasets.row_ids"}
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)
