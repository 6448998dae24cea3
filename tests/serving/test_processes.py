# SPDX-License-Identifier: Apache-2.0
"""The server as a process of its own: what it says, how it ends, and what is left of it when it is killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reward_kit.errors import ConfigError
from reward_kit.generic_server import EvaluationRequest
from reward_kit.server import RewardServer, create_app
from reward_kit.serving.settings import settings_from_file
from tests.serving.rewards import equal
from tests.serving.served import PATIENCE, asked

ROOT = Path(__file__).resolve().parent.parent.parent
CLI = [sys.executable, "-c", "from reward_kit.cli import main; main()"]
SERVE = [*CLI, "serve", "tests.serving.rewards:equal", "tests.serving.rewards:worst", "--workers", "2"]


class Process(NamedTuple):
    popen: subprocess.Popen[str]
    port: int
    said: list[str]

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("POST", path, json.dumps(body).encode(), headers or {})
            found = connection.getresponse()
            return found.status, json.loads(found.read())

    def end(self, number: int = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(PATIENCE)


@contextlib.contextmanager
def started(
    command: list[str], log: Path, port: int = 0, environment: dict[str, str] | None = None
) -> Iterator[Process]:
    with log.open("ab") as errors:
        popen = subprocess.Popen(
            [*command, "--port", str(port)], stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
    assert popen.stdout is not None
    said: list[str] = []
    reading = threading.Thread(target=lambda: said.extend(map(str.rstrip, popen.stdout or ())))
    try:
        for line in popen.stdout:
            said.append(line.rstrip())
            if found := re.search(r"(?:Serving|at) .*?https?://[^:]+:(\d+)", line):
                process = Process(popen, int(found[1]), said)
                reading.start()
                yield process
                break
        else:
            pytest.fail(f"it did not start: {log.read_text()}")
    finally:
        if popen.poll() is None:
            popen.kill()
        popen.wait(PATIENCE)
        if reading.ident is not None:
            reading.join(PATIENCE)
        popen.stdout.close()


class Client(threading.Thread):
    """Asks over a kept connection, again and again, and tries again what got no answer."""

    def __init__(self, port: int, number: int, count: int, path: str) -> None:
        super().__init__()
        self._port, self._number, self._count, self._path = port, number, count, path
        self.answered: dict[int, float] = {}
        self.cut = 0
        """Requests that got no answer, or a 503, and were sent again."""
        self.stopped = threading.Event()

    def run(self) -> None:
        connection: http.client.HTTPConnection | None = None
        for number in range(self._count):
            if self.stopped.is_set():
                break
            while not self.stopped.is_set():
                try:
                    connection = connection or http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
                    connection.request("POST", self._path, json.dumps(asked(f"{number}", f"{number % 2}")).encode())
                    found = connection.getresponse()
                    body = json.loads(found.read())
                    if found.status == 200:
                        self.answered[number] = body["score"]
                        break
                except (OSError, http.client.HTTPException):
                    if connection is not None:
                        connection.close()
                    connection = None
                self.cut += 1
                time.sleep(0.02)
        if connection is not None:
            connection.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "stderr"


def test_it_says_where_and_what_and_for_whom(log: Path) -> None:
    with started(SERVE, log) as server:
        assert server.post("/evaluate", asked("a", "a"))[1]["score"] == 1.0
        assert server.post("/rewards/worst/evaluate", asked("a", "a"))[1]["score"] == 1.0
        assert server.end() == 0
    said = "\n".join(server.said)
    assert "/rewards/worst/evaluate" in said
    assert "anybody on this machine" in said
    assert "curl " in said
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["status"] for line in lines] == [200, 200]


@pytest.mark.parametrize("path", ["/evaluate", "/rewards/worst/evaluate"])
def test_a_server_that_is_told_to_end_answers_what_it_accepted(log: Path, path: str) -> None:
    """Under load, in the middle: each request gets its answer, or its caller is told that it gets none."""
    with started(SERVE, log) as server:
        clients = [Client(server.port, number, 10**9, path) for number in range(16)]
        for client in clients:
            client.start()
        ends = time.monotonic() + PATIENCE
        while sum(len(client.answered) for client in clients) < 200:
            assert time.monotonic() < ends
            time.sleep(0.01)
        assert server.end() == 0
        for client in clients:
            client.stopped.set()
        for client in clients:
            client.join()
    logged = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    answered = sum(len(client.answered) for client in clients)
    # Whatever the server counts as answered arrived; at most the last answer of each caller was read by nobody.
    assert answered == sum(line["status"] == 200 for line in logged)
    for client in clients:
        assert all(score == float(number == number % 2) for number, score in client.answered.items())


def test_a_server_that_is_killed_and_started_again_costs_retries_and_nothing_else(log: Path) -> None:
    count = 150
    clients: list[Client] = []
    with started(SERVE, log) as server:
        port = server.port
        clients = [Client(port, number, count, "/rewards/worst/evaluate") for number in range(8)]
        for client in clients:
            client.start()
        time.sleep(random.uniform(0.05, 0.3))
        server.popen.kill()
    for _ in range(2):
        with started(SERVE, log, port) as server:
            time.sleep(random.uniform(0.1, 0.5))
            server.popen.kill()
    with started(SERVE, log, port) as server:
        for client in clients:
            client.join(PATIENCE * 2)
            assert not client.is_alive()
        assert server.end() == 0
    for client in clients:
        assert client.answered == {number: float(number == number % 2) for number in range(count)}


def test_workers_do_not_outlive_a_server_that_is_killed(log: Path) -> None:
    with started(SERVE, log) as server:
        server.post("/rewards/worst/evaluate", asked("a"))
        children = Path(f"/proc/{server.popen.pid}/task/{server.popen.pid}/children").read_text().split()
        assert children
        server.end(signal.SIGKILL)
    ends = time.monotonic() + PATIENCE
    while any(_lives(int(child)) for child in children):
        assert time.monotonic() < ends
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_key_is_in_no_list_of_processes_and_in_no_output(log: Path) -> None:
    secret = "very-secret-0123456789abcdef"
    with started([*SERVE, "--api-key-env", "THE_KEYS"], log, environment={"THE_KEYS": f"me {secret}"}) as server:
        assert server.post("/evaluate", asked("a", "a"), {"X-Api-Key": secret})[0] == 200
        assert server.post("/evaluate", asked("a", "a"))[0] == 401
        assert server.post("/rewards/worst/evaluate", asked(secret), {"X-Api-Key": secret})[0] == 200
        pids = [server.popen.pid, *map(int, _children(server.popen.pid))]
        arguments = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)
        assert server.end() == 0
    said = "\n".join(server.said)
    assert "API keys me" in said
    for text in (said, log.read_text(), arguments.decode()):
        assert secret not in text


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to serve"),
        (["math", "--host", "0.0.0.0"], "(`--api-key-env` or `--api-key-file`), client certificates (`--client-ca`)"),
        (["math", "--host", "0.0.0.0"], "without protection all the same, set `--insecure`."),
        (["math", "--host", "no such host", "--insecure"], "Give another `--host`"),
        (["math", "--tls-key", "key.pem"], "`--tls-key` and `--client-ca` need `--tls-cert`."),
        (["no.such.reward"], "cannot be loaded"),
        (["math", "--api-key-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE"),
        (["math", "--api-key-env", "sk-4f9c0e7a1b2d3c4e5f6a"], "not shown"),
        (["math", "--api-key-file", "no/such/file"], "no/such/file"),
        (["math", "--tls-cert", "no/such/file"], "no/such/file"),
        (["math", "--google-audience", "https://x.example"], "`--allow-email`"),
        (["math", "math"], "Two rewards"),
        (["--config", "no/such/file"], "no/such/file"),
        (["math", "--dialect", "klingon"], "klingon"),
    ],
)
def test_what_cannot_work_is_said_in_a_sentence(arguments: list[str], words: str) -> None:
    done = subprocess.run([*CLI, "serve", *arguments], capture_output=True, text=True, check=False, cwd=ROOT)

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "4f9c0e7a" not in done.stderr


def test_a_port_that_is_taken_is_named(log: Path) -> None:
    with started(SERVE, log) as server:
        command = [*CLI, "serve", "math", "--port", str(server.port)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert str(server.port) in done.stderr


def test_help_does_not_load_the_web_framework() -> None:
    code = "import sys; from reward_kit.cli import main\ntry: main(['serve', '--help'])\nexcept SystemExit: pass\n"
    code += "assert not {'starlette', 'uvicorn', 'pydantic', 'aiohttp'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)


def test_settings_come_from_a_file(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text("rewards: {mine: {function_path: 'tests.serving.rewards:equal'}}\nlimits: {batch: 2}\n")
    with started([*CLI, "serve", "--config", str(file), "--access-log", "none"], log) as server:
        assert server.post("/rewards/mine/evaluate", asked("a", "a"))[1]["score"] == 1.0
        assert server.post("/evaluate/batch", {"items": [asked("a")] * 3})[0] == 413
    assert log.read_text() == ""


# ── inherited ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_generic_server_answers_as_it_has(log: Path) -> None:
    command = [sys.executable, "-m", "reward_kit.generic_server", "tests.serving.rewards.equal"]
    key = {"RK_ENDPOINT_API_KEY": "inherited key with spaces"}
    with started(command, log, environment=key) as server:
        body = EvaluationRequest(messages=asked("a")["messages"], ground_truth="a").model_dump()
        assert server.post("/evaluate", body)[0] == 401
        assert server.post("/evaluate", body, {"X-Api-Key": "wrong"})[0] == 403
        headers = {"Authorization": "Bearer inherited key with spaces"}
        assert server.post("/evaluate", body, headers)[1]["score"] == 1.0
        assert server.post("/evaluate", {"messages": 1}, headers)[0] == 422
        status, failed = server.post("/evaluate", asked("raise"), headers)
        assert status == 500
        assert "as asked" in failed["detail"]
        assert server.end() == 0


def test_the_inherited_server_loads_a_reward() -> None:
    server = RewardServer("tests.serving.rewards:equal", port=0)
    assert server.host == "127.0.0.1"
    assert callable(server.app)
    with pytest.raises(Exception, match="no_such"):
        RewardServer("tests.serving.rewards:no_such")


async def test_an_app_works_in_a_client_that_tells_it_nothing_of_a_start() -> None:
    """As Starlette's test client does where it is not used in a `with` block."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(asked("a", "a")).encode()}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/reward", "headers": [], "client": None}
    await create_app(equal)(scope, receive, send)

    assert sent[0]["status"] == 200
    assert json.loads(sent[1]["body"])["score"] == 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rewards: {a: {function_path: math}}\nlimits: {quee: 3}\n", "did you mean 'limits.queue'?"),
        ("rewards: {a: {function_path: math}}\ntls: {zzz: 3}\n", "known here: allow_clients, cert"),
        (None, "Cannot read serve.yaml"),
    ],
)
def test_a_mistake_in_the_file_of_settings_is_said_with_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("serve.yaml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(words)):
        settings_from_file(Path("serve.yaml"))
