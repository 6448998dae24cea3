# SPDX-License-Identifier: Apache-2.0
"""Worlds that callers elsewhere step through: over HTTP, over a WebSocket, and when they are closed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from reward_kit.config_models import AgentConfig
from reward_kit.serving.world_settings import WorldsSettings
from reward_kit.serving.worlds import Worlds
from tests.remote.live_server import live_server
from tests.serving import safe_worlds

REWARDS = "tests.serving.safe_worlds:opened"
ENVIRONMENT = "tests.serving.safe_worlds:Safe"
ROW = {"prompt": "Open it.", "ground_truth": 7}
RIGHT: dict[str, Any] = {"tool_name": "dial", "arguments": {"number": 7}}
WRONG: dict[str, Any] = {"tool_name": "dial", "arguments": {"number": 1}}


@pytest.fixture(autouse=True)
def every_world_is_closed() -> Iterator[None]:
    yield
    assert safe_worlds.open_worlds == []


@pytest.fixture
def address() -> Iterator[str]:
    with live_server({"opened": REWARDS}, worlds={"environment": ENVIRONMENT, "sessions": 3}) as url:
        yield url


async def ask(url: str, body: Any, method: str = "POST") -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.request(method, url, json=body) as reply:
        return reply.status, await reply.json()


async def reset(address: str, **row: Any) -> tuple[str, dict[str, Any]]:
    status, told = await ask(f"{address}/reset", {**ROW, **row})
    assert status == 200, told
    return told["metadata"]["session_id"], told


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_episode_over_http(address: str) -> None:
    session, told = await reset(address, seed=3)
    assert told["observation"]["text"] == "A safe." and (told["reward"], told["done"]) == (None, False)
    assert [each["function"]["name"] for each in told["observation"]["tools"]] == ["dial"]
    status, told = await ask(f"{address}/step", {"session_id": session, "action": WRONG})
    assert (status, told["reward"], told["done"], told["observation"]["text"]) == (200, -0.5, False, "nothing")
    text = '<tool_call>{"name": "dial", "arguments": {"number": 7}}</tool_call>'
    status, told = await ask(f"{address}/step", {"session_id": session, "action": text})
    assert (told["reward"], told["done"], told["metadata"]["ended"]) == (1.0, True, "done")
    status, state = await ask(f"{address}/state?session_id={session}", None, "GET")
    assert state["step_count"] == 2 and state["rewards"] == [-0.5, 1.0] and state["done"]
    status, told = await ask(f"{address}/step", {"session_id": session, "action": RIGHT})
    assert status == 409 and "reset" in told["detail"]
    status, told = await ask(f"{address}/reset", {**ROW, "session_id": session})
    assert status == 200 and not told["done"]
    assert await ask(f"{address}/close", {"session_id": session}) == (200, {})
    assert (await ask(f"{address}/step", {"session_id": session, "action": RIGHT}))[0] == 404


async def test_each_session_has_a_world_of_its_own_and_there_are_so_many(address: str) -> None:
    sessions = [(await reset(address, ground_truth=number))[0] for number in range(3)]
    status, told = await ask(f"{address}/reset", ROW)
    assert status == 503 and "Too many" in told["detail"]
    for number, session in enumerate(sessions):
        action = {"tool_name": "dial", "arguments": {"number": number}}
        _, told = await ask(f"{address}/step", {"session_id": session, "action": action})
        assert told["reward"] == 1.0
    await ask(f"{address}/close", {"session_id": sessions[0]})
    await reset(address)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("step", {}), ("step", {"session_id": "x", "action": RIGHT}), ("step", []), ("reset", [1]),
        ("reset", {"prompt": 3}),
        ("reset", {"prompt": [{"role": 3}]}), ("reset", {"prompt": [3]}), ("step", {"session_id": 3, "action": None}),
    ],
)  # fmt: skip
async def test_what_cannot_be_understood_is_a_4xx(address: str, path: str, body: Any) -> None:
    status, told = await ask(f"{address}/{path}", body)
    assert 400 <= status < 500 and told["detail"].endswith(".")


async def test_an_action_that_says_nothing_is_refused_and_the_episode_goes_on(address: str) -> None:
    session, _ = await reset(address)
    odd: list[Any] = [None, 3, {}, {"role": 3}, []]
    for action in odd:
        status, _ = await ask(f"{address}/step", {"session_id": session, "action": action})
        assert status == 422
    _, told = await ask(f"{address}/step", {"session_id": session, "action": RIGHT})
    assert told["reward"] == 1.0


async def test_a_world_that_fails_is_an_error_and_never_a_reward(address: str) -> None:
    status, told = await ask(f"{address}/reset", {**ROW, "fails": "open"})
    assert status == 503 and "no safe" in told["detail"] and "reward" not in told
    session, _ = await reset(address, fails="later")
    status, told = await ask(f"{address}/step", {"session_id": session, "action": RIGHT})
    assert status == 503 and "reward" not in told


# ── judged ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_reward_judges_the_episode_in_the_end() -> None:
    worlds = {"environment": ENVIRONMENT, "reward": "opened", "agent": {"max_turns": 2}}
    with live_server({"opened": REWARDS}, worlds=worlds) as address:
        session, _ = await reset(address)
        _, told = await ask(f"{address}/step", {"session_id": session, "action": RIGHT})
        assert (told["reward"], told["metadata"]["step_reward"], told["metadata"]["reason"]) == (10.0, 1.0, "looked")
        session, _ = await reset(address)
        for _ in range(2):
            _, told = await ask(f"{address}/step", {"session_id": session, "action": WRONG})
        assert (told["done"], told["reward"], told["metadata"]["ended"]) == (True, 0.0, "max_turns")
        session, _ = await reset(address, fails="verdict")
        status, told = await ask(f"{address}/step", {"session_id": session, "action": RIGHT})
        assert status == 500 and "cannot tell" in told["detail"]


# ── over a WebSocket ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_episode_over_a_socket_and_its_world_ends_with_it(address: str) -> None:
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{address}/ws") as socket:

        async def say(message: Any) -> Any:
            await (socket.send_str(message) if isinstance(message, str) else socket.send_json(message))
            return await socket.receive_json()

        assert (await say({"type": "step", "data": RIGHT}))["data"]["code"] == "VALIDATION_ERROR"
        told = await say({"type": "reset", "data": ROW})
        assert told["type"] == "observation" and told["data"]["observation"]["text"] == "A safe."
        assert len(safe_worlds.open_worlds) == 1
        for odd in ("{", "3", "[]", {"type": "dance"}, {"type": "step"}, {"type": "reset", "data": 3}):
            assert (await say(odd))["type"] == "error"
        assert (await say({"type": "state"}))["data"]["step_count"] == 0
        told = await say({"type": "step", "data": RIGHT})
        assert told["data"]["reward"] == 1.0 and told["data"]["done"]
    async with asyncio.timeout(30):
        while safe_worlds.open_worlds:
            await asyncio.sleep(0.01)


async def test_a_caller_that_vanishes_leaves_no_world_behind_and_capacity_comes_back(address: str) -> None:
    for _ in range(5):
        async with aiohttp.ClientSession() as session:
            socket = await session.ws_connect(f"{address}/ws")
            await socket.send_json({"type": "reset", "data": ROW})
            assert (await socket.receive_json())["type"] == "observation"
            socket._response.connection.transport.abort()  # type: ignore[union-attr]  # no goodbye
        async with asyncio.timeout(30):
            while safe_worlds.open_worlds:
                await asyncio.sleep(0.01)


async def test_too_many_sockets_are_told_so(address: str) -> None:
    async with aiohttp.ClientSession() as session:
        sockets = [await session.ws_connect(f"{address}/ws") for _ in range(3)]
        for socket in sockets:
            await socket.send_json({"type": "reset", "data": ROW})
            await socket.receive_json()
        late = await session.ws_connect(f"{address}/ws")
        assert (await late.receive_json())["data"]["code"] == "CAPACITY_REACHED"
        for socket in (*sockets, late):
            await socket.close()
    async with asyncio.timeout(30):
        while safe_worlds.open_worlds:
            await asyncio.sleep(0.01)


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("idle", "longest"), [(10.0, 1000.0), (1000.0, 10.0)])
async def test_sessions_that_are_idle_or_old_are_closed(idle: float, longest: float) -> None:
    now = [0.0]
    settings = WorldsSettings(environment=ENVIRONMENT, idle_seconds=idle, longest_seconds=longest, agent=AgentConfig())
    worlds = Worlds(settings, clock=lambda: now[0])
    async with worlds.open():
        session = worlds._begin()
        async with worlds._using(session.id):
            await session.reset(ROW)
        now[0] = 9.0
        await worlds.close_old()
        assert len(worlds) == 1
        now[0] = 20.0
        async with session.busy:  # a step is under way
            await worlds.close_old()
            assert len(worlds) == 1
        await worlds.close_old()
        assert len(worlds) == 0 and safe_worlds.open_worlds == []


async def test_a_socket_that_says_nothing_is_closed() -> None:
    with live_server({"opened": REWARDS}, worlds={"environment": ENVIRONMENT, "idle_seconds": 0.2}) as address:
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{address}/ws") as socket:
            assert (await socket.receive_json())["data"]["code"] == "SESSION_ERROR"
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
