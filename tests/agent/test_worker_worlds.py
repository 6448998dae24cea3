# SPDX-License-Identifier: Apache-2.0
"""Worlds in processes of their own: nothing is shared, and whatever one does, the others do not notice."""

from __future__ import annotations

import asyncio
import json
import os
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reward_kit.agent.calls import ToolRunner
from reward_kit.agent.environment import Answer, Attached, World
from reward_kit.agent.tools import ToolError, tool, tool_of
from reward_kit.agent.worker_worlds import in_worker
from reward_kit.errors import ConfigError, EnvironmentFailure
from reward_kit.models import Message, Sample
from reward_kit.utils.module_loader import load_object
from tests.agent import unruly_worlds
from tests.agent.unruly_worlds import Changing, Kept, Unruly

UNRULY = "tests.agent.unruly_worlds:Unruly"


def sample(name: str = "a", columns: dict[str, Any] | None = None) -> Sample:
    return Sample(id=name, messages=[], columns=columns or {})


def calling(*names: str, **arguments: Any) -> Message:
    calls = [
        {"id": f"c{place}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for place, name in enumerate(names)
    ]
    return Message.model_validate({"role": "assistant", "content": None, "tool_calls": calls})


async def outcome(world: World, *names: str, **arguments: Any) -> tuple[str, str | None]:
    """What the model is shown of one call, and the kind of error that is noted."""
    world.runner.begin_turn()
    answer = await world.answer(calling(*names, **arguments))
    return answer.messages[0].text, world.runner.uses[0].error


@asynccontextmanager
async def two_worlds(environment: Any = UNRULY, **options: Any) -> AsyncIterator[tuple[World, World]]:
    opened = in_worker(environment, **options)
    try:
        yield await opened.open(sample()), await opened.open(sample())
    finally:
        await opened.close()


async def is_well(world: World) -> bool:
    return await outcome(world, "count") == ("1", None)


# ── nothing is shared ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_module_globals_belong_to_one_episode() -> None:
    async with two_worlds() as (one, other):
        assert [await outcome(one, "count") for _ in range(3)] == [("1", None), ("2", None), ("3", None)]
        assert await outcome(other, "count") == ("1", None)
        assert (await one.facts(), await other.facts()) == ({"value": 3}, {"value": 1})
    assert unruly_worlds.COUNT == {"value": 0}


async def test_the_global_generator_is_seeded_by_the_sample() -> None:
    async with two_worlds() as (one, other):
        drawn = [(await world.start(), await outcome(world, "draw")) for world in (one, other)]
    async with two_worlds() as (again, _):
        drawn.append((await again.start(), await outcome(again, "draw")))
    assert drawn[0] == drawn[1] == drawn[2]
    environment = in_worker(UNRULY)
    another = await environment.open(sample("b"))
    assert await outcome(another, "draw") != drawn[0][1]
    await environment.close()


async def test_params_reach_the_world_and_tools_keep_their_settings() -> None:
    environment = in_worker(Unruly, {"step": 5})
    world = await environment.open(sample())
    assert await outcome(world, "count") == ("5", None)
    assert {tool.name: tool.timeout for tool in world.tools}["waits"] == 0.2
    assert [tool.spec for tool in world.tools] == [tool.spec for tool in Unruly(sample()).tools]
    await environment.close()


async def test_several_calls_of_a_turn_are_answered_in_order() -> None:
    async with two_worlds() as (world, _):
        world.runner.begin_turn()
        answer = await world.answer(calling("count", "draw", "nothing", "count"))
    assert [message.tool_call_id for message in answer.messages] == ["c0", "c1", "c2", "c3"]
    assert [use.error for use in world.runner.uses] == [None, None, "unknown_tool", None]
    assert (answer.messages[0].text, answer.messages[3].text) == ("1", "2")


async def test_tools_that_change_are_seen_to_change() -> None:
    environment = in_worker(Changing)
    world = await environment.open(sample())
    assert [tool.name for tool in world.tools] == []
    answer = await world.answer(Message(role="assistant", content="hello"))
    assert answer == Answer([Message(role="user", content="more")], 0.5, False, "t1")
    assert [tool.name for tool in world.tools] == ["first"]
    assert await outcome(world, "first") == ("1", None)
    assert [tool.name for tool in world.tools] == ["first", "second"]
    assert await world.tools[1].call({}) == "2"
    await environment.close()


async def test_a_snapshot_crosses_from_one_process_to_another() -> None:
    environment = in_worker(Kept)
    one, other = await environment.open(sample()), await environment.open(sample())
    assert one.durability == "snapshot"
    assert await one.answer(Message(role="assistant", content="a")) == "a"
    await other.restore(await one.snapshot())
    assert await other.answer(Message(role="assistant", content="b")) == "a b"
    await environment.close()


async def test_an_approval_is_asked_for_here() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def approve(name: str, arguments: dict[str, Any]) -> str | None:
        asked.append((name, arguments))
        return "not today" if name == "draw" else None

    async with two_worlds() as (world, _):
        world.runner = ToolRunner(approve)
        answer = await world.answer(calling("count", "draw"))
    assert asked == [("count", {}), ("draw", {})]
    assert answer.messages[0].text == "1" and "not today" in answer.messages[1].text
    assert [use.error for use in world.runner.uses] == [None, "refused"]


async def test_tools_that_are_attached_here_run_here() -> None:
    here: list[int] = []

    @tool(on_the_loop=True)
    def note(number: int) -> str:
        """Note a number."""
        if number < 0:
            raise ToolError("too small", "refused")
        here.append(number)
        return f"{len(here)} noted"

    async with two_worlds() as (world, _):
        world.attach(Attached([tool_of(note)], facts=lambda: {"noted": here}))
        world.runner.begin_turn()
        answer = await world.answer(calling("count", "note", number=1))
        assert [use.error for use in world.runner.uses] == ["schema", None]
        assert answer.messages[1].text == "1 noted"
        assert await outcome(world, "note", number=-1) == (
            '{"error":{"kind":"refused","message":"too small"}}',
            "refused",
        )
        assert [offered.name for offered in world.offered][-1] == "note"
        assert "note" not in [offered.name for offered in world.tools]
        assert await world.all_facts() == {"value": 0, "noted": [1]}


async def test_a_closure_will_do() -> None:
    step = 42
    environment = in_worker(lambda sample: Unruly(sample, step))
    assert await outcome(await environment.open(sample()), "count") == ("42", None)
    await environment.close()


async def test_a_world_of_a_file_will_do(tmp_path: Path) -> None:
    file = tmp_path / "counter.py"
    file.write_text(
        textwrap.dedent(
            '''
            from reward_kit.agent.environment import World
            from reward_kit.agent.tools import tool

            class Counter(World):
                def __init__(self, sample):
                    self.value = 40

                @tool
                def count(self) -> int:
                    """Count."""
                    self.value += 2
                    return self.value
            '''
        )
    )
    for named in (f"{file}:Counter", load_object(f"{file}:Counter")):
        environment = in_worker(named)
        world = await environment.open(sample())
        assert await outcome(world, "count") == ("42", None)
        await environment.close()


# ── whatever a tool does ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "error", "shown"),
    [
        ("large", "output_cut", "characters left out"),
        ("garbage", None, "�� café"),
        ("surrogate", None, "half ?"),
        ("live", "output", "cannot be shown"),
        ("waits", "timeout", "did not answer within 0.2 seconds"),
        ("refuses", "refused", "no"),
        ("nothing", "unknown_tool", "no tool 'nothing'"),
    ],
)
async def test_a_tool_that_misbehaves_is_told_to_the_model(name: str, error: str | None, shown: str) -> None:
    async with two_worlds() as (world, other):
        text, kind = await outcome(world, name)
        assert (kind, shown in text, len(text) < 20_000) == (error, True, True)
        assert await is_well(world) and await is_well(other)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("exits", "its process exited with code 3"),
        ("crashes", "its process was killed by signal 11"),
        ("blocks", "did not react for 0.5 s"),
    ],
)
async def test_a_process_that_is_lost_fails_its_own_episode(name: str, why: str) -> None:
    async with two_worlds(patience=0.5) as (world, other):
        with pytest.raises(EnvironmentFailure, match=why) as failure:
            await world.answer(calling(name))
        assert failure.value.retryable
        with pytest.raises(EnvironmentFailure, match="is gone"):
            await world.facts()
        await world.close()
        assert await is_well(other)


