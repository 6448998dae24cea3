# SPDX-License-Identifier: Apache-2.0
"""Reading the body of a request, within limits: its size, all bodies at a time, how deep its JSON is nested.

How long a caller may take to send it is the business of whoever holds the connection: see `http.server_connection`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from reward_kit.serving.refusals import Refusal
from reward_kit.serving.settings import LimitSettings
from reward_kit.utils import exact_json

__all__ = ["Bodies", "CallerLeft", "Held", "Receive", "brackets_of"]

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

_MOST_CONTAINERS = 200_000
"""Objects and lists in one body: each takes a hundred times the memory of its two characters."""
_STRING = re.compile(rb'"[^"]*"?')
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NEITHER_BRACKETS_NOR_QUOTES = bytes(set(range(256)) - set(b'{}[]"'))
_MEGABYTE = 1 << 20


class CallerLeft(Exception):
    """The caller closed the connection before its request was whole."""


class Held:
    """What one request holds of the room for bodies; give it back with `release`."""

    __slots__ = ("_bodies", "size")

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.size = 0

    def grow(self, size: int) -> None:
        """Take as much more as makes it `size`; a `Refusal` where there is none left."""
        self._bodies.take(size - self.size)
        self.size = size

    def release(self) -> None:
        """Give it back."""
        self._bodies.held -= self.size
        self.size = 0


class Bodies:
    """Reads bodies. One for each server, because what all of them hold together is limited."""

    def __init__(self, limits: LimitSettings) -> None:
        self._largest = int(limits.body_mb * _MEGABYTE)
        self._room = max(self._largest, int(limits.bodies_mb * _MEGABYTE))
        self._deepest = limits.depth
        self.held = 0
        """Bytes that are held just now."""

    def take(self, size: int) -> None:
        """Count `size` bytes more."""
        if self.held + size > self._room:
            raise Refusal.busy()
        self.held += size

    async def read(self, receive: Receive, announced: int | None, held: Held) -> bytes:
        """The whole body, whatever was announced of its size."""
        if announced is not None and announced > self._largest:
            raise self._too_large()
        message = await receive()
        body: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body", False):  # as it mostly is
            if len(body) > self._largest:
                raise self._too_large()
            held.grow(len(body))
            return body
        parts = [body]
        size = len(body)
        held.grow(max(size, announced or 0))
        while message["type"] == "http.request" and message.get("more_body", False):
            message = await receive()
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > self._largest:
                raise self._too_large()
            if size > held.size:
                held.grow(size)
            parts.append(part)
        if message["type"] != "http.request":
            raise CallerLeft
        return b"".join(parts)

    def json(self, body: bytes) -> tuple[Any, exact_json.Texts]:
        """The decoded body, None where it is empty; and how it writes floats that Python writes otherwise."""
        if not body:
            return None, {}
        if body.count(b"{") + body.count(b"[") > self._deepest:
            self._check_structure(body)
        try:
            return exact_json.loads_with_texts(body, unique_keys=True)
        except exact_json.JSONDecodeError as error:
            raise Refusal.unreadable(f"The body is not JSON: {_why(error)}. Send valid JSON, in UTF-8.") from None

    def _check_structure(self, body: bytes) -> None:
        """Refuse what would take too much memory, or is nested too deep, before it is decoded."""
        brackets = brackets_of(body)
        if len(brackets) > 2 * _MOST_CONTAINERS:
            raise Refusal.too_large(
                f"The body holds more than {_MOST_CONTAINERS} objects and lists. Send less at once."
            )
        for _ in range(self._deepest):
            inner = brackets.replace(b"[]", b"")  # takes the innermost ones away
            if not inner or inner == brackets:  # all gone; or they do not match, and decoding will say so
                return
            brackets = inner
        raise Refusal.unreadable(f"The body is nested more than {self._deepest} deep. Send it flatter.")

    def _too_large(self) -> Refusal:
        megabytes = self._largest / _MEGABYTE
        return Refusal.too_large(f"The body is larger than {megabytes:g} MB. Send less at once.")


def _why(error: exact_json.JSONDecodeError) -> str:
    """What is wrong with it, and where: no more of what it says, which may be anything."""
    return f"{error.msg} (character {error.pos})" if error.doc else error.msg


def brackets_of(body: bytes) -> bytes:
    """The brackets of a JSON text, all of them as square ones, without those inside of its strings."""
    if b"\\" in body:  # first, so that a quote ends a string for certain
        body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    marks = body.translate(_SQUARE, _NEITHER_BRACKETS_NOR_QUOTES).replace(b'""', b"")
    return _STRING.sub(b"", marks) if b'"' in marks else marks
