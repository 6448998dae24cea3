# SPDX-License-Identifier: Apache-2.0
"""A client of one MCP server: finds out which era it speaks, lists its tools, calls them."""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Mapping
from typing import Any

from reward_kit.agent.mcp.contract import Channel, McpServerFailure
from reward_kit.agent.mcp.protocol import (
    LEGACY,
    MODERN,
    UNSUPPORTED_VERSION,
    RpcError,
    ToolDefinition,
    client_info,
    error_of,
    modern_headers,
    modern_meta,
    parameter_headers,
    supported_versions,
    tool_definition,
)
from reward_kit.agent.mcp.results import CallResult, call_result

_log = logging.getLogger(__name__)

__all__ = ["InputRequired", "McpClient"]

_PATIENCE = 5.0
"""Seconds for the answer to the first question; some old servers do not answer what they do not know."""
_MOST_PAGES = 100
_MOST_TOOLS = 2000
_MOST_ROUNDS = 4
"""How often a tool may ask for the same call again before it answers."""


class InputRequired(Exception):
    """A tool asks for something from a person or a model, which nobody here can give."""


class McpClient:
    """Speaks to one server over one channel. `connect` comes first."""

    def __init__(self, channel: Channel, *, version: str | None = None, info: Mapping[str, Any] | None = None) -> None:
        """`version` is what the server is known to speak, so that it need not be asked; `info` says who we are."""
        self._info = dict(info or client_info())
        self.channel = channel
        self.version = version
        """The version that is spoken, once that is known."""
        self._ids = itertools.count(1)
        self._mirrored: dict[str, tuple[Any, ...]] = {}

    @property
    def is_modern(self) -> bool:
        """Whether each request stands alone: no handshake, no session."""
        return self.version == MODERN

    @property
    def alive(self) -> bool:
        """Whether a request has a chance."""
        return self.channel.alive

    async def connect(self, timeout: float) -> None:
        """Agree on a version. A server that is known to be modern need not be asked."""
        if self.version == MODERN:
            return
        try:
            await (self._negotiate(timeout) if self.version is None else self._initialize(timeout))
        except TimeoutError:
            raise McpServerFailure(
                f"The MCP server did not answer within {timeout:g} seconds of its start. Check that its command "
                "starts a server that speaks over standard input and output, or give it more time with "
                "`agent.params.start_timeout`."
            ) from None
        except RpcError as error:
            raise McpServerFailure(
                f"The MCP server refuses to begin: {error.message} (code {error.code}).", retryable=False
            ) from error

    async def list_tools(self, timeout: float | None = None) -> list[ToolDefinition]:
        """All tools of the server, in its order. One that breaks the rules of the protocol is left out, and logged."""
        self.channel.tools_changed = False
        tools: dict[str, ToolDefinition] = {}
        cursors: set[str] = set()
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._ask_or_fail("tools/list", {} if cursor is None else {"cursor": cursor}, timeout)
            self._add_tools(page.get("tools"), tools)
            following = page.get("nextCursor")
            if not isinstance(following, str) or following in cursors or len(tools) >= _MOST_TOOLS:
                break
            cursor = following
            cursors.add(cursor)
        self._mirrored = {tool.name: tool.mirrored for tool in tools.values()}
        return list(tools.values())

    async def call_tool(self, name: str, arguments: Mapping[str, Any], timeout: float | None = None) -> CallResult:
        """Call a tool. That the tool failed is in the result; an `RpcError` is the server's refusal of the call."""
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
        headers = parameter_headers(self._mirrored.get(name, ()), arguments)
        for _ in range(_MOST_ROUNDS):
            result = await self._ask("tools/call", params, timeout, headers)
            kind = result.get("resultType", "complete")
            if kind == "complete":
                return call_result(result)
            if kind != "input_required":
                raise McpServerFailure(f"The MCP server answered with a result of the unknown type {str(kind)[:40]!r}.")
            if result.get("inputRequests") or "requestState" not in result:
                break
            params = {**params, "requestState": result["requestState"]}
        raise InputRequired("The tool asks for more input, from a person or a model, and there is nobody to give it.")

    async def close(self) -> None:
        """Close the channel."""
        await self.channel.close()

    # ── eras ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _negotiate(self, timeout: float) -> None:
        """Ask what a modern server must answer; whoever does not answer well is offered the old handshake."""
        patience = min(_PATIENCE, timeout / 2)
        for last_try in (False, True):
            try:
                discovered = await self._ask("server/discover", {}, patience, version=MODERN)
            except TimeoutError:
                if last_try:
                    raise
            except RpcError as error:
                versions = _versions_in(error)
                if versions and not set(versions) & {MODERN, *LEGACY}:
                    raise
            else:
                if MODERN in supported_versions(discovered.get("supportedVersions")):
                    self.version = MODERN
                    return
            try:
                return await self._initialize(timeout)
            except RpcError as error:
                if last_try or MODERN not in _versions_in(error):
                    raise
                patience = timeout  # it was only slow to start, and is modern

    async def _initialize(self, timeout: float) -> None:
        params = {"protocolVersion": self.version or LEGACY[0], "capabilities": {}, "clientInfo": self._info}
        result = await self._ask("initialize", params, timeout, version=LEGACY[0])
        version = result.get("protocolVersion")
        if version not in LEGACY:
            raise McpServerFailure(
                f"The MCP server speaks version {str(version)[:40]!r} of the protocol; known are {MODERN} and "
                f"{', '.join(LEGACY)}.",
                retryable=False,
            )
        self.version = str(version)
        message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.channel.notify(message, headers=self._headers("notifications/initialized", {}, self.version))

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask_or_fail(self, method: str, params: dict[str, Any], timeout: float | None) -> dict[str, Any]:
        """Ask what a server cannot sensibly refuse."""
        try:
            return await self._ask(method, params, timeout)
        except RpcError as error:
            raise McpServerFailure(
                f"The MCP server refuses {method!r}: {error.message} (code {error.code})."
            ) from error
        except TimeoutError:
            raise McpServerFailure(f"The MCP server did not answer {method!r} within {timeout:g} seconds.") from None

    async def _ask(
        self,
        method: str,
        params: dict[str, Any],
        timeout: float | None,
        headers: Mapping[str, str] | None = None,
        *,
        version: str | None = None,
    ) -> dict[str, Any]:
        spoken = version or self.version
        if spoken is None:
            raise RuntimeError("connect() comes first")
        sent = {**params, "_meta": modern_meta()} if spoken == MODERN else params
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": sent}
        all_headers = {**self._headers(method, params, spoken), **(headers or {})}
        reply = await self.channel.exchange(message, headers=all_headers, timeout=timeout)
        if error := error_of(reply):
            raise error
        result: dict[str, Any] = reply["result"]
        return result

    def _headers(self, method: str, params: Mapping[str, Any], version: str) -> dict[str, str]:
        if version == MODERN:
            return modern_headers(method, params)
        return {} if method == "initialize" else {"MCP-Protocol-Version": version}

    def _add_tools(self, given: object, tools: dict[str, ToolDefinition]) -> None:
        for definition in given if isinstance(given, list) else ():
            try:
                tool = tool_definition(definition)
            except ValueError as error:
                name = definition.get("name") if isinstance(definition, dict) else None
                _warn_once(f"The MCP server's tool {str(name)[:100]!r} is left out: {error}.")
            else:
                tools.setdefault(tool.name, tool)


@functools.lru_cache(maxsize=1000)
def _warn_once(text: str) -> None:
    """Each rollout lists the same tools again."""
    _log.warning("%s", text)


def _versions_in(error: RpcError) -> list[str]:
    """The versions that a server names which does not speak the one that was asked for."""
    if error.code != UNSUPPORTED_VERSION or not isinstance(error.data, dict):
        return []
    return supported_versions(error.data.get("supported"))
