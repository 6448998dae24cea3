# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document of a server: every path it serves, with the shapes of requests and replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit._version import __version__
from reward_kit.serving.dialect import Dialect, Route

__all__ = ["openapi_document"]

_PLAIN = {
    "/": "What is served here.",
    "/health": "Whether the server is alive.",
    "/ready": "Whether it can judge now.",
    "/metrics": "Figures, as Prometheus reads them.",
    "/openapi.json": "This document.",
    "/evaluate": "What the reward is: its parameters, and what its results depend on.",
}
_REFUSALS = {
    "400": "The body is not JSON.", "401": "A credential is needed.", "403": "The credential is not accepted.",
    "413": "Too much at once.", "422": "The JSON has another shape.", "429": "More than this caller may ask.",
    "503": "Busy, or ending. Retry-After says when to ask again.",
}  # fmt: skip
_DETAIL = {"type": "object", "properties": {"detail": {"type": "string"}}}


def openapi_document(rewards: Sequence[str], dialects: Sequence[Dialect], *, protected: bool) -> dict[str, Any]:
    """The document for these rewards and dialects."""
    paths: dict[str, dict[str, Any]] = {
        path: {"get": {"summary": summary, "responses": {"200": {"description": "As said."}}}}
        for path, summary in _PLAIN.items()
    }
    for dialect in dialects:
        for route in dialect.routes:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(dialect, route)
            named = paths.setdefault(f"/rewards/{{name}}{route.path}", {})
            named[route.method.lower()] = _operation(dialect, route, rewards)
    security = {"bearer": {"type": "http", "scheme": "bearer"}, "key": _header("X-Api-Key")}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Rewards", "version": __version__, "description": f"Serves {', '.join(rewards)}."},
        "paths": paths,
        **(
            {"components": {"securitySchemes": security}, "security": [{"bearer": []}, {"key": []}]}
            if protected
            else {}
        ),
    }


def _header(name: str) -> dict[str, str]:
    return {"type": "apiKey", "in": "header", "name": name}


def _operation(dialect: Dialect, route: Route, rewards: Sequence[str] = ()) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "tags": [dialect.name],
        "requestBody": {"required": True, "content": _json(route.request_schema)},
        "responses": {
            "200": {"description": "Judged.", "content": _json(route.response_schema)},
            **{status: {"description": text, "content": _json(_DETAIL)} for status, text in _REFUSALS.items()},
        },
    }
    if rewards:
        choice = {"type": "string", "enum": list(rewards)}
        operation["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": choice}]
    return operation


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": dict(schema)}}
