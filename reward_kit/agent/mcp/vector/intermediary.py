# SPDX-License-Identifier: Apache-2.0
"""A client of an intermediary: an MCP server whose tools start other servers, and pass calls on to them."""

from __future__ import annotations

import json
from typing import Any

from reward_kit.agent.mcp.client import McpClient
from reward_kit.agent.mcp.contract import McpServerFailure
from reward_kit.agent.mcp.http import HttpServer
from reward_kit.agent.mcp.protocol import RpcError

__all__ = ["IntermediaryMCPClient"]

_SECONDS = 300.0


class IntermediaryMCPClient:
    """Speaks to the intermediary at an address."""

    def __init__(self, intermediary_server_url: str) -> None:
        """Nothing is opened before `connect`."""
        self.intermediary_server_url = intermediary_server_url
        self._server = HttpServer(intermediary_server_url.rstrip("/"))
        self._client: McpClient | None = None

    async def connect(self) -> None:
        """Agree on a version of the protocol."""
        if self._client is None:
            client = McpClient(self._server.channel())
            await client.connect(_SECONDS)
            self._client = client

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            await self._client.close()
            self._client = None
        await self._server.close()

    async def initialize_session(self, backend_requests: list[dict[str, Any]]) -> dict[str, Any]:
        """Have backends started; what comes back names the session and the instances."""
        return await self._call("initialize_session", {"args": {"backends": backend_requests}})

    async def call_backend_tool(
        self, rk_session_id: str, instance_id: str, backend_name_ref: str, tool_name: str, tool_args: dict[str, Any]
    ) -> dict[str, Any]:
        """Call a tool of a backend."""
        where = _where(rk_session_id, instance_id, backend_name_ref)
        return await self._call(
            "call_backend_tool", {"args": {**where, "tool_name": tool_name, "tool_args": tool_args}}
        )

    async def list_backend_tools(self, rk_session_id: str, instance_id: str, backend_name_ref: str) -> dict[str, Any]:
        """The tools of a backend, as `{"tools": [...]}`."""
        where = _where(rk_session_id, instance_id, backend_name_ref)
        return await self._call("list_backend_tools", {"args": where})

    async def cleanup_session(self, rk_session_id: str) -> dict[str, Any]:
        """End the backends of a session."""
        return await self._call("cleanup_session", {"args": {"session_id": rk_session_id}})

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        await self.connect()
        assert self._client is not None
        try:
            result = await self._client.call_tool(name, arguments, _SECONDS)
        except RpcError as error:
            raise McpServerFailure(f"The intermediary refuses {name!r}: {error.message}") from error
        if result.is_error:
            raise McpServerFailure(f"The intermediary's {name!r} failed: {result.text[:1000]}")
        told = result.structured if isinstance(result.structured, dict) else _as_object(result.text)
        return told


def _where(session: str, instance: str, backend: str) -> dict[str, str]:
    return {"session_id": session, "instance_id": instance, "backend_name_ref": backend}


def _as_object(text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    return told if isinstance(told, dict) else {"content": text}
