# SPDX-License-Identifier: Apache-2.0
"""Shell tasks in a few words: tasks, commands files, an endpoint that writes commands, and the command line."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.utils.event_loop import run_sync

Row = dict[str, Any]


def task(number: int, **columns: Any) -> Row:
    """Make a file called after the number, in a directory the setup went into."""
    return {
        "task": f"Create an empty file called 'f{number}'.",
        "setup_commands": ["mkdir -p work", "cd work"],
        "success_condition": f"test -f f{number}",
        **columns,
    }


def command(number: int, text: str | None = None, **columns: Any) -> Row:
    """The line that solves such a task, or tries to."""
    made = {"generated_command": f"touch f{number}" if text is None else text, "timestamp": "2024-05-01T00:00:00Z"}
    return {"task_id": f"t{number}", **task(number), **made, **columns}


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    return path


def lines(path: Path) -> list[Row]:
    """The lines of a file, each of which must be whole."""
    content = path.read_bytes()
    assert content.endswith(b"\n") or not content
    return [orjson.loads(line) for line in content.splitlines()]


def summary(directory: Path) -> Row:
    found: Row = orjson.loads((directory / "summary.json").read_bytes())
    return found


# ── a sandbox that works here ────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def _why_not() -> str:
    from reward_kit.sandbox.namespaces.backend import NamespacesBackend

    async def probe() -> str:
        backend = NamespacesBackend()
        try:
            found = await backend.probe()
        finally:
            await backend.close()
        return "" if found.works else found.detail

    return run_sync(probe)


def require_namespaces() -> None:
    """Skip the test where namespaces do not work, and say why."""
    if reason := _why_not():
        pytest.skip(f"the namespaces backend does not work here: {reason}")


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────


def start(*arguments: str | Path, home: Path, **environment: str) -> subprocess.Popen[str]:
    """Start `reward-kit shell` in `home`."""
    return subprocess.Popen(
        [sys.executable, "-m", "reward_kit", "shell", *map(str, arguments)], cwd=home, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**_environment(), **environment},
    )  # fmt: skip


def _environment() -> dict[str, str]:
    ours = {"PYTHONPATH": str(Path(__file__).parents[2])}
    return {**{name: value for name, value in os.environ.items() if name != "OPENAI_BASE_URL"}, **ours}


def shell(*arguments: str | Path, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `reward-kit shell` to its end."""
    process = start(*arguments, home=home, **environment)
    out, err = process.communicate(timeout=100)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


# ── an endpoint ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Endpoint:
    """A chat-completions endpoint that answers every task with the command that solves it."""

    def __init__(self, say: Callable[[str], str] | None = None, delay: float = 0.0) -> None:
        self.asked: list[str] = []
        self.keys: list[str | None] = []
        self._say = say or self.solve
        self._delay = delay
        self._lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                content = endpoint.reply(body, self.headers.get("Authorization"))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    @staticmethod
    def solve(prompt: str) -> str:
        name = prompt.partition("'")[2].partition("'")[0]
        return json.dumps({"command": f"touch {name}"})

    def reply(self, body: Row, key: str | None) -> bytes:
        prompt = body["messages"][-1]["content"]
        with self._lock:
            self.asked.append(prompt)
            self.keys.append(key)
        time.sleep(self._delay)
        choice = {"index": 0, "message": {"role": "assistant", "content": self._say(prompt)}, "finish_reason": "stop"}
        choices = [{**choice, "index": index} for index in range(body.get("n") or 1)]
        return orjson.dumps({"choices": choices, "usage": {"prompt_tokens": 7, "completion_tokens": 3}})


@contextmanager
def endpoint(say: Callable[[str], str] | None = None, delay: float = 0.0) -> Iterator[Endpoint]:
    """Serve until the block ends."""
    serving = Endpoint(say, delay)
    thread = threading.Thread(target=serving.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield serving
    finally:
        serving.server.shutdown()
        serving.server.server_close()
        thread.join()
