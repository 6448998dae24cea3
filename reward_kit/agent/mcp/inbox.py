# SPDX-License-Identifier: Apache-2.0
"""What a server sends, sorted: replies to those who wait for them, and everything else within bounds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any

from reward_kit.agent.mcp.contract import Bounds, McpServerFailure, ReplyTooLarge
from reward_kit.agent.mcp.protocol import METHOD_NOT_FOUND, parse

__all__ = ["Inbox", "Lines", "WithInbox"]

_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\b')
_HEAD = 256
"""How far into a message that is too large its id is looked for."""
_SHOWN = 200


class Inbox:
    """Whoever waits for a reply, by the id of the request."""

    def __init__(self, bounds: Bounds, answer: Callable[[dict[str, Any]], None]) -> None:
        """`answer` sends what a request of the server's is answered with."""
        self.bounds = bounds
        self.tools_changed = False
        self._answer = answer
        self._awaited: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._strays = 0
        self._first_stray = ""

    def expect(self, request: int) -> asyncio.Future[dict[str, Any]]:
        """What the reply to a request will be."""
        awaited = self._awaited[request] = asyncio.get_running_loop().create_future()
        return awaited

    def give_up(self, request: int) -> None:
        """Nobody waits for this reply any more; where it comes late, it is passed over."""
        self._awaited.pop(request, None)

    def fail(self, error: McpServerFailure) -> None:
        """Tell everybody who waits that the server has failed."""
        for awaited in self._awaited.values():
            if not awaited.done():
                awaited.set_exception(error)
                awaited.exception()  # nobody may look at it any more
        self._awaited.clear()

    def take(self, data: bytes) -> None:
        """Sort one message that came. Too many that nobody asked for are an `McpServerFailure`."""
        message = parse(data)
        if message is None:
            self._stray(data)
        elif "method" in message:
            self._from_server(message, data)
        else:
            self._reply(message, data)

    def take_too_large(self, head: bytes) -> None:
        """A message was thrown away, and only its beginning is known. Whose reply it was is said there, or clear."""
        found = _ID.search(head[:_HEAD])
        request = int(found[1]) if found else next(iter(self._awaited), None) if len(self._awaited) == 1 else None
        awaited = None if request is None else self._awaited.pop(request, None)
        if awaited is None:
            self._stray(head)
        elif not awaited.done():
            awaited.set_exception(ReplyTooLarge(self.bounds.reply_bytes))

    def _reply(self, message: dict[str, Any], data: bytes) -> None:
        request = message.get("id")
        if request is None and "error" in message and len(self._awaited) == 1:
            request = next(iter(self._awaited))  # the server could not read the id of what it refuses
        awaited = self._awaited.pop(request, None) if isinstance(request, int) else None
        if awaited is None or awaited.done():
            self._stray(data)
            return
        if isinstance(message.get("result"), dict) or isinstance(message.get("error"), dict):
            self._strays = 0
            awaited.set_result(message)
        else:
            awaited.set_exception(
                McpServerFailure(f"The MCP server's reply has no result and no error: {_shown(data)}")
            )

    def _from_server(self, message: Mapping[str, Any], data: bytes) -> None:
        self._stray(data)
        request = message.get("id")
        if message["method"] == "notifications/tools/list_changed":
            self.tools_changed = True
        elif isinstance(request, int | str) and message["method"] == "ping":
            self._answer({"jsonrpc": "2.0", "id": request, "result": {}})
        elif isinstance(request, int | str):
            error = {"code": METHOD_NOT_FOUND, "message": "This client does nothing for servers."}
            self._answer({"jsonrpc": "2.0", "id": request, "error": error})

    def _stray(self, data: bytes) -> None:
        if not self._strays:
            self._first_stray = _shown(data)
        self._strays += 1
        if self._strays > self.bounds.stray_messages:
            raise McpServerFailure(
                f"The MCP server sent {self._strays:,} messages that nobody asked for, the first one: "
                f"{self._first_stray}. On its standard output a server must write nothing but JSON-RPC messages."
            )


def _shown(data: bytes) -> str:
    """The beginning of what a server sent, for a message to people."""
    text = data[:_SHOWN].decode(errors="replace")
    return repr(text) + ("…" if len(data) > _SHOWN else "")


class WithInbox:
    """A channel into whose inbox the server sends, and so learns that the tools have changed."""

    _inbox: Inbox

    @property
    def tools_changed(self) -> bool:
        """Whether the server said that its tools have changed."""
        return self._inbox.tools_changed

    @tools_changed.setter
    def tools_changed(self, value: bool) -> None:
        self._inbox.tools_changed = value


class Lines:
    """Bytes into lines. Of a line that is too long only the beginning is kept, and its end waited for."""

    def __init__(self, inbox: Inbox) -> None:
        """Put the lines into `inbox`."""
        self._inbox = inbox
        self._begun = bytearray()
        self._too_long = False

    def take(self, data: bytes) -> None:
        """Go on with what came next."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._add(piece)
            self._end()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        if not self._too_long and len(self._begun) + len(piece) > self._inbox.bounds.reply_bytes:
            self._too_long = True
            self._begun += piece[: max(0, _HEAD - len(self._begun))]
            del self._begun[_HEAD:]
        elif not self._too_long:
            self._begun += piece

    def _end(self) -> None:
        line = bytes(self._begun).strip()
        self._begun.clear()
        if self._too_long:
            self._too_long = False
            self._inbox.take_too_large(line)
        elif line:
            self._inbox.take(line)
