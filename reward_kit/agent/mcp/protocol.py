# SPDX-License-Identifier: Apache-2.0
"""What goes over the wire between an MCP client and a server: messages, metadata, headers. Nothing is sent here.

Two eras are spoken. *Modern* (2026-07-28): every request stands alone and says its version and capabilities in `_meta`,
and again in headers over HTTP. *Legacy* (2025-11-25 and older): an `initialize` handshake, and over HTTP a session.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from reward_kit._version import __version__
from reward_kit.utils import exact_json

__all__ = [
    "LEGACY",
    "MODERN",
    "UNSUPPORTED_VERSION",
    "Mirrored",
    "RpcError",
    "ToolDefinition",
    "client_info",
    "decoded_header",
    "encode",
    "error_of",
    "header_value",
    "mirrored_parameters",
    "modern_headers",
    "modern_meta",
    "parameter_headers",
    "parse",
    "supported_versions",
    "tool_definition",
]

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first; the first one is offered."""

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
"""The error of a server that does not speak the version of a request; its data name the versions that it speaks."""

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"

REWARD_KEY: Final = "reward-kit/reward"
DONE_KEY: Final = "reward-kit/done"
"""In the `_meta` of a call's result, which no model is shown: what the call was worth, and whether that was the end."""

_LARGEST_INTEGER = 2**53 - 1
_LONGEST_TEXT = 2000
"""Characters of a server's error message that are kept."""


class RpcError(Exception):
    """What a server answered instead of a result. Over HTTP, a refusal without a body has its status as code."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        """Keep what the server said."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as one line, without the line's end. Half a character, which models write, becomes a question mark."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(errors="replace")


def parse(data: bytes) -> dict[str, Any] | None:
    """A message that came; None where it is none. Bytes that are no UTF-8 inside of strings become question marks."""
    try:
        message = exact_json.loads(data)
    except ValueError:
        message = _parse_mended(data)
    return message if isinstance(message, dict) else None


def _parse_mended(data: bytes) -> object:
    """Half characters and stray bytes come from careless servers, and are no reason to lose a whole answer."""
    try:
        return json.loads(data.decode(errors="replace"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def error_of(message: Mapping[str, Any]) -> RpcError | None:
    """The error that a reply holds, if it holds one."""
    error = message.get("error")
    if not isinstance(error, dict):
        return None
    code = error.get("code")
    text = str(error.get("message", "no message"))[:_LONGEST_TEXT]
    return RpcError(code if isinstance(code, int) else INTERNAL_ERROR, text, error.get("data"))


def supported_versions(value: object) -> list[str]:
    """The versions that a list names; none where it is no list."""
    return [version for version in value if isinstance(version, str)] if isinstance(value, list) else []


# ── metadata and headers ─────────────────────────────────────────────────────────────────────────────────────────────


def client_info() -> dict[str, str]:
    """Who asks."""
    return {"name": "reward-kit", "version": __version__}


def modern_meta() -> dict[str, Any]:
    """What every modern request says of itself. We can do nothing for a server: no sampling, no questions to people."""
    return {VERSION_KEY: MODERN, CLIENT_KEY: client_info(), CAPABILITIES_KEY: {}}


def modern_headers(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """What a modern request over HTTP says in its headers as well."""
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if method == "tools/call":
        headers["Mcp-Name"] = header_value(params["name"])
    return headers


_PLAIN_HEADER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_ENCODED_HEADER = re.compile(r"=\?base64\?.*\?=")


def header_value(value: object) -> str:
    """A value as a header holds it: as it is, or as Base64 where it could not be told apart or would not pass."""
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    if _PLAIN_HEADER.fullmatch(text) and not _ENCODED_HEADER.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def decoded_header(value: str | None) -> str | None:
    """The value that a header holds; None where there is none, or it cannot be read."""
    if value is None or not _ENCODED_HEADER.fullmatch(value):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return None


class Mirrored(NamedTuple):
    """A parameter of a tool whose value a server wants in a header, too."""

    path: tuple[str, ...]
    header: str


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MARK = "x-mcp-header"


def mirrored_parameters(schema: Mapping[str, Any]) -> tuple[Mirrored, ...]:
    """The parameters that a tool's schema marks with `x-mcp-header`. A mark that breaks the rules is a `ValueError`."""
    found = tuple(_marked(schema, ()))
    if len({mirrored.header.lower() for mirrored in found}) != len(found):
        raise ValueError(f"two of its parameters have the same {_MARK}")
    if _count_marks(schema) != len(found):
        raise ValueError(f"it has an {_MARK} where no plain property is")
    return found


def _marked(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Mirrored]:
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(part, dict):
            continue
        if _MARK in part:
            header = part[_MARK]
            if not isinstance(header, str) or not _TOKEN.fullmatch(header):
                raise ValueError(f"the {_MARK} of {name!r} cannot be the name of a header")
            if part.get("type") not in ("string", "integer", "boolean"):
                raise ValueError(f"the {_MARK} of {name!r} is on a parameter that is not a string, integer or boolean")
            yield Mirrored((*path, name), f"Mcp-Param-{header}")
        yield from _marked(part, (*path, name))


def _count_marks(value: object) -> int:
    """How many marks there are anywhere. A property that is itself called so is a schema, and no mark."""
    if isinstance(value, dict):
        here = int(_MARK in value and not isinstance(value[_MARK], dict))
        return here + sum(_count_marks(part) for part in value.values())
    return sum(_count_marks(part) for part in value) if isinstance(value, list) else 0


def parameter_headers(mirrored: tuple[Mirrored, ...], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a call for the parameters that are mirrored; what is not given, or null, has none."""
    headers = {}
    for path, header in mirrored:
        value: object = arguments
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool | str) or (isinstance(value, int) and abs(value) <= _LARGEST_INTEGER):
            headers[header] = header_value(value)
    return headers


# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ToolDefinition(NamedTuple):
    """A tool as its server describes it."""

    name: str
    description: str
    parameters: dict[str, Any]
    reads: bool = False
    """Whether the server says that it changes nothing."""
    mirrored: tuple[Mirrored, ...] = ()
    """What a call over HTTP repeats in headers."""


def tool_definition(given: object) -> ToolDefinition:
    """A tool out of a server's list. What is wrong with it is a `ValueError`."""
    if not isinstance(given, dict) or not isinstance(name := given.get("name"), str) or not name:
        raise ValueError("it has no name")
    schema = given.get("inputSchema")
    if not isinstance(schema, dict):
        raise ValueError("its inputSchema is not an object")
    if schema.get("type", "object") != "object":
        raise ValueError("its inputSchema does not describe an object")
    description = given.get("description") or given.get("title") or ""
    hints = given.get("annotations")
    reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
    parameters = {"type": "object", "properties": {}, **schema}
    return ToolDefinition(name, str(description), parameters, reads, mirrored_parameters(schema))
