"""Rewards inside trainers: what an adapter costs a completion, and what its worker processes gain on a group.

Both are judged as TRL would have them judged: one step of 64 completions, workers warm. The baseline is the reward
called in a plain loop, on one core, with nothing timed or isolated.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.report import Report, Row
from reward_kit.integrations.trl import TRLAdapter, create_trl_adapter
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.math import math_reward
from reward_kit.typed_interface import reward_function

__all__ = ["main"]

GOAL_MICROSECONDS = 15.0
GOAL_RATIO = 0.6
GROUP = 64
WORKERS = 2
WORK = "She has {a} apples and buys {b} more, so {a} + {b} = {c}. Half of them are red, which makes {c} / 2 of them. "


@reward_function
def trivial(messages: list[Message], ground_truth: str = "", **kwargs: Any) -> EvaluateResult:
    """Judges by the last character."""
    return EvaluateResult(score=float(messages[-1].text[-1:] == ground_truth[-1:]))


def main(*, quick: bool = False) -> Report:
    """Measure both, and whether the adapter's module leaves the trainer's packages alone."""
    rounds = 5 if quick else 300
    found = [*_overhead(rounds), *_speed_up(rounds), _imports()]
    return Report("adapters", f"a trainer's step of {GROUP} completions, {WORKERS} worker processes", found)


def _step(answer: Callable[[int], str]) -> tuple[list[Any], list[Any], list[str]]:
    prompts = [[{"role": "user", "content": f"{number} + {number}?"}] for number in range(GROUP)]
    completions = [[{"role": "assistant", "content": answer(number)}] for number in range(GROUP)]
    return prompts, completions, [str(2 * number) for number in range(GROUP)]


def _overhead(rounds: int) -> list[Row]:
    prompts, completions, truths = _step(lambda number: str(2 * number))
    ways = {
        workers: create_trl_adapter(trivial, {"answer": "ground_truth"}, workers=workers) for workers in (WORKERS, 0)
    }
    bare, *adapted = _compare(trivial, list(ways.values()), prompts, completions, truths, rounds)
    return [
        Row(
            f"trivial, a completion over the bare call, {where}",
            (seconds - bare) / GROUP * 1e6,
            f"{seconds / GROUP * 1e6:.1f} µs beside {bare / GROUP * 1e6:.1f} µs",
            at_most=GOAL_MICROSECONDS,
            unit="µs",
        )
        for where, seconds in zip(("in workers", "in the trainer's process"), adapted, strict=True)
    ]


def _speed_up(rounds: int) -> list[Row]:
    def answer(number: int) -> str:
        return WORK.format(a=number, b=number, c=2 * number) * 6 + f"The answer is \\boxed{{{2 * number}}}."

    adapter = create_trl_adapter(math_reward, {"answer": "ground_truth"}, workers=WORKERS)
    bare, seconds = _compare(math_reward, [adapter], *_step(answer), rounds)
    context = f"{seconds * 1e3:.2f} ms beside {bare * 1e3:.2f} ms"
    return [Row("a group of math answers, of a plain loop", seconds / bare, context, at_most=GOAL_RATIO)]


def _compare(
    reward: Callable[..., Any],
    adapters: Sequence[TRLAdapter],
    prompts: Sequence[Any],
    completions: Sequence[Any],
    truths: Sequence[str],
    rounds: int,
) -> list[float]:
    """Seconds for the step: in a plain loop, then by each adapter. Rounds take turns; the best counts."""
    triples = list(zip(prompts, completions, truths, strict=True))

    def loop() -> None:
        for prompt, completion, truth in triples:
            reward(messages=[*prompt, *completion], ground_truth=truth)

    ways: list[Callable[[], object]] = [loop]
    for adapter in adapters:
        ways.append(lambda adapter=adapter: adapter(prompts=prompts, completions=completions, answer=truths))  # type: ignore[misc]
    for way in ways:
        way()
    times = [[_seconds(way) for way in ways] for _ in range(rounds)]
    best = [min(column) for column in zip(*times, strict=True)]
    for adapter in adapters:
        adapter.close()
    return best


def _seconds(way: Callable[[], object]) -> float:
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


def _imports() -> Row:
    code = "import sys, reward_kit.integrations.trl; print(len({'torch', 'trl', 'transformers'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return Row(
        "trainers' packages imported by the adapter",
        float(done.stdout),
        "of torch, trl, transformers",
        at_most=0,
        unit="packages",
    )
