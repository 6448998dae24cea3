# SPDX-License-Identifier: Apache-2.0
"""The server's application: which address is answered by what.

    /                      the page, and every address of its own that is not below /api or /static
    /static/NAME           its files
    /api/…                 `wire.py` says what; here is where each is answered

Handlers are plain functions on a few threads. They take the viewer and what was asked, and return what `wire.py` says,
or raise a `ViewerError`. Whoever has routes of their own (reviews, trials) hands them to `build_app`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread
import orjson
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from reward_kit._version import __version__
from reward_kit.redaction import mask
from reward_kit.viewer import wire
from reward_kit.viewer.access import Access, Guarded
from reward_kit.viewer.assets import Asset, Assets
from reward_kit.viewer.compare_page import compare_page, compare_rows
from reward_kit.viewer.events import changes, from_thread
from reward_kit.viewer.json_answers import as_json
from reward_kit.viewer.problems import ViewerError, WrongRequest
from reward_kit.viewer.queries import Query
from reward_kit.viewer.rows import MOST_ROWS, Table
from reward_kit.viewer.run_page import card_of, run_page
from reward_kit.viewer.sample_page import record_page, sample_page
from reward_kit.viewer.search import search
from reward_kit.viewer.viewer import Viewer
from reward_kit.viewer.views import read_number, read_view

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["ApiRoute", "Asked", "Handler", "build_app"]

_LOG = logging.getLogger(__name__)
_LAST_ROW = 10**12
_MOST_BODY = 64 << 20
_MOST_COMPARED = 20
_THREADS, _LISTENING = 8, 8


class Asked(NamedTuple):
    """A request, as a handler sees it."""

    path: Mapping[str, Any]
    """The parts of the address that its route names."""
    parameters: QueryParams
    body: Any
    """The JSON that was sent; None where nothing was."""
    query: Query | None = None
    """To work with: it is ended when whoever asked is gone."""


Handler = Callable[[Viewer, Asked], Any]
"""Answers one request, on a thread."""


class ApiRoute(NamedTuple):
    """One address below /api."""

    method: str
    path: str
    handler: Handler


def build_app(viewer: Viewer, access: Access, more: Sequence[ApiRoute] = (), assets: Assets | None = None) -> ASGIApp:
    """The application, behind its checks. `more`: routes of others, which come before our own."""
    register_url_convertor("name", _Name())
    threads = anyio.CapacityLimiter(_THREADS)
    routes: list[BaseRoute] = [
        Route(route.path, partial(_answer, viewer, route.handler, threads), methods=[route.method])
        for route in (*more, *_ROUTES)
    ]
    held = assets or Assets()
    listening = anyio.CapacityLimiter(_LISTENING)
    routes[:0] = [
        Route("/api/runs/{key}/changes", partial(_changes, viewer, listening), methods=["GET"]),
        Route("/api/runs/{key}/search", partial(_search, viewer, listening), methods=["GET"]),
    ]
    routes += [
        Route("/api/{rest:path}", _unknown, methods=["GET", "POST"]),
        Route("/static/{name:path}", partial(_static, held), methods=["GET"]),
        Route("/{rest:path}", partial(_page, held), methods=["GET"]),
    ]
    return Guarded(Starlette(routes=routes), access)


class _Name(PathConvertor):
    """A sample's name in an address: any text, line breaks too, which `path` would end at."""

    regex = r"[\s\S]+"


async def _answer(viewer: Viewer, handler: Handler, threads: anyio.CapacityLimiter, request: Request) -> Response:
    """Call a handler. Whatever happens becomes an answer: the server lives on."""
    try:
        body = await _body(request) if request.method == "POST" else None
        with viewer.database.query() as query:
            asked = Asked(request.path_params, request.query_params, body, query)
            content = await _while_awaited(request, query, lambda: as_json(handler(viewer, asked)), threads)
        return Response(content, media_type="application/json", headers={"cache-control": "no-store"})
    except ViewerError as error:
        return _problem(error.status, error.code, str(error))
    except Exception as error:  # noqa: BLE001 - the boundary: what was not foreseen is told, and the server lives on
        _LOG.error("%s", mask(f"{type(error).__name__} while answering {request.url.path}: {error}"), exc_info=True)
        return _problem(500, "fault", "The viewer failed here; the terminal says where. Load the page again.")


async def _while_awaited(
    request: Request, query: Query, work: Callable[[], bytes], threads: anyio.CapacityLimiter
) -> bytes:
    """What a thread makes. When whoever asked is gone, the query it works with is ended; so others need not wait."""

    def begun() -> bytes:
        query.check()  # it may have waited for its thread for long
        return work()

    watch = asyncio.create_task(_end_when_left(request, query))
    try:
        return await anyio.to_thread.run_sync(begun, limiter=threads)
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch


async def _end_when_left(request: Request, query: Query) -> None:
    for _ in ("the body of a GET, which is empty", "the end"):
        if (await request.receive())["type"] == "http.disconnect":
            query.end()
            return


