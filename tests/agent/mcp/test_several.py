# SPDX-License-Identifier: Apache-2.0
"""Worlds of several MCP servers, as a file names them; and bare servers, each in a directory of its own."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_kit import evaluate
from reward_kit.agent.mcp.environment import McpEnvironment
from reward_kit.agent.mcp.several import McpServers
from reward_kit.errors import ConfigError, StorageError
from reward_kit.models import Message
from tests.agent.mcp.conftest import SERVER
from tests.agent.mcp.test_environment import SAMPLE, said

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(**servers: Any) -> str:
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": servers}))
        return str(path)

    return written


OURS: dict[str, Any] = {"command": sys.executable, "args": [str(SERVER)]}


async def test_the_model_is_offered_the_tools_of_all_servers(write: Write) -> None:
    environment = McpServers(write(one=OURS, two=OURS, off={**OURS, "disabled": True}), sandbox="none", warm=0)
    world = await environment.open(SAMPLE)
    try:
        names = {tool.name for tool in world.tools}
        assert {name.partition("__")[0] for name in names} == {"one", "two"}
        assert [await said(world, "one__count"), await said(world, "one__count")] == ["1", "2"]
        assert await said(world, "two__count") == "1"
    finally:
        await world.close_all()
        await environment.close()


@pytest.mark.parametrize(
    ("servers", "given", "complaint"),
    [
        ({"a": {}}, {}, "neither `command` nor `url`"),
        ({"a": {"command": "x", "env": {"K": "${NO_SUCH_VARIABLE}"}}}, {}, "'NO_SUCH_VARIABLE'.*is not set"),
        ({"a": OURS}, {"only": ["b"]}, "names no server 'b'. It names: a"),
        ({"a": "x"}, {}, "no object `mcpServers`"),
        ({"a": {"command": "x", "args": ["${input:token}"]}}, {}, r"\$\{input:token\}.*Write `\$\{NAME\}`"),
        ({"a": {"type": "sse", "url": "http://x/sse"}}, {}, "transport of 2024"),
    ],
)
def test_what_is_wrong_in_the_file_is_said(
    servers: dict[str, Any], given: dict[str, Any], complaint: str, write: Write
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        McpServers(write(**servers), **given)


def test_variables_are_filled_in(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "/here")
    server = {
        **OURS,
        "args": ["${PLACE}/a", "${env:PLACE}", "${NO_SUCH:-b}c"],
        "env": {"P": "x${PLACE:-y}"},
        "cwd": "${PLACE}",
    }
    (environment,) = McpServers(write(a=server))._servers.values()
    settings = environment.settings
    assert settings.command == [sys.executable, "/here/a", "/here", "bc"]
    assert (settings.env, settings.directory) == ({"P": "x/here"}, "/here")


async def test_bare_servers_have_directories_of_their_own_and_find_a_program_that_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(SERVER, tmp_path / "mine.py")
    monkeypatch.chdir(tmp_path)
    environment = McpEnvironment(command=[sys.executable, "mine.py"], sandbox="none", warm=0)
    shared = McpEnvironment(command=[sys.executable, "mine.py"], sandbox="none", warm=0, directory=str(tmp_path))
    worlds = [await each.open(SAMPLE) for each in (environment, environment, shared, shared)]
    places = [os.readlink(f"/proc/{world._client.channel._process.pid}/cwd") for world in worlds]  # type: ignore[attr-defined]
    assert len({*places}) == 3 and places[2] == places[3] == str(tmp_path)
    for world in worlds:
        await world.close_all()
    await environment.close()
    await shared.close()
    assert [os.path.exists(place) for place in places] == [False, False, True, True]


KEYS = ["tok-7f3a91c5e2b84d06", "tok-0b6e24d8f19a73c5"]


def says_done(messages: list[Message], draw: int) -> str:
    return "Done."


@pytest.mark.parametrize(
    ("more", "differs"),
    [
        ({"args": [str(SERVER), "both"]}, True), ({"env": {"MODE": "slow"}}, True), ({"cwd": "/tmp"}, True),
        ({"env": {"SERVICE_TOKEN": KEYS[1]}}, False), ({"autoApprove": ["count"]}, False), ({}, False),
    ],
)  # fmt: skip
def test_episodes_depend_on_what_the_file_says_of_the_servers_that_are_used(
    more: dict[str, Any], differs: bool, write: Write, tmp_path: Path
) -> None:
    def run(server: dict[str, Any], **others: Any) -> None:
        file = write(one=server, **others)
        evaluate(
            [{"prompt": "Count."}], lambda response: 1.0, model="mock",
            mock={"function_path": f"{Path(__file__)}:says_done"},
            agent={"environment": "reward_kit.agent:McpServers",
                   "params": {"file": file, "only": ["one"], "sandbox": "none", "warm": 0}},
            cache={"enabled": False}, output_dir=str(tmp_path / "run"),
        )  # fmt: skip

    first = {**OURS, "env": {"SERVICE_TOKEN": KEYS[0]}} if "SERVICE_TOKEN" in more.get("env", {}) else OURS
    run(first)
    if differs:
        with pytest.raises(StorageError, match=r"agent\.elsewhere"):
            run({**first, **more})
    else:
        run({**first, **more}, two={"command": "nothing"})
    assert KEYS[0] not in (tmp_path / "run" / "manifest.json").read_text()
