# SPDX-License-Identifier: Apache-2.0
"""Rewards for the tests of whole runs: honest ones and one for each way in which a reward can go wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import Any

from reward_kit import EvaluateResult, Message, MetricResult, reward_function


def grade(text: str) -> float:
    """A score between 0 and 1 that depends on every character."""
    return sum(map(ord, text)) % 97 / 96


def verdict(text: str) -> EvaluateResult:
    metrics = {"short": MetricResult(score=1.0 if len(text) < 99 else 0.0, reason="counted")}
    return EvaluateResult(score=grade(text), reason=f"read {len(text)} characters", metrics=metrics)


@reward_function
async def quick(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    """Judges on the loop."""
    return verdict(messages[-1].text)


@reward_function
def steady(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    """Judges in a worker process."""
    return verdict(messages[-1].text)


@reward_function
async def talkative(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    """Judges on the loop, and prints in every way there is."""
    print("talk by print")
    os.write(1, b"talk by descriptor\n")
    subprocess.run(["echo", "talk by program"], check=True)
    return verdict(messages[-1].text)


@reward_function
async def greedy(
    messages: list[Message], ground_truth: dict[str, Any], notes: list[str], **kwargs: Any
) -> EvaluateResult:
    """Judges on the loop, and changes everything it is handed."""
    found = f"{ground_truth.pop('value', 'gone')} {notes.pop() if notes else 'gone'}"
    messages.clear()
    return EvaluateResult(score=1.0, reason=found)


@reward_function
async def blocking(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    """Judges on the loop, and does not let go of it at the third sample."""
    while "2" in messages[0].text:
        time.sleep(0.05)
    return verdict(messages[-1].text)


@reward_function
async def interrupting(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    """Judges on the loop; at the third sample somebody presses Ctrl-C, and the fourth is never done."""
    prompt = messages[0].text
    if "2" in prompt:
        os.kill(os.getpid(), signal.SIGINT)
    if "3" in prompt:
        await asyncio.sleep(600)
    return verdict(messages[-1].text)


@reward_function(mode="batch")
def ranking(rollouts_messages: list[list[Message]], **kwargs: Any) -> list[EvaluateResult]:
    """Judges by rank within the group, and says how large the group was."""
    grades = [grade(messages[-1].text) for messages in rollouts_messages]
    return [
        EvaluateResult(score=sum(other <= mine for other in grades) / len(grades), reason=f"1 of {len(grades)}")
        for mine in grades
    ]


# ── how a reward can go wrong: a prompt that holds the name of a fault gets it ───────────────────────────────────────


class Unprintable(Exception):
    """Says nothing, and not even that."""

    def __str__(self) -> str:
        raise self


def _throw(error: BaseException) -> Any:
    raise error


def _misbehave(prompt: str) -> Any:
    faults: dict[str, Any] = {
        "raise": lambda: 1 / 0,
        "exit": lambda: os._exit(7),
        "quit": lambda: sys.exit(3),
        "hang": lambda: time.sleep(600),
        "memory": lambda: bytearray(1 << 33),
        "nothing": lambda: None,
        "words": lambda: "very good",
        "nan": lambda: float("nan"),
        "infinite": lambda: EvaluateResult(score=float("inf")),
        "invalid": lambda: EvaluateResult(score=0.0, is_score_valid=False, reason="I cannot tell"),
        "error": lambda: EvaluateResult(score=0.0, error="the judge was out"),
        "surrogate": lambda: EvaluateResult(score=1.0, reason="\ud800"),
        "object": lambda: {"score": 1.0, "metrics": {"a": object()}},
        "steps": lambda: {
            "score": 1.0,
            "step_outputs": [{"step_index": 0, "base_reward": 1, "metrics": {"x": 1 << 80}}],
        },
        "unprintable": lambda: _throw(Unprintable()),
        "generator": lambda: _throw(GeneratorExit()),
        "interrupt": lambda: _throw(KeyboardInterrupt()),
        "deep": lambda: _misbehave(prompt),
        "giant": lambda: EvaluateResult(score=1.0, reason="x" * (70 << 20)),
        "many": lambda: [EvaluateResult(score=1.0)] * 9,
    }
    return next((faults[name]() for name in faults if f"<{name}>" in prompt), None)


def _prompt(messages: list[Message]) -> str:
    return next(message.text for message in messages if message.role == "user")


@reward_function
def faulty(messages: list[Message], **kwargs: Any) -> Any:
    """In a worker process."""
    prompt = _prompt(messages)
    return verdict(messages[-1].text) if "<" not in prompt else _misbehave(prompt)


@reward_function
async def faulty_async(messages: list[Message], **kwargs: Any) -> Any:
    """On the loop, where a hang waits instead of blocking."""
    prompt = _prompt(messages)
    if "<hang>" in prompt:
        await asyncio.sleep(600)
    if "<cancel>" in prompt:
        raise asyncio.CancelledError
    if "<cancel all>" in prompt:
        for task in asyncio.all_tasks():
            task.cancel()
    if "<cancel itself>" in prompt or "<cancel in passing>" in prompt or "<cancel all>" in prompt:
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
    if "<cancel in passing>" in prompt:
        return verdict(messages[-1].text)
    await asyncio.sleep(0)
    return verdict(messages[-1].text) if "<" not in prompt else _misbehave(prompt)


@reward_function(mode="batch")
def faulty_batch(rollouts_messages: list[list[Message]], **kwargs: Any) -> Any:
    """All rollouts of a sample at once, in a worker process."""
    prompt = _prompt(rollouts_messages[0])
    if "<" not in prompt or "<one>" in prompt:
        results = [verdict(messages[-1].text) for messages in rollouts_messages]
        if "<one>" in prompt:
            results[0] = EvaluateResult(score=0.0, is_score_valid=False, reason="only this one")
        return results
    return _misbehave(prompt)


@reward_function(mode="batch")
async def faulty_batch_async(rollouts_messages: list[list[Message]], **kwargs: Any) -> Any:
    """All rollouts of a sample at once, on the loop."""
    prompt = _prompt(rollouts_messages[0])
    if "<hang>" in prompt:
        await asyncio.sleep(600)
    if "<" not in prompt:
        return [verdict(messages[-1].text) for messages in rollouts_messages]
    return _misbehave(prompt)
