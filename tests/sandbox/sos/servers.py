# SPDX-License-Identifier: Apache-2.0
"""What the tests of the SoS server and its client share: a backend that counts, and a server of the old dialect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, web

from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Probe, Sandbox, SandboxBackend, SandboxSpec
from reward_kit.sandbox.sos.host import HostOptions
from reward_kit.sandbox.sos.server import serving

TOKEN = "between us"


@asynccontextmanager
async def namespaces() -> AsyncIterator[SandboxBackend]:
    """The real backend, or a skipped test that says why there is none."""
    from reward_kit.sandbox.namespaces.backend import NamespacesBackend

    backend = NamespacesBackend()
    try:
        probe = await backend.probe()
        if not probe.works:
            pytest.skip(f"namespaces do not work here: {probe.detail}")
        yield backend
    finally:
        await backend.close()


class Counting:
    """A backend that knows which of its sandboxes are open, and is closed in name only: tests share the real one."""

    def __init__(self, backend: SandboxBackend) -> None:
        self._backend = backend
        self.name = backend.name
        self.opened = 0
        self.open_now: set[Sandbox] = set()
        self.closed = False

    async def probe(self) -> Probe:
        return await self._backend.probe()

    async def open(self, spec: SandboxSpec) -> Sandbox:
        sandbox = await self._backend.open(spec)
        self.opened += 1
        self.open_now.add(sandbox)
        close = sandbox.close

        async def closing() -> None:
            await close()
            self.open_now.discard(sandbox)

        sandbox.close = closing  # type: ignore[method-assign]
        return sandbox

    async def close(self) -> None:
        self.closed = True


class Caller:
    """A client that speaks the protocol by hand, as an original client does."""

    def __init__(self, session: ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def post(self, path: str, body: Any = None, **options: Any) -> tuple[int, str]:
        given = options if body is None else {"json": body, **options}
        async with self._session.post(self.url + path, **given) as answer:
            return answer.status, await answer.text()

    async def get(self, path: str) -> Any:
        async with self._session.get(self.url + path) as answer:
            assert answer.status == 200, await answer.text()
            return await (answer.json() if answer.content_type == "application/json" else answer.text())

    async def created(self, *setup: str, image: str = "ubuntu:latest") -> str:
        async with self._session.post(
            f"{self.url}/sandboxes", json={"image": image, "setup_commands": setup}
        ) as answer:
            assert answer.status == 200
            return str((await answer.json())["id"])

    async def started(self, *setup: str) -> str:
        key = await self.created(*setup)
        assert await self.post(f"/sandboxes/{key}/start") == (200, "")
        return key

    async def run(self, key: str, command: str, **more: Any) -> dict[str, Any]:
        async with self._session.post(f"{self.url}/sandboxes/{key}/exec", json={"command": command, **more}) as answer:
            assert answer.status == 200, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found


@asynccontextmanager
async def served(backend: SandboxBackend, **options: Any) -> AsyncIterator[Caller]:
    """A server over `backend` that takes every image for its default, and somebody to call it."""
    chosen = HostOptions(**{"images": {"*": ""}, **options})
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        serving(backend, token=TOKEN, options=chosen, port=0) as url,
        ClientSession(headers=headers) as session,
    ):
        yield Caller(session, url)


ORIGINAL = {
    "create": {"image", "setup_commands"},
    "exec": {"command", "standalone"},
    "stop": {"remove"},
    "answer": {"id", "output", "exit_code", "exited"},
}
"""The fields the original server reads and writes; it has no others."""


@asynccontextmanager
async def original(caller: Caller) -> AsyncIterator[str]:
    """The URL of a server that knows only the original's fields, before a server of ours."""

    async def forward(request: web.Request) -> web.Response:
        kind = request.path.rpartition("/")[2].replace("sandboxes", "create")
        body = await request.json() if request.can_read_body else None
        kept = None if body is None else {key: value for key, value in body.items() if key in ORIGINAL[kind]}
        status, text = await caller.post(request.path, kept)
        if status == 200 and text:
            import json

            answer = {key: value for key, value in json.loads(text).items() if key in ORIGINAL["answer"]}
            return web.json_response(answer)
        return web.Response(status=status, text=text)

    app = web.Application()
    app.router.add_post("/{path:.*}", forward)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def until(condition: Any, seconds: float = 60.0) -> None:
    """Wait until `condition()` holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def succeeded(result: ExecResult, output: str) -> bool:
    return (result.exit_code, result.output) == (0, output)