async def _body(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise WrongRequest(
            "The request does not say that its body is JSON. Send it with `content-type: application/json`."
        )
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > _MOST_BODY:
            raise WrongRequest(f"The body has more than {_MOST_BODY >> 20} MB. Send less.")
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise WrongRequest(f"The body is not JSON ({error}). Correct it.") from error


def _problem(status: int, code: str, message: str) -> Response:
    content = as_json({"error": {"code": code, "message": message}})
    return Response(content, status, media_type="application/json", headers={"cache-control": "no-store"})


async def _changes(viewer: Viewer, threads: anyio.CapacityLimiter, request: Request) -> Response:
    try:
        run = viewer.run(request.path_params["key"])
    except ViewerError as error:
        return _problem(error.status, error.code, str(error))
    return _stream(changes(run, threads))


async def _search(viewer: Viewer, threads: anyio.CapacityLimiter, request: Request) -> Response:
    asked = Asked(request.path_params, request.query_params, None)

    def work(query: Query) -> Iterator[wire.SearchProgress]:
        yield from search(_table(viewer, asked), query)

    try:
        viewer.run(request.path_params["key"])
        read_view(request.query_params)
    except ViewerError as error:
        return _problem(error.status, error.code, str(error))
    return _stream(from_thread(viewer.database, work, threads))


def _stream(events: AsyncIterator[bytes]) -> Response:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _unknown(request: Request) -> Response:
    return _problem(404, "not_there", f"There is nothing at {request.url.path[:200]!r}. Load the page again.")


async def _page(assets: Assets, request: Request) -> Response:
    return _file(assets.page())


async def _static(assets: Assets, request: Request) -> Response:
    found = assets.get(request.path_params["name"])
    return _problem(404, "not_there", "There is no such file. Load the page again.") if found is None else _file(found)


def _file(asset: Asset) -> Response:
    caching = "private, max-age=31536000, immutable" if asset.forever else "no-cache"
    return Response(asset.content, headers={"content-type": asset.type, "cache-control": caching})


# ── handlers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _overview(viewer: Viewer, asked: Asked) -> wire.Overview:
    cards = [card_of(run, viewer.reviews.count(run)) for run in viewer.runs.values()]
    return wire.Overview(version=__version__, runs=cards, allow_run=viewer.allow_run, reviewer=viewer.reviewer)


def _run(viewer: Viewer, asked: Asked) -> wire.RunPage:
    run = viewer.run(asked.path["key"])
    return run_page(run, viewer.reviews.count(run))


def _rows(viewer: Viewer, asked: Asked) -> wire.Rows:
    offset = read_number(asked.parameters, "offset", 0, _LAST_ROW)
    limit = read_number(asked.parameters, "limit", 100, MOST_ROWS)
    columns = [name for name in (asked.parameters.get("columns") or "").split(",") if name]
    return _table(viewer, asked).page(offset, limit, columns)


def _table(viewer: Viewer, asked: Asked) -> Table:
    snapshot = viewer.run(asked.path["key"]).now()
    return Table(viewer.database, viewer.orders, snapshot, read_view(asked.parameters), asked.query)


def _sample(viewer: Viewer, asked: Asked) -> wire.SamplePage:
    run, table, name = viewer.run(asked.path["key"]), _table(viewer, asked), asked.path["id"]
    return sample_page(run, table.snapshot, table, name, viewer.reviews.of_sample(run, name))


def _record(viewer: Viewer, asked: Asked) -> dict[str, Any]:
    return record_page(viewer.run(asked.path["key"]).now(), asked.path["id"], int(asked.path["index"]))


def _compare(viewer: Viewer, asked: Asked) -> wire.ComparePage:
    keys = [key for key in (asked.parameters.get("runs") or "").split(",") if key]
    if len(keys) > _MOST_COMPARED:
        raise WrongRequest(f"{len(keys)} runs are too many to compare. Choose at most {_MOST_COMPARED}.")
    return compare_page([viewer.run(key) for key in keys])


def _compare_rows(viewer: Viewer, asked: Asked) -> wire.CompareRows:
    given = asked.parameters
    a, b = (viewer.run(given.get(name) or "").now() for name in ("a", "b"))
    offset, limit = read_number(given, "offset", 0, _LAST_ROW), read_number(given, "limit", 100, MOST_ROWS)
    return compare_rows(a, b, given.get("cell") or "differ", given.get("split") or "", offset, limit)


_ROUTES = (
    ApiRoute("GET", "/api/runs", _overview),
    ApiRoute("GET", "/api/runs/{key}", _run),
    ApiRoute("GET", "/api/runs/{key}/rows", _rows),
    ApiRoute("GET", "/api/runs/{key}/samples/{id:name}", _sample),
    ApiRoute("GET", "/api/runs/{key}/records/{id:name}/{index:int}", _record),
    ApiRoute("GET", "/api/compare", _compare),
    ApiRoute("GET", "/api/compare/rows", _compare_rows),
)
