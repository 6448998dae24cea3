# SPDX-License-Identifier: Apache-2.0
"""A world that is an MCP server: its tools are what the model may call, and each rollout has a server of its own.

    agent:
      environment: reward_kit.agent:McpEnvironment
      params: {command: [python3, server.py], files: {server.py: tools/server.py}}

"Of its own" means: a process that nobody else has (`command`), or a server that is shared (`url`) and keeps rollouts
apart by a handle, by a header, or, with servers of 2025-11-25 and older, by a session. A server that does none of these
is refused unless it is said to be `stateless`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from reward_kit.agent.environment import Answer, Durability, Environment, World
from reward_kit.agent.mcp.client import InputRequired, McpClient
from reward_kit.agent.mcp.contract import Bounds, McpServerFailure, ReplyTooLarge
from reward_kit.agent.mcp.http import HttpChannel, HttpServer
from reward_kit.agent.mcp.pool import FreshServers, SharedServers
from reward_kit.agent.mcp.protocol import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    LEGACY,
    UNSUPPORTED_VERSION,
    RpcError,
    ToolDefinition,
)
from reward_kit.agent.mcp.results import CallResult
from reward_kit.agent.mcp.sandboxed import OUTPUT_BYTES, SandboxedChannel
from reward_kit.agent.mcp.settings import McpCall, McpHandle, McpSettings
from reward_kit.agent.mcp.stdio import StdioChannel
from reward_kit.agent.tools import Tool, ToolError
from reward_kit.config_models import validated
from reward_kit.errors import AuthError, ConfigError, SandboxError
from reward_kit.models import Message, Sample
from reward_kit.redaction import secret_values, sent
from reward_kit.sandbox.choose import choose_backend
from reward_kit.sandbox.contract import Limits, SandboxBackend, SandboxSpec

__all__ = ["McpEnvironment", "McpWorld"]

_CPU_SECONDS = 3600.0
"""A server lives for a whole rollout, and may compute longer than one command."""


class McpEnvironment(Environment):
    """Opens worlds that are MCP servers."""

    def __init__(self, settings: McpSettings | None = None, **given: Any) -> None:
        """The settings as one value, or by name as a config has them. Nothing is started yet."""
        self.settings = settings or validated(
            McpSettings, given, "The settings of the MCP server", section="agent.params"
        )
        self._servers: _Servers | None = None

    async def open(self, sample: Sample) -> McpWorld:
        """A world with a server of its own, prepared as the settings say."""
        if self._servers is None:
            note_sent(self.settings)
            self._servers = _servers(self.settings)
        kind = DeterministicMcpWorld if self.settings.deterministic else McpWorld
        async with contextlib.AsyncExitStack() as held:
            client = await held.enter_async_context(self._servers.server())
            world = kind(client, self.settings, sample, held)
            await world.prepare()
            world.keep(held.pop_all())
        return world

    async def close(self) -> None:
        """Close every server that is still there."""
        servers, self._servers = self._servers, None
        if servers is not None:
            await servers.close()


def note_sent(settings: McpSettings) -> None:
    """Take note of the credentials that the server is given: what it repeats of them is a failure of the world."""
    given = settings.model_dump(include={"command", "url", "headers"}) | {
        "env": settings.variables, "key": {**_key(settings)}.get("Authorization")
    }  # fmt: skip
    for value in secret_values({"params": given}):
        sent(value)


# ── one world ────────────────────────────────────────────────────────────────────────────────────────────────────────


class McpWorld(World):
    """One rollout's server. After a crash the rollout begins anew, because nobody knows what the server was at."""

    durability: ClassVar[Durability] = "restart"

    def __init__(
        self, client: McpClient, settings: McpSettings, sample: Sample, held: contextlib.AsyncExitStack
    ) -> None:
        """`held` gives the server back."""
        self._client = client
        self._settings = settings
        self._sample = sample
        self._held = held
        self._hidden: dict[str, Any] = {}
        self._shown_at_start: list[Message] = []
        self._rewards: list[float] = []
        self._done = False

    @property
    def tools(self) -> Sequence[Tool]:
        """What the model may call now."""
        return self._tools or ()

    async def prepare(self) -> None:
        """Learn the tools, have a handle made, and make the calls that come before the model's first turn."""
        await self._learn_tools()
        if self._settings.handle is not None:
            self._hidden[self._settings.handle.argument] = await self._made_handle(self._settings.handle)
            await self._learn_tools()
        for call in self._settings.start:
            result = await self._call_of_ours(call)
            if call.show:
                self._shown_at_start.append(Message(role="user", content=result.text))

    def keep(self, held: contextlib.AsyncExitStack) -> None:
        """Take over what gives the server back."""
        self._held = held

    def start(self) -> list[Message]:
        """What the calls before the first turn showed, where the model is to see it."""
        return self._shown_at_start

    async def answer(self, message: Message) -> Answer:
        """Run the tool calls. The server may say what they were worth; the tools may be others afterwards."""
        self.begin_turn()
        return await self.outcome(await self.use_tools(message), message)

    def begin_turn(self) -> None:
        """Forget what the turn before was worth."""
        self._rewards, self._done = [], False

    async def outcome(self, told: Sequence[Message], message: Message) -> Answer:
        """The answer of a turn whose calls have been run."""
        reward = sum(self._rewards) if self._rewards else None
        answer = Answer(told, reward=reward, done=self._done or not message.tool_calls)
        if self._client.channel.tools_changed:
            await self._learn_tools()
        return answer

    async def facts(self) -> dict[str, Any]:
        """What the calls return that the settings name."""
        facts = {}
        for name, call in self._settings.facts.items():
            result = await self._call_of_ours(call)
            facts[name] = result.text if result.structured is None else _unwrapped(result.structured)
        return facts

    async def close(self) -> None:
        """Have the handle closed, and give the server back."""
        try:
            handle = self._settings.handle
            if handle is not None and handle.close_tool is not None and self._hidden:
                with contextlib.suppress(McpServerFailure, RpcError, TimeoutError, ReplyTooLarge, InputRequired):
                    await self._client.call_tool(handle.close_tool, self._hidden, self._settings.timeout)
        finally:
            await self._held.aclose()

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _learn_tools(self) -> None:
        settings = self._settings
        definitions = await self._client.list_tools(settings.start_timeout)
        names = {definition.name for definition in definitions}
        wanted = names if settings.only is None else set(settings.only)
        if missing := wanted - names:
            raise ConfigError(
                f"The MCP server has no tool {sorted(missing)[0]!r}, which `agent.params.only` names. It has: "
                f"{', '.join(sorted(names)) or 'none'}."
            )
        offered = [each for each in definitions if each.name in wanted - settings.hidden_tools]
        self._tools = [self._tool(each, name) for each, name in zip(offered, _safe_names(offered), strict=True)]

    def _tool(self, definition: ToolDefinition, name: str) -> Tool:
        async def call(arguments: dict[str, Any]) -> Any:
            return await self._call_of_the_model(definition.name, {**arguments, **self._handle_of(definition)})

        return Tool(
            name=name,
            description=definition.description,
            parameters=_without(definition.parameters, self._hidden),
            call=call,
            reads=definition.reads,
            parallel=definition.reads,
            timeout=self._settings.timeout,
            max_output=self._settings.max_output,
        )

    def _handle_of(self, definition: ToolDefinition) -> dict[str, Any]:
        """The hidden arguments that this tool takes."""
        known = definition.parameters.get("properties")
        return {name: value for name, value in self._hidden.items() if isinstance(known, dict) and name in known}

    async def _call_of_the_model(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """What the model is told. Only a server that failed itself is not for the model."""
        try:
            result = await self._client.call_tool(name, arguments)
        except RpcError as error:
            if error.code in (HEADER_MISMATCH, UNSUPPORTED_VERSION):
                raise McpServerFailure(f"The MCP server refuses our requests: {error.message}.") from error
            raise ToolError(error.message, "schema" if error.code == INVALID_PARAMS else "exception") from error
        except ReplyTooLarge as error:
            raise ToolError(f"{error} Ask for less.", "output") from error
        except InputRequired as error:
            raise ToolError(str(error), "refused") from error
        self._done = self._done or result.done
        if result.reward is not None:
            self._rewards.append(result.reward)
        if result.is_error:
            raise ToolError(result.text)
        return result.parts if self._settings.images and result.parts else result.text

    # ── calls of ours ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _call_of_ours(self, call: McpCall | McpHandle) -> CallResult:
        """Call a tool as the settings say. That it fails is a failure of the world: no model is to blame."""
        arguments = {**call.arguments, **self._from_columns(call.columns), **self._hidden}
        try:
            result = await self._client.call_tool(call.tool, arguments, self._settings.timeout)
        except (RpcError, ReplyTooLarge, InputRequired) as error:
            raise McpServerFailure(f"The MCP server's tool {call.tool!r} failed: {error}") from error
        except TimeoutError:
            raise McpServerFailure(
                f"The MCP server's tool {call.tool!r} did not answer within {self._settings.timeout:g} seconds."
            ) from None
        if result.is_error:
            raise McpServerFailure(f"The MCP server's tool {call.tool!r} failed: {result.text[:1000]}")
        return result

    def _from_columns(self, columns: Mapping[str, str]) -> dict[str, Any]:
        known = {**self._sample.columns, "id": self._sample.id, "ground_truth": self._sample.ground_truth}
        if missing := [column for column in columns.values() if column not in known]:
            raise ConfigError(
                f"The sample {self._sample.id!r} has no column {missing[0]!r}, which the settings of the MCP server "
                f"name. It has: {', '.join(sorted(known))}."
            )
        return {argument: known[column] for argument, column in columns.items()}

    async def _made_handle(self, handle: McpHandle) -> Any:
        result = await self._call_of_ours(handle)
        if result.structured is None:
            return result.text.strip()
        value = result.structured
        for name in (handle.field or _handle_field(value, handle.argument)).split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            raise McpServerFailure(
                f"The result of the MCP server's tool {handle.tool!r} has no {handle.field or handle.argument!r}. Say "
                f"in `agent.params.handle.field` where the handle is. The result: {str(result.structured)[:300]}",
                retryable=False,
            )
        return value


class DeterministicMcpWorld(McpWorld):
    """A server whose tools give the same results to the same calls: its rollouts are played again after a crash."""

    durability: ClassVar[Durability] = "replay"


_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64


def _safe_names(definitions: Sequence[ToolDefinition]) -> list[str]:
    """A name for each tool that every endpoint takes: of letters, digits, `_` and `-`, and not too long."""
    names: list[str] = []
    for definition in definitions:
        safe = name = _UNSAFE.sub("_", definition.name)[:_LONGEST_NAME]
        number = 2
        while name in names:
            name = f"{safe[: _LONGEST_NAME - 4]}_{number}"
            number += 1
        names.append(name)
    return names


def _without(parameters: Mapping[str, Any], hidden: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without the parameters that we fill in."""
    shown = dict(parameters)
    properties, required = shown.get("properties"), shown.get("required")
    if isinstance(properties, dict):
        shown["properties"] = {name: part for name, part in properties.items() if name not in hidden}
    if isinstance(required, list):
        shown["required"] = [name for name in required if name not in hidden]
    return shown


def _unwrapped(structured: Any) -> Any:
    """The value itself, where the server's library has put it into an object for want of one."""
    return structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured


def _handle_field(structured: Any, argument: str) -> str:
    return "result" if isinstance(structured, dict) and structured.keys() == {"result"} else argument


# ── where servers come from ──────────────────────────────────────────────────────────────────────────────────────────


class _Servers(Protocol):
    """Hands out servers."""

    def server(self) -> contextlib.AbstractAsyncContextManager[McpClient]:
        """A server for one rollout."""
        ...

    async def close(self) -> None:
        """Close them all."""
        ...


def _servers(settings: McpSettings) -> _Servers:
    return _Commands(settings) if settings.command is not None else _Address(settings)


def _known_version(settings: McpSettings) -> str | None:
    return None if settings.protocol == "auto" else settings.protocol


class _Commands:
    """Servers that are started by a command, in a sandbox or bare."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._bounds = Bounds(reply_bytes=settings.max_reply_bytes)
        self._version = _known_version(settings)
        self._backend: SandboxBackend | None = None
        self._choosing = asyncio.Lock()
        self._pool: FreshServers | SharedServers
        if settings.stateless:
            self._pool = SharedServers(self._start, size=min(settings.warm, settings.servers))
        else:
            self._pool = FreshServers(self._start, size=settings.servers, warm=settings.warm)

    def server(self) -> contextlib.AbstractAsyncContextManager[McpClient]:
        return self._pool.server()

    async def close(self) -> None:
        await self._pool.close()
        if self._backend is not None:
            await self._backend.close()

    async def _start(self) -> McpClient:
        """A server that is connected to. Some old ones die of a question that they do not know: begin as they do."""
        if self._version is not None:
            return await self._connected(self._version)
        try:
            return await self._connected(None)
        except McpServerFailure as failure:
            if not failure.retryable:
                raise
            try:
                return await self._connected(LEGACY[0])
            except McpServerFailure:
                raise failure from None

    async def _connected(self, version: str | None) -> McpClient:
        channel = await (self._bare() if self._settings.is_bare else self._sandboxed())
        client = McpClient(channel, version=version)
        try:
            await client.connect(self._settings.start_timeout)
        except BaseException:
            await client.close()
            raise
        self._version = client.version
        return client

    async def _bare(self) -> StdioChannel:
        settings = self._settings
        return await StdioChannel.start(
            settings.command or (),
            environment=settings.variables,
            directory=settings.directory,
            bounds=self._bounds,
        )

    async def _sandboxed(self) -> SandboxedChannel:
        settings = self._settings
        async with self._choosing:
            if self._backend is None:
                self._backend = await choose_backend(settings.sandbox)
        box = settings.sandbox
        spec = SandboxSpec(
            image=box.image,
            setup=tuple(settings.setup),
            setup_join=box.setup_join,
            files=await asyncio.to_thread(_read_files, settings.files),
            environment=settings.variables,
            workdir=settings.directory,
            limits=Limits(
                memory_mb=box.memory_mb, timeout=box.timeout, cpu_seconds=_CPU_SECONDS, output_bytes=OUTPUT_BYTES
            ),
            network=box.network,
        )
        try:
            sandbox = await self._backend.open(spec)
        except SandboxError as error:
            raise McpServerFailure(f"The MCP server has no sandbox: {error}", retryable=error.retryable) from error
        try:
            return await SandboxedChannel.start(sandbox, settings.command or (), self._bounds)
        except BaseException:
            await sandbox.close()
            raise


def _read_files(files: Mapping[str, str]) -> dict[str, bytes]:
    try:
        return {name: Path(path).read_bytes() for name, path in files.items()}
    except OSError as error:
        raise ConfigError(
            f"A file for the MCP server cannot be read: {error.filename!r}: {error.strerror}. Correct "
            "`agent.params.files`; paths are relative to where the run is started."
        ) from error


class _Address:
    """A server behind an address, which all rollouts share."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._http = HttpServer(
            settings.url or "",
            headers={**settings.headers, **_key(settings)},
            bounds=Bounds(reply_bytes=settings.max_reply_bytes),
        )
        self._version = _known_version(settings)

    @contextlib.asynccontextmanager
    async def server(self) -> AsyncIterator[McpClient]:
        header = self._settings.rollout_header
        channel = self._http.channel({} if header is None else {header: uuid.uuid4().hex})
        client = McpClient(channel, version=self._version)
        try:
            await client.connect(self._settings.start_timeout)
            self._version = client.version
            self._check_isolation(channel, client)
            yield client
        finally:
            await client.close()

    async def close(self) -> None:
        await self._http.close()

    def _check_isolation(self, channel: HttpChannel, client: McpClient) -> None:
        settings = self._settings
        if settings.stateless or settings.handle or settings.rollout_header or channel.session_id is not None:
            return
        raise ConfigError(
            f"The MCP server at {settings.url!r} speaks {client.version} and gives out no sessions, so rollouts would "
            "see what the others do. Say in `agent.params` how it keeps them apart: `handle`, or `rollout_header`; or, "
            "where it keeps nothing between calls, `stateless: true`."
        )


def _key(settings: McpSettings) -> dict[str, str]:
    if settings.key_env is None:
        return {}
    key = os.environ.get(settings.key_env)
    if not key:
        raise AuthError(
            f"The variable {settings.key_env!r}, which holds the key of the MCP server, is not set. Set it."
        )
    return {"Authorization": f"Bearer {key}"}