async def test_calls_beside_a_crash_are_not_waited_for_either() -> None:
    async with two_worlds() as (world, other):
        results = await asyncio.gather(
            world.answer(calling("waits")), world.answer(calling("exits")), return_exceptions=True
        )
        assert all(isinstance(result, EnvironmentFailure) for result in results)
        assert await is_well(other)


async def test_memory_is_limited_for_each_world() -> None:
    async with two_worlds(memory_mb=300) as (world, other):
        text, kind = await outcome(world, "remembers", size=1 << 30)
        assert kind == "exception" and "MemoryError" in text
        assert await is_well(other)


async def test_an_operation_that_takes_too_long_ends_the_world() -> None:
    environment = in_worker(UNRULY, patience=0.5)
    world = await environment.open(sample(columns={"hangs": True}))
    with pytest.raises(EnvironmentFailure, match="`facts` its process did not react"):
        await world.facts()
    await environment.close()


@pytest.mark.parametrize(
    ("column", "why"), [("raises", "ValueError: cannot be opened"), ("dies", "exited with code 7")]
)
async def test_a_world_that_cannot_be_opened_leaves_its_place_free(column: str, why: str) -> None:
    environment = in_worker(UNRULY, most=1)
    for _ in range(2):
        with pytest.raises(EnvironmentFailure, match=why):
            await environment.open(sample(columns={column: True}))
    assert await is_well(await environment.open(sample()))
    await environment.close()


