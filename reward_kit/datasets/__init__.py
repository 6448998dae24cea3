# SPDX-License-Identifier: Apache-2.0
"""Datasets: the only place where rows are interpreted."""

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
