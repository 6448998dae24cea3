# SPDX-License-Identifier: Apache-2.0
"""Our SoS server: the routes of the original over any local backend.

Kept: routes, bodies, status codes, error texts, status strings, the ' && ' join of the setup, which runs as a process
of its own, `pipefail` in the session, trimmed session output, standalone commands in the image's directory, `exit`, the
trajectory.

Different: a command may take as long as it is given; completion cannot be forged by what is printed; no lock is held
while a command runs, so `stop` always works; every sandbox is removed when too old, whatever its state; a bearer token;
limits and no network, as the backend gives them; a failed command is in the trajectory, without a result; after `exit`,
the rest of the line does not run.

Covered: as far as the backend isolates, clients' commands touch neither the host nor each other. Requests without the
token are refused (401); so is a body that does not call itself JSON (415), so that no page in a browser can post here.
Not covered: whoever has the token may use every sandbox, and all of `max_sandboxes`. The connection is not encrypted:
beyond this machine, put it behind something that is.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from reward_kit.http import server
from reward_kit.sandbox.contract import SandboxBackend
from reward_kit.sandbox.sos.host import HostedSandbox, HostOptions, Refusal, SandboxHost
from reward_kit.sandbox.sos.protocol import DEFAULT_PORT, CreateBody, ExecBody, StopBody

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.typedefs import Middleware

__all__ = ["serving"]

_MAX_BODY = 64 << 20
_Handler = Callable[["web.Request"], Awaitable["web.StreamResponse"]]
_B = TypeVar("_B", bound=BaseModel)


@asynccontextmanager
async def serving(
    backend: SandboxBackend,
    *,
    token: str | None,
    options: HostOptions | None = None,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
) -> AsyncIterator[str]:
    """Serve while the context is entered; yields the base URL. Leaving it ends every sandbox and closes `backend`.

    `token`: what clients must send as `Authorization: Bearer`; None asks for nothing. Port 0 takes a free one.
    """
    sandboxes = SandboxHost(backend, options)
    async with AsyncExitStack() as held:
        held.push_async_callback(sandboxes.close)
        answering = server.serving(_application(sandboxes, token), host, port, "--port")
        async with answering as address, held.pop_all():  # sandboxes end first: no request waits for a command
            sandboxes.begin()
            yield address


def _application(sandboxes: SandboxHost, token: str | None) -> web.Application:
    from aiohttp import web

    routes = _Routes(sandboxes)
    app = web.Application(middlewares=[_refusals(), _authorised(token)], client_max_size=_MAX_BODY)
    app.add_routes(
        [
            web.post("/sandboxes", routes.create),
            web.get("/sandboxes", routes.all),
            web.post("/sandboxes/{id}/start", routes.start),
            web.post("/sandboxes/{id}/exec", routes.execute),
            web.post("/sandboxes/{id}/stop", routes.stop),
            web.get("/sandboxes/{id}/trajectory", routes.trajectory),
            web.get("/sandboxes/{id}/trajectory/formatted", routes.formatted),
        ]
    )
    return app


class _Routes:
    """What each route answers when all is well; a `Refusal` says the rest."""

    def __init__(self, sandboxes: SandboxHost) -> None:
        self._sandboxes = sandboxes

    async def create(self, request: web.Request) -> web.Response:
        hosted = self._sandboxes.create(await _body(request, CreateBody))
        kept = {} if hosted.terms is None else {"contract": True}
        return _json({"id": hosted.id, **kept})

    async def all(self, request: web.Request) -> web.Response:
        return _json(self._sandboxes.information())

    async def start(self, request: web.Request) -> web.Response:
        await self._sandboxes.start(request.match_info["id"])
        return _text("")

    async def execute(self, request: web.Request) -> web.Response:
        answer = await self._sandboxes.execute(request.match_info["id"], await _body(request, ExecBody))
        return _json(answer.model_dump())

    async def stop(self, request: web.Request) -> web.Response:
        body = await _body(request, StopBody)
        await self._sandboxes.stop(request.match_info["id"], remove=bool(body.remove))
        return _text("")

    async def trajectory(self, request: web.Request) -> web.Response:
        hosted = self._hosted(request)
        steps = [_step(hosted, index) for index in range(len(hosted.trajectory))]
        return _json({"sandbox_id": hosted.id, "command_count": len(steps), "trajectory": steps})

    async def formatted(self, request: web.Request) -> web.Response:
        lines: list[str] = []
        for step in self._hosted(request).trajectory:
            lines.append(f"$ {step.command}")
            if step.answer is None:
                lines.append("Status: Command started but no result recorded")
            elif step.answer.output:
                lines.append(step.answer.output)
        return _text("".join(f"{line}\n" for line in lines))

    def _hosted(self, request: web.Request) -> HostedSandbox:
        key = request.match_info["id"]
        return self._sandboxes.get(key, f"Sandbox {key} not found")


def _step(hosted: HostedSandbox, index: int) -> dict[str, object]:
    step = hosted.trajectory[index]
    began = hosted.created_at if hosted.started_at is None else hosted.started_at
    line: dict[str, object] = {"index": index, "command": step.command, "timestamp": step.at - began}
    if step.answer is not None:
        line["result"] = {"output": step.answer.output, "exit_code": step.answer.exit_code}
    return line


# ── bodies, answers, refusals ────────────────────────────────────────────────────────────────────────────────────────


async def _body(request: web.Request, kind: type[_B]) -> _B:
    if request.content_type != "application/json":
        raise Refusal(415, "Expected request with `Content-Type: application/json`")
    try:
        parsed = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise Refusal(400, f"Failed to parse the request body as JSON: {error}") from None
    try:
        return kind.model_validate(parsed)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "the body"
        what = f"missing field `{name}`" if first["type"] == "missing" else f"{name}: {first['msg']}"
        raise Refusal(422, f"Failed to deserialize the JSON body into the target type: {what}") from None


def _json(content: object) -> web.Response:
    from aiohttp import web

    return web.Response(body=orjson.dumps(content), content_type="application/json")


def _text(text: str, status: int = 200) -> web.Response:
    from aiohttp import web

    return web.Response(text=text, status=status)


def _refusals() -> Middleware:
    from aiohttp import web

    @web.middleware
    async def answer_refusals(request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return _text(refusal.text, refusal.status)

    return answer_refusals


def _authorised(token: str | None) -> Middleware:
    from aiohttp import web

    @web.middleware
    async def ask_for_the_token(request: web.Request, handler: _Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token is not None and not hmac.compare_digest(given.encode(), token.encode()):
            raise Refusal(401, "The token is missing or wrong. Send it as `Authorization: Bearer TOKEN`.")
        return await handler(request)

    return ask_for_the_token