async def test_an_environment_that_cannot_be_loaded_is_a_mistake_in_the_config() -> None:
    with pytest.raises(ConfigError, match="Nothing"):
        await in_worker("tests.agent.unruly_worlds:Nothing").open(sample())


# ── processes come and go ────────────────────────────────────────────────────────────────────────────────────────────


async def test_at_most_so_many_are_open() -> None:
    environment = in_worker(UNRULY, most=2)
    one, _ = await environment.open(sample()), await environment.open(sample())
    third = asyncio.create_task(environment.open(sample()))
    assert not (await asyncio.wait({third}, timeout=0.1))[0]
    await one.close()
    assert await is_well(await third)
    await environment.close()


async def test_no_process_is_left_behind() -> None:
    environment = in_worker(UNRULY)
    worlds = [await environment.open(sample()) for _ in range(3)]
    pids: list[int] = [world._pid for world in worlds]  # type: ignore[attr-defined]
    assert len(set(pids)) == 3
    await worlds[0].close()
    await environment.close()
    async with asyncio.timeout(60):
        while any(_is_alive(pid) for pid in pids):
            await asyncio.sleep(0.01)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_host_that_was_killed_is_replaced() -> None:
    environment = in_worker(UNRULY)
    world = await environment.open(sample())
    (host,) = environment._hosts
    os.killpg(host._process.pid, 9)
    with pytest.raises(EnvironmentFailure, match="is gone"):
        await world.answer(calling("waits"))
    async with asyncio.timeout(60):
        while host.is_alive:
            await asyncio.sleep(0.01)
    assert await is_well(await environment.open(sample()))
    await environment.close()


async def test_an_environment_with_threads_gets_a_process_for_each_world(tmp_path: Path) -> None:
    file = tmp_path / "threaded.py"
    file.write_text(
        "import threading, time\n"
        "from tests.agent.unruly_worlds import Unruly\n"
        "threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
    )
    environment = in_worker(f"{file}:Unruly")
    one, other = await environment.open(sample()), await environment.open(sample())
    assert len(environment._hosts) == 2
    assert await is_well(one) and await is_well(other)
    with pytest.raises(EnvironmentFailure):
        await one.answer(calling("exits"))
    assert await outcome(other, "count") == ("2", None)
    await environment.close()


def test_an_environment_serves_one_event_loop_after_another() -> None:
    environment = in_worker(UNRULY)

    async def once() -> bool:
        well = await is_well(await environment.open(sample()))
        await environment.close()
        return well

    assert asyncio.run(once()) and asyncio.run(once())
