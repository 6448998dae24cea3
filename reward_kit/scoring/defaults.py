# SPDX-License-Identifier: Apache-2.0
"""The bounds that hold where neither the reward nor its caller says otherwise: the same in runs and in trainers."""

from __future__ import annotations

__all__ = [
    "CONCURRENCY", "LOADING_SECONDS", "LOOP_PATIENCE_SECONDS", "MOST_TRAINER_WORKERS", "QUEUED_PER_WORKER",
    "STARTING_SECONDS", "STEP_SECONDS", "TIMEOUT_SECONDS",
]  # fmt: skip

TIMEOUT_SECONDS = 60.0
"""That one call of a reward may take."""
CONCURRENCY = 256
"""Calls of an asynchronous reward at a time, unless they need this machine's cores."""
QUEUED_PER_WORKER = 256
"""Calls of a run that are kept pending for each worker, so that they can be sent in chunks worth their while."""
LOADING_SECONDS = 30.0
"""That a reward may take to be imported, even where its calls must be quicker."""
STARTING_SECONDS = 30.0
"""That a worker process may take until it imports the reward."""
LOOP_PATIENCE_SECONDS = 10.0
"""That an asynchronous reward may keep everybody waiting before that is said."""
STEP_SECONDS = 600.0
"""That a trainer's step may take: well under the half hour after which a stalled rank ends a distributed training."""
MOST_TRAINER_WORKERS = 8
"""Worker processes of a trainer."""
