# SPDX-License-Identifier: Apache-2.0
"""The resource that is an episode on an HTTP server, against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from reward_kit.agent.resources import HttpRolloutResource
from reward_kit.errors import EnvironmentFailure
from reward_kit.http.retry import Timing
from reward_kit.models import Sample


class Server:
    """Counts up from the seed to three; every request is kept."""

    def __init__(self) -> None:
        self.episodes: dict[str, int] = {}
        self.heard: list[tuple[str, Any]] = []
        self.trouble: Any = None
        self.url = ""

    async def start(self, request: web.Request) -> web.Response:
        said = await request.json()
        self.heard.append(("start", said))
        key = f"episode-{len(self.heard)}"
        self.episodes[key] = said.get("seed", 0)
        return web.json_response({"episode_id": key, "observation": {"at": self.episodes[key]}})

    async def step(self, request: web.Request) -> web.Response:
        said = await request.json()
        self.heard.append(("step", said))
        if self.trouble is not None:
            trouble, self.trouble = self.trouble, None
            answer: web.Response = await trouble(request)
            return answer
        at = self.episodes[said["episode_id"]] = self.episodes[said["episode_id"]] + 1
        return web.json_response({"observation": {"at": at}, "is_done": at >= 3, "info": None})

    async def end(self, request: web.Request) -> web.Response:
        said = await request.json()
        self.heard.append(("end", said))
        del self.episodes[said["episode_id"]]
        return web.json_response({"message": "ended"})

    async def health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    served = Server()
    app = web.Application()
    app.router.add_post("/start_episode", served.start)
    app.router.add_post("/step", served.step)
    app.router.add_post("/end_episode", served.end)
    app.router.add_get("/health", served.health)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    served.url = f"http://127.0.0.1:{port}"
    yield served
    await runner.cleanup()


async def made(server: Server, **config: Any) -> HttpRolloutResource:
    resource = HttpRolloutResource()
    await resource.setup({"base_url": f"{server.url}/", **config})
    return resource


async def test_an_episode_begins_acts_and_ends_on_the_server(server: Server) -> None:
    resource = await made(server, start_params={"seed": 1}, prompt="Count.")
    assert await resource.is_healthy()
    await resource.begin(Sample(id="s", messages=[]))
    assert await resource.start() == 'Count.\n\n{"at": 1}'
    assert await resource.step("step", {"action": "up"}) == {"observation": {"at": 2}, "is_done": False}
    assert not await resource.is_over()
    assert (await resource.step("step", {"action": "up"}))["is_done"]
    assert await resource.is_over()
    with pytest.raises(ValueError, match="over"):  # and no new episode begins by itself
        await resource.step("step", {"action": "up"})
    assert await resource.get_observation() == {"at": 3}
    await resource.close()
    await resource.close()
    assert [what for what, _ in server.heard] == ["start", "step", "step"]


async def test_an_episode_that_is_given_up_is_ended_on_the_server(server: Server) -> None:
    resource = await made(server)
    await resource.step("step", {"action": 1})
    await resource.close()
    assert server.episodes == {}


async def test_a_fork_is_a_new_episode_or_refused(server: Server) -> None:
    base = await made(server, start_params={"seed": 0})
    one, other = await base.fork(), await base.fork()
    await one.step("step", {"action": 1})
    await other.begin(Sample(id="s", messages=[], columns={"seed": 2}))
    assert await other.start() == '{"at": 2}'
    assert one.episode_id != other.episode_id
    assert await one.get_observation() == {"at": 1}
    with pytest.raises(NotImplementedError, match="cannot be forked"):
        await one.fork()
    checkpoint = await one.checkpoint()
    await one.restore(checkpoint)  # nothing has happened since
    await one.step("step", {"action": 1})
    with pytest.raises(NotImplementedError, match="cannot go back"):
        await one.restore(checkpoint)
    for resource in (one, other, base):
        await resource.close()
    assert server.episodes == {}


async def test_tools_and_actions_are_those_of_the_config(server: Server) -> None:
    resource = await made(server, action_map={"left": 0, "right": 2})
    (tool,) = await resource.get_tools_spec()
    assert tool["function"]["parameters"]["properties"]["action"]["enum"] == ["left", "right"]
    await resource.step("step", {"action": "RIGHT"})
    assert server.heard[-1][1]["action"] == 2
    with pytest.raises(ValueError, match="'up'"):
        await resource.step("step", {"action": "up"})
    named = await made(server, tools=[{"name": "move", "description": "", "parameters": {"type": "object"}}])
    assert [tool["function"]["name"] for tool in await named.get_tools_spec()] == ["move"]
    await named.step("move", {"by": 3})
    assert server.heard[-1][1]["action"] == {"name": "move", "arguments": {"by": 3}}
    with pytest.raises(NotImplementedError, match="'fly'"):
        await named.step("fly", {})
    await resource.close()
    await named.close()


async def _refused(_: web.Request) -> web.Response:
    return web.json_response({"detail": "illegal move"}, status=422)


async def _broken(_: web.Request) -> web.Response:
    return web.Response(text="boom", status=500)


async def _nonsense(_: web.Request) -> web.Response:
    return web.Response(text="<html>")


async def _too_much(_: web.Request) -> web.Response:
    return web.Response(body=b"x" * (17 << 20))


async def _cut(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def _late(_: web.Request) -> web.Response:
    await asyncio.sleep(60)
    return web.Response()


@pytest.mark.parametrize("trouble", [_broken, _nonsense, _too_much, _cut, _late])
async def test_a_server_in_trouble_is_the_worlds_failure_and_asked_once(server: Server, trouble: Any) -> None:
    resource = await made(server, timeout=2)
    await resource.initialize()
    server.trouble = trouble
    with pytest.raises(EnvironmentFailure) as caught:
        await resource.step("step", {"action": 1})
    assert caught.value.retryable
    assert [what for what, _ in server.heard].count("step") == 1  # it may have been done
    await resource.close()


async def test_an_action_that_the_server_refuses_is_the_models_mistake(server: Server) -> None:
    resource = await made(server)
    await resource.initialize()
    server.trouble = _refused
    with pytest.raises(ValueError, match="illegal move"):
        await resource.step("step", {"action": 1})
    await resource.close()


async def test_a_server_that_is_not_there_is_tried_again_and_then_named() -> None:
    resource = HttpRolloutResource()
    await resource.setup({"base_url": "http://127.0.0.1:9", "max_retries": 2})
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    resource._timing = Timing(sleep=wait, random=lambda: 1.0)
    with pytest.raises(EnvironmentFailure, match=r"127\.0\.0\.1:9"):
        await resource.initialize()
    assert waits == [0.5, 1.0]  # before each further try
    assert not await resource.is_healthy()
    await resource.close()
