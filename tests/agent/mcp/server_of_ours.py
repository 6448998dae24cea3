# SPDX-License-Identifier: Apache-2.0
"""An MCP server over stdin and stdout, of the standard library alone, that also behaves badly when it is asked to.

python server_of_ours.py [modern|legacy|both|silent|fragile]     `silent` answers no discover, `fragile` dies of it
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

MODERN, LEGACY = "2026-07-28", "2025-11-25"
OBJECT = {"type": "object", "properties": {}}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "add",
        "description": "Add two numbers.",
        "annotations": {"readOnlyHint": True},
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
    {"name": "count", "description": "How often it was called.", "inputSchema": OBJECT},
    {"name": "say", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    *({"name": name, "inputSchema": OBJECT} for name in (
        "image", "structured", "fail", "refuse", "die", "hang", "large", "noise", "flood", "latin", "half", "wrong_id",
        "no_result", "asks", "again", "odd_type", "environment", "grow", "deep",
    )),
    {"name": "broken schema", "inputSchema": "none"},
    {"name": "list.schema", "inputSchema": {"type": "array"}},
]  # fmt: skip
PAGE = 5


class Server:
    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.calls = 0
        self.hellos = 0
        self.grown = False
        self.cancelled: list[Any] = []

    def send(self, message: Mapping[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def take(self, message: dict[str, Any]) -> None:
        method, request = message.get("method"), message.get("id")
        if method == "notifications/cancelled":
            self.cancelled.append(message["params"]["requestId"])
        if request is None or method is None:
            return
        params = message.get("params", {})
        if method == "initialize" and self.mode != "modern":
            self.hellos += 1
            version = params["protocolVersion"]
            return self.result(request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {}})
        modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
        if method == "server/discover" and self.mode == "silent":
            return None
        if method == "server/discover" and self.mode == "fragile":
            os._exit(1)
        if modern != (self.mode in ("modern", "both")) and not (self.mode == "both" and self.hellos):
            code = -32022 if self.mode == "modern" else -32601
            data = {"supported": [MODERN], "requested": "?"} if self.mode == "modern" else None
            return self.send({"id": request, "error": {"code": code, "message": "not so", "data": data}})
        if method == "server/discover":
            self.result(request, {"supportedVersions": [MODERN], "capabilities": {}, "resultType": "complete"})
        elif method == "tools/list":
            self.list(request, params)
        else:
            self.call(request, params["name"], params.get("arguments", {}), params)
        return None

    def result(self, request: Any, result: Mapping[str, Any]) -> None:
        self.send({"id": request, "result": result})

    def text(self, request: Any, text: str, **more: Any) -> None:
        self.result(request, {"content": [{"type": "text", "text": text}], **more})

    def list(self, request: Any, params: Mapping[str, Any]) -> None:
        tools = [*TOOLS, {"name": "grown", "inputSchema": OBJECT}] if self.grown else TOOLS
        start = int(params.get("cursor", 0))
        page: dict[str, Any] = {"tools": tools[start : start + PAGE]}
        if start + PAGE < len(tools):
            page["nextCursor"] = str(start + PAGE)
        self.result(request, page)

    def call(self, request: Any, name: str, arguments: Mapping[str, Any], params: Mapping[str, Any]) -> None:  # noqa: C901, PLR0912, PLR0915
        self.calls += 1
        match name:
            case "add":
                self.text(request, str(arguments["a"] + arguments["b"]))
            case "count":
                self.text(request, str(self.calls))
            case "say":
                self.text(request, arguments["text"])
            case "image":
                data = base64.b64encode(b"x" * 100).decode()
                parts = [{"type": "text", "text": "see:"}, {"type": "image", "data": data, "mimeType": "image/png"}]
                self.result(request, {"content": parts})
            case "structured":
                self.result(request, {"content": [], "structuredContent": {"n": 1}})
            case "fail":
                self.text(request, "the well is dry", isError=True)
            case "refuse":
                self.send({"id": request, "error": {"code": -32602, "message": "Unknown tool: refuse"}})
            case "die":
                sys.stderr.write("killed by a falling piano\n")
                sys.stderr.flush()
                os._exit(3)
            case "hang":
                time.sleep(3600)
            case "large":
                self.text(request, "x" * arguments.get("size", 20_000_000))
            case "noise":
                self.write(b"Listening ...\n\n[1, 2]\n{nothing\n\xff\xfe\n" + b"null\n" * 10)
                self.text(request, "quiet again")
            case "flood":
                self.write(b'{"jsonrpc":"2.0","method":"notifications/progress"}\n' * 20_000)
                self.text(request, "never read")
            case "latin":
                reply = json.dumps(
                    {"jsonrpc": "2.0", "id": request, "result": {"content": [{"type": "text", "text": "?"}]}}
                )
                self.write(reply.replace("?", "\xe4").encode("latin-1") + b"\n")
            case "half":
                self.text(request, "\ud83d!")
            case "wrong_id":
                for wrong in (request + 1000, str(request), None, -1, 1.5, [request]):
                    self.send({"id": wrong, "result": {"content": []}})
                self.text(request, "right at last")
            case "no_result":
                self.send({"id": request, "value": 1})
            case "asks":
                self.send({"id": "s1", "method": "sampling/createMessage", "params": {}})
                self.send({"id": "s2", "method": "ping"})
                answers = [json.loads(sys.stdin.readline()) for _ in range(2)]
                said = {answer["id"]: "result" if "result" in answer else answer["error"]["code"] for answer in answers}
                self.text(request, json.dumps(said, sort_keys=True))
            case "again":
                if "requestState" in params:
                    self.text(request, f"thanks for {params['requestState']}")
                elif "person" in arguments:
                    self.result(request, {"resultType": "input_required", "inputRequests": {"a": {}}})
                else:
                    self.result(request, {"resultType": "input_required", "requestState": "a token"})
            case "odd_type":
                self.result(request, {"resultType": "surprise"})
            case "environment":
                self.text(request, json.dumps(dict(os.environ)))
            case "grow":
                self.grown = True
                self.send({"method": "notifications/tools/list_changed"})
                self.text(request, "grown")
            case "deep":
                self.write(b'{"jsonrpc":"2.0","id":%d,"result":' % request + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
                self.text(request, "not so deep")
            case _:
                self.text(request, f"Unknown tool: {name}", isError=True)


def main() -> None:
    server = Server(sys.argv[1] if len(sys.argv) > 1 else "modern")
    for line in sys.stdin:
        server.take(json.loads(line))


if __name__ == "__main__":
    main()
