# SPDX-License-Identifier: Apache-2.0
"""Rewards inside trainers: what an adapter costs per completion, and what its worker processes gain on a group.

Both are judged as TRL would have them judged: one step of 64 completions, workers warm. The baseline is the reward
called in a plain loop, on one core, with nothing timed or isolated.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks.bare_processes import bare_processes
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
WORK = "We complete the square: x^2 + {b}x = (x + {a})^2 - {a}^2, so the roots lie {a} to the left of the others. "
PAIRS = (
    (r"(x+{a})^2", r"x^2 + {b}x + {c}"),
    (r"\frac{{{a}\sqrt{{2}}}}{{{b}}}", r"\frac{{1}}{{\sqrt{{2}}}}"),
    (r"\{{{a}, {b}\}}", r"x = {b} \text{{ or }} x = {a}"),
    (r"({a}, \infty)", r"x > {a}"),
    (r"y = {b}x - {c}", r"{b}x - y - {c} = 0"),
)
"""Right answers, and the same written otherwise."""


@reward_function
def trivial(messages: list[Message], ground_truth: str = "", **kwargs: Any) -> EvaluateResult:
    """Judges by the last character."""
    return EvaluateResult(score=float(messages[-1].text[-1:] == ground_truth[-1:]))


def main(*, quick: bool = False) -> Report:
    """Measure both, and whether the adapter's module leaves the trainer's packages alone."""
    rounds = 5 if quick else 300
    found = [*_overhead(rounds), *_speed_up(rounds), _imports()]
    return Report("adapters", f"a trainer's step of {GROUP} completions, {WORKERS} worker processes", found)


class Step(NamedTuple):
    """What a trainer hands over: the completions of one step, and what they are judged by."""

    prompts: list[Any]
    completions: list[Any]
    truths: list[str]

    @classmethod
    def of(cls, answers: Sequence[tuple[str, str]]) -> Step:
        """Of pairs of a completion and the right answer."""
        prompts = [[{"role": "user", "content": f"Problem {number}?"}] for number in range(len(answers))]
        completions = [[{"role": "assistant", "content": completion}] for completion, _ in answers]
        return cls(prompts, completions, [truth for _, truth in answers])


def _overhead(rounds: int) -> list[Row]:
    step = Step.of([(str(2 * number), str(2 * number)) for number in range(GROUP)])
    ways = {
        workers: create_trl_adapter(trivial, {"answer": "ground_truth"}, workers=workers) for workers in (WORKERS, 0)
    }
    bare, *adapted = _compare(trivial, list(ways.values()), [step] * rounds)
    each = 1e6 / GROUP
    return [
        Row(
            f"trivial, per completion over the bare call, {where}",
            (taken.best - bare.best) * each,
            f"{taken.best * each:.1f} µs beside {bare.best * each:.1f} µs; by medians "
            f"{(taken.median - bare.median) * each:.1f} µs",
            at_most=GOAL_MICROSECONDS,
            unit="µs",
        )
        for where, taken in zip(("in workers", "in the trainer's process"), adapted, strict=True)
    ]


def _speed_up(rounds: int) -> list[Row]:
    """Every step has other answers, as in a training: verdicts that were kept are of no use."""
    adapter = create_trl_adapter(math_reward, {"answer": "ground_truth"}, workers=WORKERS)
    with bare_processes(_judge_all, WORKERS) as in_bare_processes:

        def halves(step: Step) -> None:
            answers = list(zip(*step, strict=True))
            in_bare_processes([answers[first::WORKERS] for first in range(WORKERS)])

        steps = [_mathematics(number) for number in range(rounds)]
        bare, taken, floor = _compare(math_reward, [adapter], steps, others=[halves])
    what = "a group of math answers"
    return [
        Row(f"{what}, of a plain loop", taken.best / bare.best, _beside(taken, bare), at_most=GOAL_RATIO),
        Row(f"{what}, {WORKERS} bare processes, of a plain loop", floor.best / bare.best, _beside(floor, bare)),
    ]


def _beside(taken: Seconds, bare: Seconds) -> str:
    ratio = taken.median / bare.median
    return f"{taken.best * 1e3:.1f} ms beside {bare.best * 1e3:.1f} ms; by medians {ratio:.2f} ×"


def _judge_all(answers: Sequence[tuple[Any, Any, str]]) -> None:
    for prompt, completion, truth in answers:
        math_reward(messages=[*prompt, *completion], ground_truth=truth)


def _mathematics(step: int) -> Step:
    answers = []
    for number in range(GROUP):
        a = step * GROUP + number + 1
        values = {"a": a, "b": 2 * a, "c": a * a}
        truth, answer = (text.format(**values) for text in PAIRS[number % len(PAIRS)])
        answers.append((f"{WORK.format(**values) * 12}The answer is \\boxed{{{answer}}}.", truth))
    return Step.of(answers)


def _compare(
    reward: Callable[..., Any],
    adapters: Sequence[TRLAdapter],
    steps: Sequence[Step],
    others: Sequence[Callable[[Step], object]] = (),
) -> list[Seconds]:
    """The best and the median seconds for a step: in a plain loop, by each adapter, and in each other way.

    They take turns, and the turns rotate: whoever comes after a busy process finds its caches cold.
    """

    def loop(step: Step) -> None:
        for prompt, completion, truth in zip(*step, strict=True):
            reward(messages=[*prompt, *completion], ground_truth=truth)

    ways: list[Callable[[Step], object]] = [loop]
    ways += [*(partial(_judge, adapter) for adapter in adapters), *others]
    first, *timed = steps  # nobody's time is taken while workers start
    for way in ways:
        way(first)
        way(first)
    times: list[list[float]] = [[] for _ in ways]
    for number, step in enumerate(timed):
        for turn in range(len(ways)):
            which = (number + turn) % len(ways)
            times[which].append(_seconds(partial(ways[which], step)))
    for adapter in adapters:
        adapter.close()
    return [Seconds(min(taken), statistics.median(taken)) for taken in times]


def _judge(adapter: TRLAdapter, step: Step) -> object:
    return adapter(prompts=step.prompts, completions=step.completions, answer=step.truths)


class Seconds(NamedTuple):
    """How long a step takes: where nothing else runs, and as it goes."""

    best: float
    median: float


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
