# SPDX-License-Identifier: Apache-2.0
"""GiGPO's advantages: how they grow with the episodes, beside a bare loop that only sums up the same rewards.

The rows are part of `python -m benchmarks agents`. Batches are 512, 1,024 and 2,048 episodes of 50 steps, eight per
prompt.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import pairwise

from benchmarks.report import Row
from benchmarks.scene import interleaved
from reward_kit.agent.credit import Trajectory, gigpo

__all__ = ["rows"]

EPISODES = (512, 1_024, 2_048)
STEPS = 50
PER_PROMPT = 8
STATES = 64
"""Squares of a board on which an episode walks."""
TWICE = 2.3
"""Goal: twice the episodes take at most so many times as long."""


def rows(*, quick: bool) -> list[Row]:
    """Twice as many episodes against once as many."""
    sizes, rounds = ((8, 16, 32), 1) if quick else (EPISODES, 7)
    batches = {size: episodes(size) for size in sizes}
    kinds: dict[str, Callable[[], float]] = {}
    for size, batch in batches.items():
        kinds[f"gigpo {size}"] = lambda batch=batch: timed(lambda: gigpo(batch, mode="mean_std_norm"))  # type: ignore[misc]
        kinds[f"bare {size}"] = lambda batch=batch: timed(lambda: bare_returns(batch))  # type: ignore[misc]
    times = {name: measured.processor for name, measured in interleaved(kinds, rounds).items()}
    found = []
    for less, more in pairwise(sizes):
        first, second = times[f"gigpo {less}"], times[f"gigpo {more}"]
        context = f"{second * 1e3:.0f} ms of {first * 1e3:.0f} ms"
        found.append(
            Row(f"GiGPO: {more:,} episodes × {STEPS} steps, of {less:,}", second / first, context, at_most=TWICE)
        )
    last = sizes[-1]
    whole, bare = times[f"gigpo {last}"], times[f"bare {last}"]
    context = f"{whole / last / STEPS * 1e6:.2f} µs per step, of {bare / last / STEPS * 1e6:.2f} µs"
    return [*found, Row(f"GiGPO of {last:,} episodes, of summing up their rewards", whole / bare, context)]


def episodes(count: int) -> list[Trajectory]:
    """Random walks on a board; a few end well."""
    chosen = random.Random(0)
    found = []
    for number in range(count):
        states = [f"square {chosen.randrange(STATES)}" for _ in range(STEPS)]
        rewards = [-0.01] * (STEPS - 1) + [float(chosen.random() < 0.3)]
        found.append(Trajectory(number // PER_PROMPT, states, rewards, sum(rewards)))
    return found


def bare_returns(batch: list[Trajectory], gamma: float = 0.95) -> list[float]:
    """The discounted rewards of every step, and nothing else."""
    gains = []
    for episode in batch:
        total = 0.0
        for reward in reversed(episode.rewards):
            total = reward + gamma * total
            gains.append(total)
    return gains


def timed(work: Callable[[], object]) -> float:
    """The seconds that work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
