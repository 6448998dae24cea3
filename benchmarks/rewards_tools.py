# SPDX-License-Identifier: Apache-2.0
"""Tool-call rewards: what a verdict costs, that cost grows with the answer only, and agreement with BFCL's verdicts.

    python -m benchmarks rewards_tools
    REWARD_KIT_BFCL=DIRECTORY python -m benchmarks rewards_tools     with graded answers of your own, as below

The directory holds `bfcl_questions*.jsonl` ({question_id, functions, possible_answers}) and `bfcl_graded*.jsonl`
({question_id, calls, valid}); only lines with a verdict count.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.report import Report, Row
from benchmarks.scene import interleaved
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message
from reward_kit.rewards.function_calling import exact_tool_match_reward, parse_tool_calls

__all__ = ["main"]

GOAL_MICROSECONDS = 200.0
GOAL_GROWTH = 1.5
GOAL_AGREEMENT = 99.5
REPEATED = 3
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "book_room",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "nights": {"type": "integer"},
                    "guests": {"type": "array", "items": {"type": "string"}},
                    "breakfast": {"type": "boolean", "default": False},
                },
                "required": ["city", "nights"],
            },
        },
    }
]
CALLS = [
    {"name": "book_room", "arguments": {"city": "Oslo", "nights": 2, "guests": ["Ada", "Bob"]}},
    {"name": "book_room", "arguments": {"city": "Rome", "nights": 1}},
]
TEXT = "I will book both.\n" + "\n".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in CALLS)


def main(*, quick: bool = False) -> Report:
    """Measure the cost of a verdict beside that of comparing serialised JSON, and its growth."""
    count, rounds = (50, 1) if quick else (2_000, 5)
    rows = [*_cost(count, rounds), *_growth(rounds, 1_000 if quick else 20_000), *_agreement()]
    return Report("rewards_tools", "judging tool calls", rows)


# ── speed ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cost(count: int, rounds: int) -> Iterator[Row]:
    reply = [Message(role="assistant", content=TEXT)]
    truth = CALLS[::-1]

    def naive() -> bool:
        found = Counter(json.dumps(call, sort_keys=True) for call in parse_tool_calls(TEXT))
        return found == Counter(json.dumps(call, sort_keys=True) for call in truth)

    kinds = {
        "naive": _timed(naive, count),
        "strict": _timed(lambda: exact_tool_match_reward(reply, truth, tools=TOOLS), count),
        "bfcl": _timed(lambda: exact_tool_match_reward(reply, truth, tools=TOOLS, rules="bfcl"), count),
    }
    took = {name: timed.median / count * 1e6 for name, timed in interleaved(kinds, rounds).items()}
    for name in ("strict", "bfcl"):
        context = f"a verdict on two calls; reading them and comparing JSON text takes {took['naive']:.0f} µs"
        yield Row(f"{name}, microseconds", took[name], context, at_most=GOAL_MICROSECONDS, unit="µs")


def _growth(rounds: int, size: int) -> Iterator[Row]:
    """A ten times longer answer, over ten times the cost: 1 where cost is linear."""
    shapes: dict[str, Callable[[int], str]] = {
        "many calls": lambda length: '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>\n' * (length // 50),
        "one long text": lambda length: f"f(x='{'a' * length}')",
        "marks that never close": lambda length: "<tool_call>" * (length // 10),
        "brackets that never close": lambda length: "f(x=" + "[" * length,
    }
    for name, shape in shapes.items():
        small, large = (_judging(shape(length)) for length in (size, 10 * size))
        took = {kind: timed.median for kind, timed in interleaved({"small": small, "large": large}, rounds).items()}
        growth = took["large"] / took["small"] / 10
        small_ms, large_ms = (took[kind] * 1e3 / REPEATED for kind in ("small", "large"))
        context = f"{size:,} characters {small_ms:.2f} ms, {10 * size:,} characters {large_ms:.2f} ms"
        yield Row(f"growth: {name}", growth, context, at_most=GOAL_GROWTH)


def _judging(text: str) -> Callable[[], float]:
    reply = [Message(role="assistant", content=text)]
    return _timed(lambda: exact_tool_match_reward(reply, [{"name": "f", "arguments": {"x": 1}}]), REPEATED)


def _timed(function: Callable[[], object], count: int) -> Callable[[], float]:
    def run() -> float:
        start = time.process_time()
        for _ in range(count):
            function()
        return time.process_time() - start

    return run


# ── agreement ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _agreement() -> Iterator[Row]:
    directory = os.environ.get("REWARD_KIT_BFCL")
    if directory is None:
        return
    questions = {row["question_id"]: row for row in _lines(Path(directory), "bfcl_questions*.jsonl")}
    verdicts: dict[str, Counter[tuple[bool, bool]]] = {"bfcl": Counter(), "strict": Counter(), "lenient": Counter()}
    for row in _lines(Path(directory), "bfcl_graded*.jsonl"):
        if row["valid"] is None or row["question_id"] not in questions:
            continue
        for rules, seen in verdicts.items():
            seen[row["valid"], _passes(row["calls"], questions[row["question_id"]], rules)] += 1
    for rules, seen in verdicts.items():
        same = seen[True, True] + seen[False, False]
        odd = f"refuses {seen[True, False]} of BFCL's passes, passes {seen[False, True]} others"
        context = f"{seen.total():,} verdicts; {odd}"
        goal = GOAL_AGREEMENT if rules == "bfcl" else None
        yield Row(f"agreement with BFCL, rules={rules}", 100 * same / seen.total(), context, at_least=goal, unit="%")


def _passes(calls: list[dict[str, Any]], question: dict[str, Any], rules: Any) -> bool:
    made = [
        ChatCompletionMessageToolCall(function=FunctionCall(name=c["name"], arguments=json.dumps(c["arguments"])))
        for c in calls
    ]
    reply = Message(role="assistant", content="", tool_calls=made)
    result = exact_tool_match_reward([reply], question["possible_answers"], tools=question["functions"], rules=rules)
    return result.score == 1.0


def _lines(directory: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(directory.glob(pattern)):
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
