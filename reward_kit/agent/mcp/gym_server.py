# SPDX-License-Identifier: Apache-2.0
"""`McpGym` of the older public package: an environment with `reset` and `step` whose tools an MCP server offers.

    class Lake(McpGym):                              an adapter makes environments and steps them
        def _register_tools(self): …                 tools, as functions, by `@self.mcp.tool(name=…, description=…)`
        def format_observation(obs, env): …          what a model sees

    Lake(seed=7).run()                               sessions of 2025-11-25 with `/control/…`, and worlds by handle
    agent.environment: lake.py:Lake                  the same without a server: each episode has an environment

Rewards and ends are never among what a tool returns. Old clients read them from `/control/…` by the session's id; newer
ones, and our own agents, have them with the answer.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from reward_kit.agent.environment import Answer, Environment, World
from reward_kit.agent.mcp.protocol import encode, parse
from reward_kit.agent.mcp.server import MCP_PATHS, ToolServer, is_foreign, serve_http, serve_stdio, tell_address
from reward_kit.agent.tools import Hidden, Tool, tool, tool_of
from reward_kit.errors import RewardKitError, message_of
from reward_kit.http.server import serve_until_ended
from reward_kit.models import Message, Sample

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["EnvironmentAdapter", "McpGym", "control_plane_endpoint", "serve_gym"]

Function = TypeVar("Function", bound=Callable[..., Any])

_CONTROL_PATH = "_control_plane_path"
_SESSION = "Mcp-Session-Id"
_NOTHING_YET: Mapping[str, Any] = {
    "reward": 0.0, "terminated": False, "truncated": False, "info": {}, "step_count": 0, "total_reward": 0.0,
}  # fmt: skip


class EnvironmentAdapter(ABC):
    """How environments of one kind are made, stepped and closed."""

    @abstractmethod
    def create_environment(self, config: dict[str, Any] | None = None) -> Any:
        """An environment."""

    @abstractmethod
    def reset_environment(self, env: Any, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Its first observation, and what else it says."""

    @abstractmethod
    def step_environment(self, env: Any, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The observation, the reward, whether it is over, whether it was cut off, and what else it says."""

    @abstractmethod
    def close_environment(self, env: Any) -> None:
        """Give back what the environment holds."""

    @abstractmethod
    def parse_action(self, action_str: str) -> Any:
        """The action that a text means."""

    @abstractmethod
    def format_observation(self, observation: Any) -> Any:
        """An observation as plain data."""

    @abstractmethod
    def get_action_space_description(self) -> dict[str, Any]:
        """Which actions there are."""

    def create_environment_with_seed(
        self, config: dict[str, Any] | None = None, seed: int | None = None
    ) -> tuple[Any, Any, dict[str, Any]]:
        """An environment, begun."""
        env = self.create_environment(config)
        return (env, *self.reset_environment(env, seed))

    def get_default_config(self) -> dict[str, Any]:
        """What environments are made with."""
        return {}


def control_plane_endpoint(path: str) -> Callable[[Function], Function]:
    """Mark a method that says at `path` something about a session: it is handed `session_data`."""

    def mark(method: Function) -> Function:
        setattr(method, _CONTROL_PATH, path)
        return method

    return mark


class _Tools:
    """What a gym registers its tools with, as `self.mcp`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.registered: list[tuple[Callable[..., Any], tuple[str, ...]]] = []

    def tool(self, name: str | None = None, description: str | None = None, **_: Any) -> Callable[[Function], Function]:
        """Register a function. Its parameter `ctx`, or whichever is a `Context`, is no argument of the model's."""

        def register(function: Function) -> Function:
            hidden = tuple(name for name, kind in function.__annotations__.items() if _is_context(name, kind))
            annotation: Any = Hidden
            function.__annotations__.update(dict.fromkeys(hidden, annotation[Any]))
            self.registered.append((tool(name=name, description=description)(function), hidden))
            return function

        return register


def _is_context(name: str, kind: Any) -> bool:
    named = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    return name == "ctx" or named.rpartition(".")[2].partition("[")[0] == "Context"


class McpGym(Environment, ABC):
    """An environment whose episodes are sessions. Subclasses register tools and say what a model sees."""

    def __init__(self, server_name: str, adapter: EnvironmentAdapter, seed: int | None = None) -> None:
        """`seed` is for sessions that bring none of their own."""
        self.adapter = adapter
        self.seed = seed
        self.sessions: dict[str, dict[str, Any]] = {}
        self.mcp = _Tools(server_name)
        self._register_tools()

    @abstractmethod
    def _register_tools(self) -> None:
        """Register the tools: `@self.mcp.tool(name=…, description=…)`."""

    @staticmethod
    @abstractmethod
    def format_observation(obs: Any, env: Any) -> dict[str, Any]:
        """What a model sees of an observation. No rewards."""

    # ── what tools of a gym call ─────────────────────────────────────────────────────────────────────────────────────

    def _get_session_id(self, ctx: Any) -> str:
        session_id: str = ctx.session_id
        return session_id

    def _get_or_create_session(self, ctx: Any) -> dict[str, Any]:
        return self.sessions[self._get_session_id(ctx)]

    def _execute_session_environment_step(self, session_id: str, action: Any) -> dict[str, Any]:
        """Step a session's environment: what the model sees then."""
        session = self.sessions[session_id]
        env = session["env"]
        obs, reward, terminated, truncated, info = self.adapter.step_environment(env, action)
        session["obs"] = obs
        self._update_session_control_plane(session_id, float(reward), bool(terminated), bool(truncated), info)
        return self.format_observation(obs, env)

    def _update_session_control_plane(
        self, session_id: str, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> None:
        """Note what a step was worth, and whether it was the last."""
        plane = self._get_session_control_plane_from_data(self.sessions[session_id])
        self.sessions[session_id]["session_data"]["control_plane"] = {
            "reward": reward, "terminated": terminated, "truncated": truncated, "info": info,
            "step_count": plane["step_count"] + 1, "total_reward": plane["total_reward"] + reward,
        }  # fmt: skip

    def _get_session_control_plane_from_data(self, session_data: Mapping[str, Any]) -> dict[str, Any]:
        return {**_NOTHING_YET, **session_data["session_data"].get("control_plane", {})}

    def get_control_plane_state(self, session_id: str) -> dict[str, Any] | None:
        """What a session's steps were worth; None where there is no such session."""
        session = self.sessions.get(session_id)
        return None if session is None else self._get_session_control_plane_from_data(session)

    def _new_env(self, seed: int | None = None) -> tuple[Any, Any, dict[str, Any]]:
        """An environment of a session, begun."""
        config = self.adapter.get_default_config()
        return self.adapter.create_environment_with_seed(config, seed=seed)

    # ── what is said beside the protocol ─────────────────────────────────────────────────────────────────────────────

    @control_plane_endpoint("/control/reward")
    def get_reward_endpoint(self, session_data: dict[str, Any]) -> dict[str, Any]:
        """What the last step was worth."""
        return self._told_of(session_data, "reward", "step_count")

    @control_plane_endpoint("/control/status")
    def get_status_endpoint(self, session_data: dict[str, Any]) -> dict[str, Any]:
        """Whether it is over."""
        return self._told_of(session_data, "terminated", "truncated", "step_count", "total_reward")

    @control_plane_endpoint("/control/info")
    def get_info_endpoint(self, session_data: dict[str, Any]) -> dict[str, Any]:
        """What else the environment says."""
        info: dict[str, Any] = self._get_session_control_plane_from_data(session_data)["info"]
        return info

    @control_plane_endpoint("/control/initial_state")
    def get_initial_state_endpoint(self, session_data: dict[str, Any]) -> dict[str, Any]:
        """What a model sees before it acts."""
        return self.format_observation(session_data["obs"], session_data["env"])

    def _told_of(self, session_data: dict[str, Any], *names: str) -> dict[str, Any]:
        plane = self._get_session_control_plane_from_data(session_data)
        return {name: plane[name] for name in names}

    # ── as an environment, and as a server ───────────────────────────────────────────────────────────────────────────

    async def open(self, sample: Sample) -> World:
        """A session. The columns of the sample are its config; the column `seed` is its seed."""
        return await asyncio.to_thread(_Session, self, sample)

    def run(self, transport: str = "streamable-http", *, host: str = "127.0.0.1", port: int | None = None) -> None:
        """Serve until the process is ended: over HTTP (the port is 8000, or that of PORT), or with `stdio` one session
        over standard input and output."""
        if transport == "stdio":
            stdout = os.fdopen(os.dup(1), "wb")
            os.dup2(2, 1)  # what a tool prints must not come between the messages
            asyncio.run(serve_stdio(ToolServer(self), sys.stdin.buffer, stdout))
            return
        port = int(os.environ.get("PORT", "8000")) if port is None else port
        serve_until_ended(serve_gym(self), host, port, tell_address)


class _Session(World):
    """One session of a gym."""

    def __init__(self, gym: McpGym, sample: Sample) -> None:
        self.id = uuid.uuid4().hex
        self._gym = gym
        seed = sample.columns.get("seed", gym.seed)
        env, obs, _ = gym._new_env(seed=seed)
        self.data = {"env": env, "obs": obs, "session_data": {}, "session_id": self.id}
        gym.sessions[self.id] = self.data
        self._tools = [*self._bound(seed, sample.columns)]

    def _bound(self, seed: Any, columns: Mapping[str, Any]) -> list[Tool]:
        """The gym's tools, with what those of the older package find in their context."""
        extra = {"seed": seed, "config": {name: held for name, held in columns.items() if name != "seed"}}
        client = SimpleNamespace(clientInfo=SimpleNamespace(name="reward-kit", version="", _extra=extra))
        ctx = SimpleNamespace(session_id=self.id, session=SimpleNamespace(client_params=client))
        return [tool_of(function, dict.fromkeys(hidden, ctx)) for function, hidden in self._gym.mcp.registered]

    def start(self) -> str:
        """What a model sees before it acts."""
        return json.dumps(self._gym.format_observation(self.data["obs"], self.data["env"]), default=_plain)

    async def answer(self, message: Message) -> Answer:
        """What came of the calls; their steps are worth what the environment says."""
        before = self._gym._get_session_control_plane_from_data(self.data)
        answer = await self._usual_answer(message)
        now = self._gym._get_session_control_plane_from_data(self.data)
        if now["step_count"] > before["step_count"]:
            answer.reward = now["total_reward"] - before["total_reward"]
        answer.done = answer.done or now["terminated"] or now["truncated"]
        return answer

    def facts(self) -> dict[str, Any]:
        """What the steps were worth, and whether it is over."""
        plane: dict[str, Any] = json.loads(
            json.dumps(self._gym._get_session_control_plane_from_data(self.data), default=_plain)
        )
        return plane

    def close(self) -> None:
        """Close the environment."""
        self._gym.sessions.pop(self.id, None)
        self._gym.adapter.close_environment(self.data["env"])


def _plain(value: Any) -> Any:
    """What JSON does not know: numbers and arrays of others."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


# ── over HTTP, for clients of both eras ──────────────────────────────────────────────────────────────────────────────


class _Sessions:
    """Clients of 2025-11-25 and before: each has a server with one world, by the session's id."""

    def __init__(self, gym: McpGym) -> None:
        self._gym = gym
        self._servers: dict[str, ToolServer] = {}

    async def post(self, request: web.Request, body: bytes, method: Any) -> web.Response:
        from aiohttp import web

        session_id = request.headers.get(_SESSION)
        if method == "initialize":
            session_id = await self._begun(body)
        server = self._servers.get(session_id or "")
        if server is None:
            return web.Response(status=404, text="There is no such session. Begin one with `initialize`.")
        reply = await server.reply_to(body)
        if reply is None:
            return web.Response(status=202)
        return web.Response(body=encode(reply), content_type="application/json", headers={_SESSION: session_id or ""})

    async def _begun(self, body: bytes) -> str:
        params = (parse(body) or {}).get("params") or {}
        told = params.get("clientInfo", {}).get("_extra") or {}
        config = told.get("config")
        row = {**(config if isinstance(config, dict) else {}), **({"seed": told["seed"]} if "seed" in told else {})}
        server = ToolServer(self._gym, row=row)
        world = await server.begin()
        self._servers[world.id] = server  # type: ignore[attr-defined]  # worlds of a gym are sessions
        return str(world.id)  # type: ignore[attr-defined]  # the same

    async def delete(self, request: web.Request) -> web.Response:
        from aiohttp import web

        server = self._servers.pop(request.headers.get(_SESSION, ""), None)
        if server is not None:
            await server.close()
        return web.Response(status=200 if server is not None else 404)

    async def control(self, method: Callable[..., Any], request: web.Request) -> web.Response:
        from aiohttp import web

        session = self._gym.sessions.get(request.headers.get(_SESSION, ""))
        if session is None:
            told, status = {"error": "There is no such session. Name one in the header mcp-session-id."}, 404
        else:
            said = method(session_data=session)
            told, status = (await said if inspect.isawaitable(said) else said), 200
        return web.json_response(told, status=status, dumps=partial(json.dumps, default=_plain))

    async def close(self) -> None:
        servers, self._servers = self._servers, {}
        for server in servers.values():
            await server.close()


def serve_gym(gym: McpGym) -> web.Application:
    """An application that serves a gym's sessions and worlds at /mcp, and what is said of sessions at `/control/…`."""
    from aiohttp import web

    app, sessions = serve_http(ToolServer(gym, handles=True)), _Sessions(gym)

    @web.middleware
    async def of_either_era(request: web.Request, handler: Any) -> web.StreamResponse:
        if request.method == "POST" and request.path in MCP_PATHS and not is_foreign(request.headers):
            body = await request.read()
            method = (parse(body) or {}).get("method")
            if method == "initialize" or _SESSION in request.headers:
                try:
                    return await sessions.post(request, body, method)
                except RewardKitError as error:
                    return web.Response(status=500, text=message_of(error))
        response: web.StreamResponse = await handler(request)
        return response

    async def close(_: web.Application) -> None:
        await sessions.close()

    app.middlewares.append(of_either_era)
    app.on_cleanup.insert(0, close)
    for path in MCP_PATHS:
        app.router.add_delete(path, sessions.delete)
    for _, method in inspect.getmembers(gym, inspect.ismethod):
        if hasattr(method, _CONTROL_PATH):
            app.router.add_get(getattr(method, _CONTROL_PATH), partial(sessions.control, method))
    return app
