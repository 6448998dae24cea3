# SPDX-License-Identifier: Apache-2.0
"""The rewards that the benchmarks run; loaded by path, as a user's are."""

from __future__ import annotations

import time
from itertools import repeat
from typing import Any

from reward_kit import Message, reward_function

__all__ = ["burn", "busy", "calls", "contains_answer", "contains_answer_sync", "spin", "stamped"]

calls: list[float] = []
"""When `stamped` was called, by `time.perf_counter`."""


@reward_function
async def contains_answer(messages: list[Message], ground_truth: str, **kwargs: Any) -> float:
    """A trivial asynchronous reward."""
    return 1.0 if ground_truth in messages[-1].text else 0.0


@reward_function
async def stamped(messages: list[Message], ground_truth: str, **kwargs: Any) -> float:
    """The same, which notes when it is called."""
    calls.append(time.perf_counter())
    return 1.0 if ground_truth in messages[-1].text else 0.0


def contains_answer_sync(messages: list[Message], ground_truth: str) -> float:
    """A trivial synchronous reward; undecorated, so that it can be called bare."""
    return 1.0 if ground_truth in messages[-1].text else 0.0


def burn(messages: list[Message], **kwargs: Any) -> float:
    """A synchronous reward that takes 5 ms of processor time, whatever else goes on."""
    end = time.process_time() + 0.005
    while time.process_time() < end:
        spin(100)
    return float(len(messages) > 0)


def busy(messages: list[Message], steps: int) -> float:
    """A synchronous reward that computes for as long as `steps` take."""
    return float(spin(steps) >= 0)


def spin(steps: int) -> int:
    """Keep one core busy, at the same cost in every process: no step allocates, so the heap's state is of no matter."""
    state = 1
    for _ in repeat(None, steps):
        state = (state * 3 + 1) & 63
    return state
