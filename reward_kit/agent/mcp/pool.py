# SPDX-License-Identifier: Apache-2.0
"""Servers that are started ahead, because starting one takes longer than all of its calls.

A server that was used is closed, and never given to a second rollout. Those that keep nothing between calls are shared
instead: a few are started, and each rollout is given the one that has the least to do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from reward_kit.agent.mcp.client import McpClient

__all__ = ["FreshServers", "SharedServers"]

Start = Callable[[], Awaitable[McpClient]]
"""Starts a server and connects to it."""


class FreshServers:
    """A server for each rollout: at most `size` at a time, `warm` of them started before they are asked for."""

    def __init__(self, start: Start, *, size: int, warm: int) -> None:
        """Start nothing yet: the first rollout does."""
        self._start = start
        self._warm = min(warm, size)
        self._free = asyncio.Semaphore(size)
        self._ahead: list[asyncio.Task[McpClient]] = []
        self._closing: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    @contextlib.asynccontextmanager
    async def server(self) -> AsyncIterator[McpClient]:
        """A fresh server, closed in the end."""
        async with self._free:
            client = await self._take()
            try:
                yield client
            finally:
                await self._close_soon(client)

    async def close(self) -> None:
        """Close what was started ahead, and wait for what is being closed."""
        self._is_closed = True
        ahead, self._ahead = self._ahead, []
        for task in ahead:
            task.cancel()
        for started in await asyncio.gather(*ahead, return_exceptions=True):
            if isinstance(started, McpClient):
                await started.close()
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _take(self) -> McpClient:
        """The oldest of those that were started ahead; one that failed, or has died since, is passed over."""
        for _ in range(len(self._ahead)):  # not those that are started meanwhile: they may die as well
            task = self._ahead.pop(0)
            self._start_ahead()
            try:
                client = await task
            except asyncio.CancelledError:
                task.cancel()
                raise
            except Exception:  # noqa: BLE001 - a named boundary: whatever it was, the start below says it again
                break
            if client.alive:
                return client
            await self._close_soon(client)
        client = await self._start()
        self._start_ahead()
        return client

    def _start_ahead(self) -> None:
        while len(self._ahead) < self._warm and not self._is_closed:
            self._ahead.append(asyncio.create_task(self._started()))

    async def _started(self) -> McpClient:
        return await self._start()

    async def _close_soon(self, client: McpClient) -> None:
        """Close in the background: the next rollout need not wait for a server that is slow to end."""
        task = asyncio.create_task(client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        if self._is_closed:
            await asyncio.shield(task)


class SharedServers:
    """A few servers for all rollouts, each started when it is first needed, and again when it has died."""

    def __init__(self, start: Start, *, size: int) -> None:
        """Start nothing yet."""
        self._start = start
        self._size = max(1, size)
        self._users: dict[McpClient, int] = {}
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def server(self) -> AsyncIterator[McpClient]:
        """The server that has the fewest users."""
        client = await self._least_busy()
        self._users[client] += 1
        try:
            yield client
        finally:
            if client in self._users:
                self._users[client] -= 1

    async def close(self) -> None:
        """Close all of them."""
        clients, self._users = list(self._users), {}
        await asyncio.gather(*(client.close() for client in clients))

    async def _least_busy(self) -> McpClient:
        async with self._lock:
            for dead in [client for client in self._users if not client.alive]:
                del self._users[dead]
                await dead.close()
            idle = any(users == 0 for users in self._users.values())
            if not idle and len(self._users) < self._size:
                client = await self._start()
                self._users[client] = 0
            return min(self._users, key=self._users.__getitem__)
