# SPDX-License-Identifier: Apache-2.0
"""The server as an ASGI application.

    request ─▶ gate ─▶ allowance ─▶ body ─▶ JSON ─▶ dialect ─▶ judging ─▶ dialect ─▶ reply
               401/403   429        413/400         422        503

For any ASGI server, or a platform's adapter, there are two ways in:

    reward_kit.serving.app:build_app(settings)         an application for these settings
    reward_kit.serving.app:app_from_environment()      the settings come from REWARD_KIT_SERVE (YAML or JSON), or from
                                                       the file that REWARD_KIT_SERVE_CONFIG names; a key from
                                                       RK_ENDPOINT_API_KEY:
        uvicorn --factory reward_kit.serving.app:app_from_environment

The application opens the rewards when it is told that the server starts (ASGI's lifespan), and closes them at its end.
Limits in time (slow callers, idle connections) and client certificates need the connection, so they hold only under
`reward_kit.serving.run`, which is what `reward-kit serve` uses. A platform in front has to bring its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import orjson

from reward_kit.datasets.rows import as_json, as_written
from reward_kit.errors import ConfigError, RewardKitError, needs_extra
from reward_kit.http.server_limits import PEER_NAMES
from reward_kit.models import Failure, Rollout, Verdict
from reward_kit.redaction import blot, mask
from reward_kit.scoring.rewards import Reward
from reward_kit.serving.access_log import AccessLog
from reward_kit.serving.bodies import Bodies, CallerLeft, Held, Receive
from reward_kit.serving.callers import Allowances
from reward_kit.serving.description import description_of
from reward_kit.serving.dialect import BadRequest, Dialect, Extension, Incoming, Reply, Route
from reward_kit.serving.dialects import DIALECTS, load_dialect
from reward_kit.serving.gate import Gate
from reward_kit.serving.judging import Judging, open_judging
from reward_kit.serving.metrics import CONTENT_TYPE, Gauge, Metrics
from reward_kit.serving.openapi import openapi_document
from reward_kit.serving.refusals import Refusal
from reward_kit.serving.request_head import Head, PlainHeaders
from reward_kit.serving.settings import ServeSettings, settings_from_environment

__all__ = ["RewardApp", "app_from_environment", "build_app"]

_log = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_OPEN_PATHS = frozenset({"/health", "/ready"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_JSON = (b"content-type", b"application/json")
_LEFT_STATUS = 499
"""What the log says of a request whose caller left before it was whole."""


class _Plain(NamedTuple):
    """A reply that is no JSON."""

    status: int
    content_type: str
    text: str


class _Response(NamedTuple):
    """A reply as it is sent."""

    status: int
    body: bytes
    headers: list[tuple[bytes, bytes]]


class _Ask(NamedTuple):
    """A path that asks a reward."""

    label: str
    reward: str
    route: Route


class _Tell(NamedTuple):
    """A path that tells something about the server."""

    label: str
    tell: Callable[[], Reply | _Plain]


class _Served:
    """What is noted about a request while it is served."""

    __slots__ = ("answers", "began", "caller", "failures", "head", "route", "size_in", "size_out", "status")

    def __init__(self, head: Head) -> None:
        self.began = time.perf_counter()
        self.head = head
        self.caller = "-"
        self.route = "other"
        self.answers = self.failures = self.size_in = self.size_out = self.status = 0


def build_app(
    settings: ServeSettings,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    extensions: Sequence[Extension] = (),
) -> RewardApp:
    """The application that serves what the settings say. What cannot work is said here: a `ConfigError` or another.

    `functions` stand in for the rewards of these names, so that they need no import path. `extensions` add routes of
    their own, behind the same authentication and limits.
    """
    given = dict(functions or {})
    rewards = {name: Reward(config, given.get(name)) for name, config in settings.rewards.items()}
    names = list(DIALECTS) if settings.dialects is None else ["generic", *settings.dialects]
    dialects = [load_dialect(name) for name in dict.fromkeys(names)]
    groups = [name for name, reward in rewards.items() if reward.judges_groups]
    if (
        settings.dialects is not None
        and groups
        and (alone := next((each for each in dialects if each.one_answer), None))
    ):
        raise ConfigError(
            f"The reward {groups[0]!r} compares all answers to a prompt, and callers of the dialect {alone.name!r} "
            "send one answer at a time. Serve a reward that judges each answer alone, or leave this dialect out."
        )
    return RewardApp(settings, rewards, dialects, [*extensions, *_worlds(settings)])


def _worlds(settings: ServeSettings) -> list[Extension]:
    if settings.worlds is None:
        return []
    from reward_kit.serving.worlds import Worlds  # here: most servers have no worlds

    judged_by = settings.worlds.reward
    return [Worlds(settings.worlds, None if judged_by is None else settings.rewards[judged_by])]


def app_from_environment() -> RewardApp:
    """The application that the environment describes: see `settings_from_environment`."""
    return build_app(settings_from_environment())


class RewardApp:
    """An ASGI application that serves rewards."""

    def __init__(
        self, settings: ServeSettings, rewards: Mapping[str, Reward], dialects: Sequence[Dialect],
        extensions: Sequence[Extension] = (),
    ) -> None:  # fmt: skip
        self.settings = settings
        self.gate = Gate(settings)
        self.dialects = dialects
        self.metrics = Metrics()
        self.ending = False
        """Whether the server is about to end: `/ready` says so."""
        self._rewards = rewards
        self._asks = {
            name: (each.config.pass_threshold, each.call.needs_ids) for name, each in rewards.items()
        }  # fmt: skip
        self._extensions = extensions
        self._judging: dict[str, Judging] = {}
        self._log: AccessLog | None = None
        self._bodies = Bodies(settings.limits)
        self._allowances = Allowances(settings.access.rate, settings.access.concurrency)
        self._most_answers = settings.limits.batch
        self._paths = self._all_paths()
        self._more = _router(extensions)
        self._add_gauges()

    # ── what is served ───────────────────────────────────────────────────────────────────────────────────────────────

    def _all_paths(self) -> dict[str, dict[str, _Ask | _Tell]]:
        tells: dict[str, Callable[[], Reply | _Plain]] = {
            "/": self._tell_what,
            "/health": lambda: Reply(200, {"status": "ok"}),
            "/ready": self._tell_ready,
            "/metrics": lambda: _Plain(200, CONTENT_TYPE, self.metrics.text()),
            "/openapi.json": self._tell_openapi,
        }
        paths: dict[str, dict[str, _Ask | _Tell]] = {
            path: {"GET": _Tell(path, tell), "HEAD": _Tell(path, tell)} for path, tell in tells.items()
        }
        first = next(iter(self._rewards))
        for name, reward in self._rewards.items():
            told = Reply(200, description_of(reward, self.settings))
            for path in (f"/rewards/{name}/evaluate", *(["/evaluate"] if name == first else [])):
                paths[path] = {"GET": _Tell(path, partial(_same, told)), "HEAD": _Tell(path, partial(_same, told))}
        for dialect, name in itertools.product(self.dialects, self._rewards):
            if dialect.one_answer and self._rewards[name].judges_groups:
                continue
            for route in dialect.routes:
                for path in (f"/rewards/{name}{route.path}", *([route.path] if name == first else [])):
                    paths.setdefault(path, {})[route.method] = _Ask(path, name, route)
        return paths

    def _tell_what(self) -> Reply:
        asks = [path for path, methods in self._paths.items() if isinstance(methods.get("POST"), _Ask)]
        return Reply(200, {"status": "ok", "rewards": list(self._rewards), "endpoints": asks})

    def _tell_ready(self) -> Reply:
        if self.is_ready:
            return Reply(200, {"status": "ready"})
        return Reply(503, {"status": "ending" if self.ending else "busy"}, {"retry-after": "1"})

    def _tell_openapi(self) -> Reply:
        protected = not self.gate.is_open
        return Reply(200, openapi_document(list(self._rewards), self.dialects, protected=protected))

    @property
    def is_ready(self) -> bool:
        """Whether an answer would be judged now."""
        return bool(self._judging) and not self.ending and not any(each.is_full for each in self._judging.values())

    @property
    def has_extensions(self) -> bool:
        """Whether something else is served than questions, WebSockets maybe."""
        return self._more is not None

    def _add_gauges(self) -> None:
        held = Gauge(
            "reward_kit_answers_held", "Answers being judged or waiting for it.",
            lambda: ((f'reward="{name}"', each.held) for name, each in self._judging.items()),
        )  # fmt: skip
        bodies = Gauge("reward_kit_bodies_held_bytes", "Bytes of bodies held.", lambda: [("", self._bodies.held)])
        lines = Gauge(
            "reward_kit_log_lines_left_out", "Lines of the access log that could not be written.",
            lambda: [("", self._log.left_out if self._log else 0)],
        )  # fmt: skip
        self.metrics.gauges += [held, bodies, lines]

    def begin_to_end(self) -> None:
        """Say from now on that the server is about to end."""
        self.ending = True

    # ── its life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open the rewards with what they need, and close them in the end."""
        self.ending = False
        async with contextlib.AsyncExitStack() as stack:
            if self.settings.access_log is not None:
                self._log = AccessLog(self.settings.access_log)
                stack.callback(self._log.close)
            for name, reward in self._rewards.items():
                self._judging[name] = await stack.enter_async_context(open_judging(name, reward, self.settings))
            for extension in self._extensions:
                await stack.enter_async_context(extension.open())
            gc.freeze()  # what was loaded stays, with hardly any garbage: no collection needs to look at it again
            try:
                yield
            finally:
                self.ending = True
                self._judging = {}

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self.open():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except RewardKitError as error:
            await send({"type": "lifespan.startup.failed", "message": mask(str(error))})
            return
        await send({"type": "lifespan.shutdown.complete"})

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, one WebSocket, or the application's life."""
        kind = scope["type"]
        if kind == "http":
            await self._http(scope, receive, send)
        elif kind == "websocket":
            await self._websocket(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        served = _Served(Head(scope["headers"]))
        held = Held(self._bodies)
        try:
            response = _encoded(await self._reply(scope, receive, send, served, held))
        except CallerLeft:
            served.status = _LEFT_STATUS
            response = None
        except Exception as error:  # noqa: BLE001 - the last boundary: everything becomes a reply
            response = _encoded(self._reply_to(error, served))
        except asyncio.CancelledError:  # by the web server, when the time for draining is up
            response = _encoded(self._reply_to(Refusal.ending(), served))
        finally:
            held.release()
        if response is not None:
            await _send(response, served, send)
        self._note(scope, served)

    async def _reply(
        self, scope: Scope, receive: Receive, send: Send, served: _Served, held: Held
    ) -> Reply | _Plain | None:
        """What is to be sent; None where it was sent already."""
        path = scope["path"]
        if path in _OPEN_PATHS:  # whoever looks after the server is never told that it asks too much
            served.route, found = path, self._find(scope["method"], path)
            assert isinstance(found, _Tell)
            return found.tell()
        caller = await self.gate.caller_of(served.head, _peer_names(scope))
        served.caller = caller.id
        allowance = self._allowances.of(caller)
        allowance.enter()
        try:
            found = self._find(scope["method"], path)
            if found is None:
                return await self._by_extension(scope, receive, send, served)
            served.route = found.label
            if isinstance(found, _Tell):
                return found.tell()
            if served.head.encoding not in {None, b"identity"}:
                raise Refusal.unreadable("The body is compressed. Send it as it is.", 415)
            body = await self._bodies.read(receive, served.head.length, held)
            served.size_in = len(body)
            told, texts = self._bodies.json(body)
            threshold, needs_ids = self._asks[found.reward]
            written = as_written(texts) if texts else as_json
            exchange = found.route.read(Incoming(told, PlainHeaders(scope["headers"]), threshold, needs_ids, written))
            del body
            asked = exchange.asked
            if not asked:
                return exchange.reply(())
            if len(asked) > self._most_answers:
                raise Refusal.too_large(f"The request holds more than {self._most_answers} answers. Send less at once.")
            allowance.spend(len(asked))
            verdicts = await self._judge(found.reward, asked)
            served.answers = len(asked)
            served.failures = self.metrics.judged(found.reward, verdicts)
            return exchange.reply(verdicts)
        finally:
            allowance.leave()

    async def _judge(self, name: str, asked: Sequence[Rollout | Failure]) -> list[Verdict]:
        if judging := self._judging.get(name):
            return await judging.judge(asked)
        # Nobody has told us that a server starts, as some test clients do: what is needed is opened for this request.
        async with open_judging(name, self._rewards[name], self.settings) as judging:
            return await judging.judge(asked)

    def _find(self, method: str, path: str) -> _Ask | _Tell | None:
        """What serves the path; None where it may be an extension's."""
        methods = self._paths.get(path)
        if methods is None:
            if self._more is None:
                raise Refusal.no_such_path()
            return None
        found = methods.get(method)
        if found is None:
            raise Refusal.wrong_method(", ".join(sorted(methods)))
        return found

    def _reply_to(self, error: Exception, served: _Served) -> Reply:
        if isinstance(error, Refusal):
            self.metrics.refused(error.kind)
            return Reply(error.status, error.body, error.headers)
        if isinstance(error, BadRequest):
            self.metrics.refused("unreadable")
            return Reply(error.status, {"detail": str(error)})
        if isinstance(error, RewardKitError):  # the reward cannot work at all: a package or a key is missing
            self.metrics.refused("unusable")
            return Reply(500, {"detail": mask(str(error)), "type": type(error).__name__})
        _log.error("Request %s failed by a fault of the server.", served.head.request_id, exc_info=error)
        self.metrics.refused("fault")
        return Reply(500, {"detail": "A fault of the server. Its log has more under the request id."})

    def _note(self, scope: Scope, served: _Served) -> None:
        seconds = time.perf_counter() - served.began
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self.metrics.request(method, served.route, served.status, seconds, served.size_in, served.size_out)
        if self._log is None:
            return
        client = scope.get("client")
        path = scope["path"] if served.route != "other" else blot(scope["path"][:200])
        self._log.add({
            "time": round(time.time(), 3), "request_id": served.head.request_id, "caller": served.caller,
            "client": client[0] if client else None, "method": method, "path": path, "status": served.status,
            "ms": round(seconds * 1000, 3), "bytes_in": served.size_in, "bytes_out": served.size_out,
            "answers": served.answers, "failures": served.failures,
        })  # fmt: skip

    # ── extensions ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _by_extension(self, scope: Scope, receive: Receive, send: Send, served: _Served) -> Reply | None:
        from starlette.exceptions import HTTPException

        assert self._more is not None
        served.route = "extension"
        scope["app"] = self  # has the router raise what it does not know
        try:
            await self._more(scope, _limited(receive, self.settings.limits.body_mb, served), _watched(send, served))
        except HTTPException as error:
            if error.status_code == 404 and not error.headers:
                served.route = "other"
                raise Refusal.no_such_path() from None
            if served.status:  # it has begun to answer already
                raise
            return Reply(error.status_code, {"detail": error.detail}, error.headers or {})
        return None

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a WebSocket in where one is served, or refuse it before it begins."""
        served = _Served(Head(scope["headers"]))
        try:
            caller = await self.gate.caller_of(served.head, _peer_names(scope))
            allowance = self._allowances.of(caller)
            allowance.enter()
        except Refusal as refusal:
            self.metrics.refused(refusal.kind)
            await send({"type": "websocket.close", "code": 1008, "reason": str(refusal)})
            return
        try:
            if self._more is None:
                await send({"type": "websocket.close", "code": 1008, "reason": "There is no WebSocket here."})
            else:
                await self._more(scope, receive, send)
        finally:
            allowance.leave()


def _same(told: Reply) -> Reply:
    return told


def _peer_names(scope: Scope) -> Sequence[str]:
    names: Sequence[str] = scope.get("state", {}).get(PEER_NAMES, ())
    return names


def _router(extensions: Sequence[Extension]) -> Any:
    """What serves the routes of extensions; None where there are none."""
    if not extensions:
        return None
    with needs_extra("Serving rewards", "serve"):
        from starlette.routing import Router
    return Router(routes=[route for extension in extensions for route in extension.routes()], redirect_slashes=False)


def _encoded(reply: Reply | _Plain | None) -> _Response | None:
    """The reply as bytes; None where there is none."""
    if reply is None:
        return None
    if isinstance(reply, _Plain):
        return _Response(reply.status, reply.text.encode(), [(b"content-type", reply.content_type.encode())])
    try:
        body = orjson.dumps(reply.body)
    except TypeError:  # half a character, a number beyond 64 bits: a reward may put anything into a reason
        body = json.dumps(reply.body, default=str).encode()
    headers = [(name.encode(), value.encode("latin-1")) for name, value in reply.headers.items()]
    return _Response(reply.status, body, [_JSON, *headers])


async def _send(response: _Response, served: _Served, send: Send) -> None:
    body = response.body
    served.status, served.size_out = response.status, len(body)
    headers = [
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", served.head.request_id.encode()),
        *response.headers,
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _limited(receive: Receive, megabytes: float, served: _Served) -> Receive:
    """The same, for an extension: more than a body may have is refused."""
    most = int(megabytes * (1 << 20))

    async def limited() -> MutableMapping[str, Any]:
        message = await receive()
        served.size_in += len(message.get("body", b""))
        if served.size_in > most:
            raise Refusal.too_large(f"The body is larger than {megabytes:g} MB. Send less at once.")
        return message

    return limited


def _watched(send: Send, served: _Served) -> Send:
    """The same, for an extension: what it answers is noted, and carries the request's id."""

    async def watched(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            served.status = message["status"]
            named = (b"x-request-id", served.head.request_id.encode())
            message = {**message, "headers": [*message.get("headers", ()), named]}
        else:
            served.size_out += len(message.get("body", b""))
        await send(message)

    return watched
