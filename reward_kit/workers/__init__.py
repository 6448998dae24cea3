# SPDX-License-Identifier: Apache-2.0
"""Warm processes that run a Python callable with a deadline, and can be killed.

    async with WorkerPool(factory, size=2, timeout=5.0) as pool:
        outcome = await pool.call(messages, ground_truth="72")     # Done | Raised | TimedOut | Died

`outcomes` holds what a call can come to, `pool` shares calls out, `process` is one worker as the pool sees it, and
`child` is the program that the worker runs. `host` is one such process without a pool, and `forks` what it does where
each who asks is to have a copy of it.
"""

from __future__ import annotations

from reward_kit.workers.outcomes import Died, Done, Outcome, Raised, TimedOut
from reward_kit.workers.pool import WorkerPool

__all__ = ["Died", "Done", "Outcome", "Raised", "TimedOut", "WorkerPool"]
