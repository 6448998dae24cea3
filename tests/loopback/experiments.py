# SPDX-License-Identifier: Apache-2.0
"""Small experiments: rows in the shape of Nemotron-Post-Training-Dataset-v1, verifiers, and a model that answers."""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message
from reward_kit.typed_interface import reward_function

TOOL = {"name": "look_up", "description": "Look a word up.", "parameters": {"type": "object", "properties": {}}}


def chat_row(number: int, split: str, messages: list[dict[str, Any]], metadata: Any, **columns: Any) -> dict[str, Any]:
    """A row as the dataset has it: the metadata is JSON text, and every message has every field."""
    turns = [{"role": None, "content": None, "tool_calls": [], **turn} for turn in messages]
    told = metadata if isinstance(metadata, str) else json.dumps(metadata)
    return {
        "uuid": f"{split}-{number}", "license": "cc-by-4.0", "generator": "us", "version": "v1", "category": split,
        "reasoning": "on", "messages": turns, "metadata": told, **columns,
    }  # fmt: skip


def math_row(number: int, **columns: Any) -> dict[str, Any]:
    """Every other row has its answer in the metadata, the rest only in the solution."""
    answer = str(number + 1)
    solution = f"<think>Not \\boxed{{99}}.</think>So it is \\boxed{{{answer}}}."
    turns = [{"role": "user", "content": f"What is {number} + 1?"}, {"role": "assistant", "content": solution}]
    return chat_row(number, "math", turns, {"expected_answer": answer} if number % 2 else {"source": "us"}, **columns)


def code_row(number: int, **columns: Any) -> dict[str, Any]:
    tests = {"inputs": [f"{number}\n"], "outputs": [f"{number + 1}\n"]}
    turns = [{"role": "user", "content": f"Print {number} + 1."}, {"role": "assistant", "content": "```python\n```"}]
    return chat_row(number, "code", turns, {"input_output": json.dumps(tests)}, **columns)


def tool_row(number: int, **columns: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": f'{{"word": "w{number}"}}'}}
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": f"What does w{number} mean?"},
        {"role": "assistant", "content": "<think>Look.</think>", "tool_calls": [call]},
        {"role": "tool", "content": "Nothing."},
        {"role": "assistant", "content": "It means nothing."},
    ]
    return chat_row(number, "tool_calling", turns, {"tools": [TOOL]}, **columns)


ROWS = {"math": math_row, "code": code_row, "tool_calling": tool_row}


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def dataset(home: Path, count: int = 3, splits: Iterable[str] = ROWS) -> str:
    """A folder with one file per split."""
    for split in splits:
        write_lines(home / "data" / f"{split}.jsonl", [ROWS[split](number) for number in range(count)])
    return str(home / "data")


def experiment(home: Path, **values: Any) -> dict[str, Any]:
    """An experiment against the mock model, whose verifiers need nothing that is not here."""
    return {
        "dataset": values.pop("dataset", None) or dataset(home),
        "splits": "math,code,tool_calling",
        "model": "mock",
        "mock": "tests.loopback.experiments:answer",
        "num_candidates": 3,
        "verifiers": {"code": f"{__name__}:runs", "tool_calling": f"{__name__}:calls"},
        "cache_dir": None,
        "output": str(home / "results" / "run.parquet"),
        **values,
    }


def answer(messages: list[Message], draw: int) -> Message:
    """Right, wrong and broken answers, in turn."""
    asked = messages[-1].text
    if "mean" in asked:
        arguments = json.dumps({"word": asked.split()[2] if draw == 0 else "other"})
        call = ChatCompletionMessageToolCall(id="x", function=FunctionCall(name="look_up", arguments=arguments))
        return Message(role="assistant", content=None, tool_calls=[call])
    number = int("".join(character for character in asked.split("+")[0] if character.isdigit())) + 1
    texts = [f"<think>Add {draw}.</think>\n\nIt is \\boxed{{{number}}}.", f"It is \\boxed{{{number + 5}}}.", "BREAK"]
    thought = "Thought apart." if draw == 1 else None
    return Message(role="assistant", content=texts[draw % 3], reasoning_content=thought)


async def uneven_answer(messages: list[Message], draw: int) -> Message:
    """The same, after a while that depends on the question, so that later ones often overtake."""
    await asyncio.sleep(zlib.crc32(messages[-1].text.encode()) % 20 / 1000)
    return answer(messages, draw)


@reward_function
async def runs(messages: list[Message], *, ground_truth: Any, **kwargs: Any) -> float:
    """Stands in for code: the expected output of the first test is in the answer; BREAK cannot be judged."""
    if "BREAK" in messages[-1].text:
        raise ValueError("it breaks")
    return 0.5 + 0.5 * (str(ground_truth[0]["expected_output"]).strip() in messages[-1].text)


@reward_function
def calls(messages: list[Message], *, ground_truth: Any, **kwargs: Any) -> dict[str, Any]:
    """Stands in for tool calls: the same names and arguments. Tells which process judged."""
    expected = [call["function"] for call in ground_truth["tool_calls"]]
    made = [call.function.model_dump() for call in messages[-1].tool_calls or []]
    same = [json.loads(call["arguments"]) for call in made] == [json.loads(call["arguments"]) for call in expected]
    return {"score": float(same), "reason": f"process {os.getpid()}"}
