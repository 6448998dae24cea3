# SPDX-License-Identifier: Apache-2.0
"""`reward-kit mock serve` as a process: its address, its answers, its log, its end."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli_commands.conftest import Call, start


def ask(url: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": "2 + 2?"}]}
    with urlopen(Request(f"{url}/chat/completions", json.dumps(body).encode(), method="POST"), timeout=60) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


def test_it_prints_its_address_answers_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("responses: [four]\nfaults: [{at: 3, status: 500}]\n")
    serving = start(
        tmp_path, "mock", "serve", "script.yaml", "--fault", "status=429,at=2,retry_after=7", "--log", "asked.jsonl"
    )
    try:
        assert serving.stdout is not None
        url = serving.stdout.readline().strip()
        assert ask(url) == "four"
        with pytest.raises(HTTPError, match="429") as busy:
            ask(url)
        assert busy.value.headers["Retry-After"] == "7"
        with pytest.raises(HTTPError, match="500") as broken:
            ask(url)
        for error in (busy, broken):
            error.value.close()
        with urlopen(f"{url.removesuffix('/v1')}/requests", timeout=60) as reply:
            assert [asked["status"] for asked in json.load(reply)] == [200, 429, 500]
    finally:
        serving.send_signal(signal.SIGTERM)
        _, said = serving.communicate(timeout=60)
    assert (serving.returncode, "3 requests" in said) == (0, True), said
    assert [json.loads(line)["status"] for line in (tmp_path / "asked.jsonl").read_text().splitlines()] == [
        200,
        429,
        500,
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere.yaml"], "nowhere.yaml"),
        (["--fault", "sometimes"], "is not KEY=VALUE"),
        (["--fault", "stats=429"], "did you mean 'status'"),
        (["--fault", "rate=0.5"], "needs one of `status`"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(call: Call, arguments: list[str], complaint: str) -> None:
    said = call("mock", "serve", *arguments)
    assert said.code == 2
    assert complaint in said.sentence


def test_a_port_that_is_taken_is_said_to_be(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = call("mock", "serve", "--port", str(taken.getsockname()[1]))
    assert said.code == 2 and "Give another port" in said.sentence
