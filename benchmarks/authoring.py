# SPDX-License-Identifier: Apache-2.0
"""What the decorator costs: a decorated call beside the bare one, and a call by name as a run makes it.

python benchmarks/authoring.py
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from typing import Any

from reward_kit.models import EvaluateResult, Message
from reward_kit.reward_function import RewardCall, RewardFunction
from reward_kit.typed_interface import reward_function

TURNS: list[Any] = [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "4"}]
MESSAGES = [Message.model_validate(turn) for turn in TURNS]
BATCH = 64


def bare(messages: list[Message], ground_truth: str | None = None, **kwargs: Any) -> EvaluateResult:
    """A trivial reward."""
    return EvaluateResult(score=1.0)


decorated = reward_function(bare)


def microseconds(call: Callable[[], object], number: int = 20_000) -> float:
    """The median time of one call."""
    return statistics.median(timeit.repeat(call, number=number, repeat=7)) / number * 1e6


def main() -> None:
    """Print one line per way of calling: microseconds per call, and how many times the bare call that is."""
    call = RewardCall(decorated, {"tolerance": 0.1})
    adapter = RewardFunction(func=decorated).get_trl_adapter()
    prompts, completions, answers = ["2 + 2?"] * BATCH, ["4"] * BATCH, ["4"] * BATCH
    payload: Any = {"messages": TURNS, "ground_truth": "4", "columns": {"level": "easy"}}
    baseline = microseconds(lambda: bare(messages=TURNS))
    ways: dict[str, float] = {
        "bare call": baseline,
        "decorated, given Messages": microseconds(lambda: decorated(messages=MESSAGES)),
        "decorated, given dicts": microseconds(lambda: decorated(messages=TURNS)),
        "by name, verdict checked": microseconds(lambda: call.judge(payload)),
        "in a trainer, an item": microseconds(lambda: adapter(prompts, completions, solution=answers), 300) / BATCH,
    }
    for name, cost in ways.items():
        print(f"{name:28} {cost:6.2f} µs   {cost / baseline:4.1f} x bare")


if __name__ == "__main__":
    main()
