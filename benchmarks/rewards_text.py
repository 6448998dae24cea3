# SPDX-License-Identifier: Apache-2.0
"""The rewards of an answer's text: what each costs per kB, beside splitting the text into words, and that it is linear.

python -m benchmarks rewards_text
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.report import Report, Row
from reward_kit.models import Message
from reward_kit.rewards.format import format_reward
from reward_kit.rewards.language_consistency import language_consistency_reward
from reward_kit.rewards.length import cosine_length_reward, length_reward
from reward_kit.rewards.reasoning_steps import reasoning_steps_reward, sequence_reward
from reward_kit.rewards.repetition import diversity_reward, repetition_penalty_reward
from reward_kit.rewards.tag_count import tag_count_reward

__all__ = ["main"]

REWARDS: dict[str, Callable[[list[Message]], object]] = {
    "format": format_reward,
    "tag_count": lambda messages: tag_count_reward(messages, required_tags=["think", "answer"]),
    "length": lambda messages: length_reward(messages, target_length=100),
    "cosine_length": lambda messages: cosine_length_reward(messages, is_correct=True),
    "reasoning_steps": reasoning_steps_reward,
    "sequence": sequence_reward,
    "repetition_penalty": repetition_penalty_reward,
    "diversity": diversity_reward,
    "language_consistency": lambda messages: language_consistency_reward(messages, target_language="en"),
}
SENTENCES = (
    "First, we add the two numbers and write the sum down.", "Then we divide $a + b$ by two.", "Step 3: round it.",
    "So there are `n` apples left in the basket.", "Let me check this once more.", "\n- The train leaves at noon.\n",
)  # fmt: skip
GROWTH = 8


def main(quick: bool = False) -> Report:
    """Compare the cost of a short and of a long answer, and both with splitting it into words."""
    size, rounds = (2_000, 1) if quick else (20_000, 5)
    short, long = answer(size), answer(size * GROWTH)
    split = cost(lambda messages: messages[0].text.split(), long, rounds)
    rows = []
    for name, reward in REWARDS.items():
        reward(short)  # a detector is loaded once a process
        first, last = cost(reward, short, rounds), cost(reward, long, rounds)
        context = f"{last:.1f} µs per kB, {last / split:.1f} × splitting into words"
        rows.append(Row(f"{name}: per kB of {GROWTH} × the text", last / first, context, at_most=2.0))
    return Report("rewards_text", "What a reward of the answer's text costs, and whether that grows with length", rows)


def answer(size: int) -> list[Message]:
    """Prose with thoughts around it, of about `size` characters."""
    chosen = random.Random(0)
    text = ""
    parts: list[str] = []
    while len(text) < size:
        parts += [f"{chosen.choice(SENTENCES)} {chosen.randrange(1000)}" for _ in range(50)]
        text = " ".join(parts)
    return [Message(role="assistant", content=f"<think>\n{text[:size]}\n</think>\n<answer>\n4\n</answer>")]


def cost(reward: Callable[[list[Message]], Any], messages: list[Message], rounds: int) -> float:
    """The median CPU time, in microseconds per kB."""
    kilobytes = len(messages[0].text) / 1000
    repeats = max(1, int(200 / kilobytes))
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(repeats):
            reward(messages)
        times.append((time.process_time() - start) / repeats)
    return statistics.median(times) * 1e6 / kilobytes


if __name__ == "__main__":
    from benchmarks.report import as_text

    print(as_text(main()))
