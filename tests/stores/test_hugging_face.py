# SPDX-License-Identifier: Apache-2.0
"""Files of a repository on the Hugging Face Hub, read from a server on this machine that answers as the Hub does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import orjson
import pytest

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_samples
from reward_kit.errors import DatasetError
from tests.loopback.runs import questions

REPOSITORY = "/api/datasets/org/name"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """One dataset repository, with the few calls that reading a file takes."""

    files: dict[str, bytes] = field(default_factory=dict)
    address: str = ""
    ranges: list[str | None] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    def entry(self, path: str) -> dict[str, Any]:
        return {"type": "file", "path": path, "size": len(self.files[path]), "oid": f"{hash(self.files[path]):x}"}

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        path = unquote(urlsplit(request.path).path)
        if path in {REPOSITORY, f"{REPOSITORY}/revision/main"}:
            return 200, orjson.dumps({"id": "org/name", "sha": COMMIT, "siblings": []}), {}
        if path.startswith(f"{REPOSITORY}/paths-info/"):
            asked = parse_qs(body.decode()).get("paths") or orjson.loads(body)["paths"]
            return 200, orjson.dumps([self.entry(name) for name in asked if name in self.files]), {}
        if path.startswith(f"{REPOSITORY}/tree/"):
            return 200, orjson.dumps([self.entry(name) for name in sorted(self.files)]), {}
        name = path.removeprefix("/datasets/org/name/resolve/").partition("/")[2]
        if name in self.files:
            return self.part(self.files[name], request.headers.get("Range"))
        self.strange.append(f"{request.command} {request.path}")
        return 404, b"{}", {"X-Error-Code": "RepoNotFound"}

    def part(self, data: bytes, wanted: str | None) -> tuple[int, bytes, dict[str, str]]:
        self.ranges.append(wanted)
        if wanted is None:
            return 200, data, {}
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or len(data)), len(data) - 1)
        return 206, data[start : end + 1], {"Content-Range": f"bytes {start}-{end}/{len(data)}"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    # Read once from the environment, which another test of this process may have set.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    made = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content, headers = made.answer(self, body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content)), "ETag": '"e"'}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_POST = do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ids(hub: Hub, path: str) -> list[str]:
    options = {"endpoint": hub.address, "token": False}
    return [sample.id for sample in load_samples(DatasetConfig(path_or_name=path, storage_options=options))]


def test_a_file_and_a_pattern_of_the_hub_are_read(hub: Hub) -> None:
    lines = [orjson.dumps(row) + b"\n" for row in questions(40)]
    hub.files = {"data.jsonl": b"".join(lines), "part-0.jsonl": lines[0], "part-1.jsonl": lines[1]}
    assert ids(hub, "hf://datasets/org/name/data.jsonl") == [f"s{i}" for i in range(40)]
    assert ids(hub, "hf://datasets/org/name/part-*.jsonl") == ["s0", "s1"]
    assert hub.ranges and not hub.strange


def test_what_is_not_there_is_one_sentence(hub: Hub) -> None:
    for path in ("hf://datasets/org/name/none.jsonl", "hf://datasets/org/other/data.jsonl"):
        with pytest.raises(DatasetError, match="does not exist, or matches nothing"):
            ids(hub, path)
