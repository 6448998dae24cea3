# SPDX-License-Identifier: Apache-2.0
"""Episodes per second beside verifiers' `ToolEnv` and inspect's `react`, each with a model that answers at once.

    REWARD_KIT_PEERS=/path/to/another/python python -m benchmarks agents

The peers agree with few other packages, so they live in an environment of their own, whose interpreter the variable
names; without it, these rows are left out. Eight turns, one tool call in each but the last. Processor time counts, as a
slope: what more episodes take than few, so that nobody's start counts. A program that did not play every turn of every
episode does not count at all.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time

from benchmarks.agent_turns import play_bare_journal
from benchmarks.report import Row

__all__ = ["rows"]

AT_LEAST = 10.0
"""Goal: so many times the episodes per second of processor time."""
TURNS = 8

_VERIFIERS = '''
import asyncio, sys, time
import verifiers as vf
from datasets import Dataset
from openai.types.chat import ChatCompletion

TURNS, EPISODES = int(sys.argv[1]), int(sys.argv[2])

async def add(amount: int) -> int:
    """Add to the number.

    Args:
        amount: how much
    """
    return amount

def completion(turn):
    if turn >= TURNS - 1:
        message = {"role": "assistant", "content": "done"}
    else:
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "add", "arguments": '{"amount": 2}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return ChatCompletion.model_validate({
        "id": "x", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    })

class Completions:
    async def create(self, *, messages, **_):
        return completion(sum(m["role"] == "assistant" for m in messages))

from openai import AsyncOpenAI
client = AsyncOpenAI(api_key="none", base_url="http://127.0.0.1:9")
client.chat.completions.create = Completions().create

data = Dataset.from_list([{"question": f"Add, {i}.", "answer": ""} for i in range(EPISODES)])
env = vf.ToolEnv(dataset=data, tools=[add], max_turns=100, rubric=vf.Rubric(funcs=[lambda **_: 1.0]))

async def main():
    started = time.process_time()
    from verifiers.clients import OpenAIChatCompletionsClient

    played = OpenAIChatCompletionsClient(client)
    done = await env.evaluate(played, "m", num_examples=EPISODES, rollouts_per_example=1, max_concurrent=64)
    print("SECONDS", time.process_time() - started)
    outputs = done["outputs"] if isinstance(done, dict) else done.outputs
    said = [each["completion"] if isinstance(each, dict) else each.completion for each in outputs]
    print("TURNS", sum((m["role"] if isinstance(m, dict) else m.role) == "assistant" for each in said for m in each))

asyncio.run(main())
'''

_INSPECT = '''
import sys, time
from inspect_ai import Task, eval
from inspect_ai.agent import react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.tool import tool

TURNS, EPISODES = int(sys.argv[1]), int(sys.argv[2])

@tool
def add():
    async def execute(amount: int) -> int:
        """Add to the number.

        Args:
            amount: how much
        """
        return amount
    return execute

def outputs():
    while True:
        for _ in range(TURNS - 1):
            yield ModelOutput.for_tool_call("mockllm/model", "add", {"amount": 2})
        yield ModelOutput.for_tool_call("mockllm/model", "submit", {"answer": "done"})

samples = MemoryDataset([Sample(input=f"Add, {i}.") for i in range(EPISODES)])
task = Task(dataset=samples, solver=react(tools=[add()]))
started = time.process_time()
model = get_model("mockllm/model", custom_outputs=outputs())
(log,) = eval(task, model=model, display="none", log_format="eval", log_dir=sys.argv[3], max_samples=1)
print("SECONDS", time.process_time() - started)
if log.status != "success":
    sys.exit(f"the evaluation ended with {log.status}: {log.error.message if log.error else ''}")
print("TURNS", sum(message.role == "assistant" for sample in log.samples for message in sample.messages))
'''


def rows(*, quick: bool) -> list[Row]:
    """Ours beside each peer that the other interpreter has; none where no interpreter is named."""
    python = os.environ.get("REWARD_KIT_PEERS")
    if python is None:
        return []
    few, many = (5, 20) if quick else (60, 300)
    ours = (many - few) / (_ours(many) - _ours(few))
    found = []
    for name, program in (("verifiers' ToolEnv", _VERIFIERS), ("inspect's react", _INSPECT)):
        seconds = [_seconds(python, program, episodes) for episodes in (few, many)]
        if not seconds[0] < seconds[1] < math.inf:
            print(f"{name} did not play all its episodes in {python}.", file=sys.stderr)
            continue
        theirs = (many - few) / (seconds[1] - seconds[0])
        context = f"{ours:,.0f} and {theirs:,.0f} episodes per second of processor time"
        found.append(Row(f"episodes of {TURNS} turns, of {name}", ours / theirs, context, at_least=AT_LEAST))
    return found


def _ours(episodes: int) -> float:
    started = time.process_time()
    play_bare_journal(episodes, TURNS)
    return time.process_time() - started


def _seconds(python: str, program: str, episodes: int) -> float:
    """The processor time that a peer's program says it took; infinite where it did not do all of the work."""
    import tempfile

    with tempfile.TemporaryDirectory() as logs:
        done = subprocess.run(
            [python, "-c", program, str(TURNS), str(episodes), logs],
            capture_output=True, text=True, check=False, timeout=600, cwd=logs,
        )  # fmt: skip
    told = dict(line.split() for line in done.stdout.splitlines() if line.startswith(("SECONDS ", "TURNS ")))
    if told.get("TURNS") != str(TURNS * episodes):
        print(
            f"It played {told.get('TURNS', 'no')} turns of {TURNS * episodes}. {done.stderr[-2000:]}", file=sys.stderr
        )
        return math.inf
    return float(told["SECONDS"])
