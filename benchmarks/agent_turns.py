# SPDX-License-Identifier: Apache-2.0
"""Episodes beside a bare loop of the same model and tool calls: time per turn, memory in flight, schedule, resume.

The rows are part of `python -m benchmarks agents`. The model answers at once and a tool adds two numbers, so that what
is measured is ours: messages, checks, the step, and the journal of turns.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.report import Row
from benchmarks.scene import interleaved
from reward_kit.agent import Episodes, World, tool
from reward_kit.agent.environment import environment_of
from reward_kit.config_models import AgentConfig, Sampling
from reward_kit.models import (
    ChatCompletionMessageToolCall,
    Completion,
    Failure,
    FunctionCall,
    Message,
    Sample,
    Usage,
)
from reward_kit.storage.turn_journal import TurnJournal
from reward_kit.utils.event_loop import run_sync

__all__ = ["play_bare_journal", "rows"]

PER_TURN = 150.0
"""Goal: µs of processor time per turn over the bare loop."""
IN_FLIGHT_KB = 60.0
SCHEDULE = 1.1
AGAIN = 1.5
AT_ONCE = 64
ARGUMENTS = '{"amount": 2}'
CONFIG = AgentConfig(max_turns=1_000, concurrency=100_000)


class Counter(World):
    """Adds numbers."""

    def __init__(self, sample: Sample | None) -> None:
        self.value = 0

    @tool
    async def add(self, amount: int) -> int:
        """Add to the number."""
        self.value += amount
        return self.value

    def facts(self) -> dict[str, Any]:
        return {"value": self.value}


class Model:
    """Calls the tool in each turn but the last."""

    model = "bare"
    identity: Mapping[str, Any] = {}

    def __init__(self, turns: int) -> None:
        self.turns, self.asked = turns, 0

    async def generate(
        self, messages: Sequence[Message], *, draws: Sequence[int], sampling: Sampling,
        tools: list[dict[str, Any]] | None = None, sample_id: str = "",
    ) -> list[Completion | Failure]:  # fmt: skip
        self.asked += 1
        turn = len(messages) // 2
        if turn >= self.turns - 1:
            said = Message(role="assistant", content="done")
        else:
            call = ChatCompletionMessageToolCall(id=f"c{turn}", function=FunctionCall(name="add", arguments=ARGUMENTS))
            said = Message(role="assistant", content=None, tool_calls=[call])
        return [Completion(message=said, finish_reason="stop", usage=Usage(prompt_tokens=5, completion_tokens=1))]

    async def close(self) -> None:
        pass


def sample(number: int) -> Sample:
    return Sample(id=str(number), messages=[Message(role="user", content="Add.")])


def rows(*, quick: bool) -> list[Row]:
    """All figures."""
    return [*_per_turn(quick), _in_flight(quick), _schedule(quick), *_resume(quick)]


# ── time per turn ────────────────────────────────────────────────────────────────────────────────────────────────────


def _per_turn(quick: bool) -> list[Row]:
    found, turns_in_all, rounds = [], 256 if quick else 6_400, 1 if quick else 7
    for turns in (8, 64):
        episodes = max(1, turns_in_all // turns)
        kinds: dict[str, Callable[[], float]] = {
            "ours": lambda t=turns, e=episodes: _timed(lambda: _ours(e, t)),  # type: ignore[misc]
            "bare": lambda t=turns, e=episodes: _timed(lambda: _bare(e, t)),  # type: ignore[misc]
        }
        times = {name: measured.processor for name, measured in interleaved(kinds, rounds).items()}
        ours, bare = (times[name] / episodes / turns * 1e6 for name in ("ours", "bare"))
        what = f"a turn of an episode of {turns}, over a bare loop"
        found.append(Row(what, ours - bare, f"{ours:.0f} µs of {bare:.0f} µs", at_most=PER_TURN, unit="µs"))
    return found


def play_bare_journal(episodes: int, turns: int) -> None:
    """Play so many episodes, with their turns kept in a journal."""
    run_sync(lambda: _ours(episodes, turns))


def _timed(run: Callable[[], Awaitable[None]]) -> float:
    started = time.process_time()
    run_sync(run)  # type: ignore[arg-type]
    return time.process_time() - started


async def _ours(episodes: int, turns: int) -> None:
    with _journal() as journal:
        play = Episodes(Model(turns), Sampling(), None, environment_of(Counter), CONFIG, journal=journal)
        await _all(episodes, lambda number: play(sample(number), [0]))


async def _bare(episodes: int, turns: int) -> None:
    model = Model(turns)

    async def one(_: int) -> None:
        world, said = Counter(None), [Message(role="user", content="Add.")]
        while True:
            (reply,) = await model.generate(said, draws=[0], sampling=_SAMPLING)
            if isinstance(reply, Failure):
                return
            said.append(reply.message)
            for call in reply.message.tool_calls or ():
                value = await world.add(**json.loads(call.function.arguments))
                said.append(Message(role="tool", content=str(value), tool_call_id=call.id))
            if not reply.message.tool_calls:
                return

    await _all(episodes, one)


_SAMPLING = Sampling()


async def _all(count: int, one: Callable[[int], Awaitable[Any]], at_once: int = AT_ONCE) -> None:
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(worker() for _ in range(at_once)))


@contextmanager
def _journal(path: Path | None = None) -> Iterator[TurnJournal]:
    directory = Path(tempfile.mkdtemp()) if path is None else path
    try:
        with TurnJournal(directory / "episodes.jsonl") as journal:
            yield journal
    finally:
        if path is None:
            shutil.rmtree(directory, ignore_errors=True)


# ── memory of many at once ───────────────────────────────────────────────────────────────────────────────────────────


def _in_flight(quick: bool) -> Row:
    """What an episode in the middle of its first tool call takes, beside its messages."""
    count = 100 if quick else 4_000
    taken = run_sync(lambda: _waiting(count))
    what = f"memory of one of {count:,} episodes in flight"
    return Row(what, taken / count / 1024, f"{taken / 2**20:.0f} MiB in all", at_most=IN_FLIGHT_KB, unit="KiB")


async def _waiting(count: int) -> float:
    started, go = 0, asyncio.Event()

    class Waiting(Counter):
        @tool
        async def add(self, amount: int) -> int:
            """Add to the number, when everybody is there."""
            nonlocal started
            started += 1
            await go.wait()
            return amount

    samples = [sample(number) for number in range(count)]
    play = Episodes(Model(2), Sampling(), None, environment_of(Waiting), CONFIG)
    gc.collect()
    before = _resident()
    tasks = [asyncio.create_task(play(each, [0])) for each in samples]
    while started < count:
        await asyncio.sleep(0)
    gc.collect()
    taken = _resident() - before
    go.set()
    await asyncio.gather(*tasks)
    return max(0.0, taken)


def _resident() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    return float(pages * resource.getpagesize())


# ── no barrier between episodes ──────────────────────────────────────────────────────────────────────────────────────


def _schedule(quick: bool) -> Row:
    """Tools that take log-normal times, so many episodes at a time, beside a list schedule that knows the times."""
    episodes, at_once, mean = (20, 8, 0.002) if quick else (400, 64, 0.02)
    dice = random.Random(3)
    times = [[dice.lognormvariate(0, 1) * mean for _ in range(7)] for _ in range(episodes)]
    ideal = _list_schedule([sum(each) for each in times], at_once)
    wall = run_sync(lambda: _slept(times, at_once))
    context = f"{wall:.2f} s of {ideal:.2f} s"
    return Row("log-normal tools, wall time of the ideal schedule", wall / ideal, context, at_most=SCHEDULE)


def _list_schedule(lengths: Sequence[float], at_once: int) -> float:
    free = [0.0] * at_once
    for length in lengths:
        first = min(range(at_once), key=free.__getitem__)
        free[first] += length
    return max(free)


async def _slept(times: Sequence[Sequence[float]], at_once: int) -> float:
    class Sleeping(Counter):
        def __init__(self, of: Sample | None) -> None:
            super().__init__(of)
            self.left = iter(times[int(of.id) if of is not None else 0])

        @tool
        async def add(self, amount: int) -> int:
            """Add to the number, after a while."""
            await asyncio.sleep(next(self.left))
            return amount

    play = Episodes(Model(8), Sampling(), None, environment_of(Sleeping), CONFIG)
    started = time.perf_counter()
    await _all(len(times), lambda number: play(sample(number), [0]), at_once)
    return time.perf_counter() - started


# ── going on after a crash ───────────────────────────────────────────────────────────────────────────────────────────


def _resume(quick: bool) -> list[Row]:
    """Half-done episodes of 20 turns: what is asked again, and what playing them again costs beside their tools."""
    episodes, turns, done = (10, 20, 10) if quick else (1_000, 20, 10)
    directory = Path(tempfile.mkdtemp())
    try:
        run_sync(lambda: _half_done(directory, episodes, turns, done))
        model = Model(turns)
        took = run_sync(lambda: _gone_on(directory, model, episodes, tool_seconds=0.0))
        missing = episodes * (turns - done)
        slow = 0.02
        again = run_sync(lambda: _gone_on(directory, Model(turns), episodes, tool_seconds=slow))
        ideal = slow * (turns - 1) * -(-episodes // AT_ONCE)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return [
        Row("requests of a resumed run, of the turns that are missing", model.asked / missing, f"{model.asked:,} of {missing:,}, {took:.1f} s", at_most=1.0),  # noqa: E501
        Row(f"playing turns again whose tools take {slow * 1e3:.0f} ms, of the tools' own time", again / ideal, f"{again:.2f} s of {ideal:.2f} s", at_most=AGAIN),  # noqa: E501
    ]  # fmt: skip


async def _half_done(directory: Path, episodes: int, turns: int, done: int) -> None:
    """Leave what a run leaves that was killed half-way: whole turns, and no rollout."""
    with _journal(directory) as journal:
        play = Episodes(Model(turns), Sampling(), None, environment_of(Counter), CONFIG, journal=journal)
        await _all(episodes, lambda number: play(sample(number), [0]))
    path = directory / "episodes.jsonl"
    kept = [line for line in path.read_bytes().splitlines(keepends=True) if json.loads(line)["turn"] < done]
    path.write_bytes(b"".join(kept))


async def _gone_on(directory: Path, model: Model, episodes: int, tool_seconds: float) -> float:
    class Slow(Counter):
        @tool
        async def add(self, amount: int) -> int:
            """Add to the number."""
            if tool_seconds:
                await asyncio.sleep(tool_seconds)
            self.value += amount
            return self.value

    copy = directory / "copy"
    copy.mkdir()
    shutil.copy(directory / "episodes.jsonl", copy)
    started = time.perf_counter()
    with _journal(copy) as journal:
        play = Episodes(model, Sampling(), None, environment_of(Slow), CONFIG, journal=journal)
        await _all(episodes, lambda number: play(sample(number), [0]))
    took = time.perf_counter() - started
    shutil.rmtree(copy)
    return took
