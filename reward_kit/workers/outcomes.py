# SPDX-License-Identifier: Apache-2.0
"""What a call in a worker can come to."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Died", "Done", "Outcome", "Raised", "TimedOut"]


class Done(NamedTuple):
    """The call ended well: `value` is what the callable returned."""

    value: Any


class Raised(NamedTuple):
    """The callable raised, or its arguments or its result could not travel between the processes."""

    type: str
    """The exception's class name; anything counts, `SystemExit` and `MemoryError` included."""
    message: str
    traceback: str
    """The traceback as text; empty where there is none."""


class TimedOut(NamedTuple):
    """The callable was still running at its deadline, and was killed."""

    seconds: float
    """The time it had."""


class Died(NamedTuple):
    """The process ended under the callable."""

    reason: str
    """How it ended, such as "exited with code 3"; reads on from "the worker"."""


Outcome = Done | Raised | TimedOut | Died
"""What a call can come to."""
