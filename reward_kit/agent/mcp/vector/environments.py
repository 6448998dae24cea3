# SPDX-License-Identifier: Apache-2.0
"""Many environments on one MCP server, each with a session or a world of its own.

Old servers (2025-11-25 and before) tell rewards and ends beside the protocol, by `/control/…` and the session's id.
Newer ones have no sessions: there, a server made of our own environments opens a world for each, and tells rewards in
`_meta`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from reward_kit.agent.mcp.client import InputRequired, McpClient
from reward_kit.agent.mcp.contract import McpServerFailure, ReplyTooLarge
from reward_kit.agent.mcp.http import HttpServer
from reward_kit.agent.mcp.protocol import RpcError, client_info
from reward_kit.agent.mcp.results import CallResult
from reward_kit.agent.mcp.vector.types import DatasetRow, MCPSession, MCPToolCall
from reward_kit.errors import ConfigError
from reward_kit.http.faults import HttpFault, moved_to

__all__ = ["GeneralMCPVectorEnv", "StepResult", "make"]

_START_SECONDS = 60.0
_CALL_SECONDS = 300.0
_CONTROL_SECONDS = 30.0
_OPEN, _CLOSE, _HANDLE = "open_world", "close_world", "world_id"
_OK, _NOT_FOUND = 200, 404
_ENDS = {"_no_tool_call": "no_tool_call", "_playback_terminate": "playback_terminated"}


class StepResult(NamedTuple):
    """What came of one call in one environment."""

    observation: Any
    reward: float
    done: bool
    info: dict[str, Any]


def make(
    env_spec: str,
    dataset: list[dict[str, Any]] | None = None,
    n: int | None = None,
    seeds: list[int] | None = None,
    model_id: str = "unknown",
    user_prompt_formatter: Callable[..., Any] | None = None,
) -> GeneralMCPVectorEnv:
    """Environments on the MCP server at `env_spec`: one for each row of `dataset`, or `n` of them with `seeds`."""
    if not env_spec.startswith(("http://", "https://")):
        raise ConfigError(
            f"{env_spec!r} is not the address of an MCP server. Give one such as 'http://localhost:8000/mcp'."
        )
    rows = [_row(given, number) for number, given in enumerate(dataset or ())] or _rows_without_dataset(n, seeds)
    base_url = env_spec if env_spec.endswith("/") else f"{env_spec}/"
    sessions = [MCPSession(f"session_{number}", base_url, row.seed, model_id, row) for number, row in enumerate(rows)]
    return GeneralMCPVectorEnv(sessions, rows, user_prompt_formatter)


def _row(given: Mapping[str, Any], number: int) -> DatasetRow:
    context = dict(given.get("environment_context") or {})
    return DatasetRow(
        id=str(given.get("id", f"row_{number}")),
        seed=context.get("seed", given.get("seed")),
        system_prompt=given.get("system_prompt", ""),
        user_prompt_template=given.get("user_prompt_template", "{observation}"),
        environment_context=context,
    )


def _rows_without_dataset(n: int | None, seeds: Sequence[int] | None) -> list[DatasetRow]:
    if n is None and not seeds:
        raise ConfigError("Neither `dataset` nor `n` nor `seeds` says how many environments to make. Give one of them.")
    chosen: list[int | None] = list(seeds or ()) or [None] * (n or 0)
    if n is not None and n != len(chosen):
        raise ConfigError(f"There are {len(chosen)} seeds for {n} environments. Give as many seeds, or leave `n` out.")
    return [DatasetRow(f"row_{number}", seed, "", "{observation}", {}) for number, seed in enumerate(chosen)]


class GeneralMCPVectorEnv:
    """Environments that are stepped together or one by one."""

    def __init__(
        self,
        sessions: list[MCPSession],
        dataset_rows: list[DatasetRow],
        user_prompt_formatter: Callable[..., Any] | None = None,
    ) -> None:
        """`user_prompt_formatter(template, observation, context)` makes the prompt of a turn."""
        if len(sessions) != len(dataset_rows):
            raise ConfigError(f"There are {len(sessions)} sessions for {len(dataset_rows)} rows. Give as many of both.")
        self.sessions = sessions
        self.dataset_rows = dataset_rows
        self.user_prompt_formatter = user_prompt_formatter or _prompt
        self.n = len(sessions)
        self.tool_schemas: list[list[dict[str, Any]]] = []
        self._servers: dict[str, HttpServer] = {}
        self._handles: dict[str, str] = {}
        self._without_control: set[str] = set()

    async def reset(self) -> tuple[list[Any], list[list[dict[str, Any]]], list[str]]:
        """Begin anew: the first observations, the tools, and the system prompts."""
        begun = await asyncio.gather(*(self._begin(session) for session in self.sessions))
        self.tool_schemas = [tools for _, tools in begun]
        return [seen for seen, _ in begun], self.tool_schemas, [row.system_prompt for row in self.dataset_rows]

    async def step(
        self, tool_calls: list[MCPToolCall | None]
    ) -> tuple[list[Any], list[float], list[bool], list[dict[str, Any]]]:
        """Make one call in each environment."""
        if len(tool_calls) != self.n:
            raise ConfigError(f"There are {len(tool_calls)} tool calls for {self.n} environments. Give one for each.")
        results = await asyncio.gather(*(self.step_one(index, call) for index, call in enumerate(tool_calls)))
        observations, rewards, dones, infos = (list(column) for column in zip(*results, strict=True))
        return observations, rewards, dones, infos

    async def step_one(self, index: int, tool_call: MCPToolCall | None) -> StepResult:
        """Make one call in one environment. One that has ended stays as it was."""
        session = self.sessions[index]
        if session.terminated:
            return StepResult(session.last_observation, 0.0, True, {})
        if tool_call is None or tool_call.tool_name in _ENDS:
            session.terminated = True
            why = "none_tool_call" if tool_call is None else _ENDS[tool_call.tool_name]
            return StepResult(session.last_observation, 0.0, True, {why: True})
        client: McpClient = session._mcp_session  # type: ignore[assignment]  # inherited: Optional[Any]
        handle = self._handles.get(session.session_id)
        arguments = tool_call.arguments if handle is None else {**tool_call.arguments, _HANDLE: handle}
        try:
            result = await client.call_tool(tool_call.tool_name, arguments, _CALL_SECONDS)
            observation = _observation(result)
        except (RpcError, ReplyTooLarge, InputRequired, TimeoutError) as error:
            result = CallResult("", is_error=True)
            observation = {"error": str(error) or "The tool did not answer in time."}
        stepped = await self._worth(session, result)
        session.last_observation, session.terminated = observation, stepped.done
        return stepped._replace(observation=observation)

    def format_user_prompts(self, observations: list[Any]) -> list[Any]:
        """What the model is told in each environment."""
        rows = zip(self.dataset_rows, observations, strict=True)
        return [
            self.user_prompt_formatter(row.user_prompt_template, seen, row.environment_context) for row, seen in rows
        ]

    async def close(self) -> None:
        """End every session and every world."""
        await asyncio.gather(*(self._end(session) for session in self.sessions))
        servers, self._servers = self._servers, {}
        for server in servers.values():
            await server.close()

    # ── one environment ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _begin(self, session: MCPSession) -> tuple[Any, list[dict[str, Any]]]:
        await self._end(session)
        url = session.base_url.rstrip("/")
        server = self._servers.setdefault(url, HttpServer(url))
        extra = {} if session.seed is None else {"seed": session.seed}
        if session.dataset_row is not None and session.dataset_row.environment_context:
            extra["config"] = session.dataset_row.environment_context  # type: ignore[assignment]
        client = McpClient(server.channel(), info={**client_info(), **({"_extra": extra} if extra else {})})
        session._mcp_session = client
        await client.connect(_START_SECONDS)
        tools = await client.list_tools(_START_SECONDS)
        first: Any = None
        if client.is_modern and any(tool.name == _OPEN for tool in tools):
            first = await self._open_world(session, client)
        elif not client.is_modern:
            first = await self._control(session, "initial_state")
        session.terminated = False
        session.last_observation = {"observation": "default_initial_state"} if first is None else first
        hidden = {_OPEN, _CLOSE, "world_facts"} if session.session_id in self._handles else set()
        schemas = [_schema(tool.name, tool.description, tool.parameters) for tool in tools if tool.name not in hidden]
        return session.last_observation, schemas

    async def _open_world(self, session: MCPSession, client: McpClient) -> Any:
        context = session.dataset_row.environment_context if session.dataset_row else {}
        row = {**context, **({} if session.seed is None else {"seed": session.seed})}
        try:
            opened = (await client.call_tool(_OPEN, {"row": row}, _START_SECONDS)).structured
        except (RpcError, TimeoutError) as error:
            raise McpServerFailure(f"The MCP server opens no world: {error}") from error
        self._handles[session.session_id] = str(opened[_HANDLE])
        return opened.get("observation")

    async def _end(self, session: MCPSession) -> None:
        client, session._mcp_session = session._mcp_session, None
        handle = self._handles.pop(session.session_id, None)
        if client is None:
            return
        if handle is not None:
            with suppress(RpcError, McpServerFailure, TimeoutError):  # the server ends it by itself, or has ended
                await client.call_tool(_CLOSE, {_HANDLE: handle}, _CONTROL_SECONDS)
        await client.close()

    async def _worth(self, session: MCPSession, result: CallResult) -> StepResult:
        """What a call was worth, and whether that was the end: as the result says, or beside the protocol."""
        if result.reward is not None or result.done or session.session_id in self._handles:
            return StepResult(None, result.reward or 0.0, result.done, {"control_plane": {"reward": result.reward}})
        reward = await self._control(session, "reward")
        if reward is None:
            return StepResult(None, 0.0, False, {})
        status = await self._control(session, "status") or {}
        done = bool(status.get("terminated") or status.get("truncated"))
        plane = {"control_plane": {"reward": reward, "status": status}}
        return StepResult(None, float(reward.get("reward", 0.0)), done, plane)

    async def _control(self, session: MCPSession, what: str) -> dict[str, Any] | None:
        """What an old server says beside the protocol; None where it says nothing there."""
        client: McpClient = session._mcp_session  # type: ignore[assignment]
        session_id = getattr(client.channel, "session_id", None)
        base = session.base_url.rstrip("/")
        if session_id is None or f"{base} {what}" in self._without_control:
            return None
        url = f"{base.removesuffix('/mcp')}/control/{what}"
        try:
            reply = (
                await self._servers[base]
                .session()
                .request("GET", url, headers={"mcp-session-id": session_id}, seconds=_CONTROL_SECONDS)
            )
            if reply.status == _NOT_FOUND:
                self._without_control.add(f"{base} {what}")
                return None
            if reply.status != _OK:
                said = moved_to(reply.status, reply.headers) or repr(reply.data[:200])
                raise McpServerFailure(f"{url!r} answered with HTTP {reply.status}: {said}")
            told = json.loads(reply.data)
        except (HttpFault, ValueError) as error:
            raise McpServerFailure(f"{url!r} cannot be read: {error}.") from error
        return told if isinstance(told, dict) else {"observation": told}


def _schema(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as policies are told of it, without the handle that we fill in."""
    shown = dict(parameters)
    if _HANDLE in shown.get("properties", {}):
        shown["properties"] = {key: part for key, part in shown["properties"].items() if key != _HANDLE}
        shown["required"] = [key for key in shown.get("required", ()) if key != _HANDLE]
    return {"name": name, "description": description, "input_schema": shown}


def _observation(result: CallResult) -> Any:
    """What a call returned: as JSON where it is an object, else as an observation of that text."""
    if result.is_error:
        return {"error": result.text}
    try:
        seen = json.loads(result.text)
    except ValueError:
        seen = None
    return seen if isinstance(seen, dict) else {"observation": result.text}


def _prompt(template: str, observation: Any, context: Mapping[str, Any]) -> str:
    """The template with the observation in it: a drawing of it where there is one."""
    shown = observation
    if isinstance(observation, dict):
        shown = observation.get("grid_layout", observation.get("observation", observation))
    return template.format(**{**context, "observation": shown})
