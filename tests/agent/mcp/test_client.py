# SPDX-License-Identifier: Apache-2.0
"""The client against a server of ours, well-behaved and not: as a process on this machine, and in a sandbox."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reward_kit.agent.mcp import client as client_module
from reward_kit.agent.mcp.client import InputRequired, McpClient
from reward_kit.agent.mcp.contract import Bounds, McpServerFailure, ReplyTooLarge
from reward_kit.agent.mcp.protocol import LEGACY, MODERN, RpcError
from reward_kit.agent.mcp.stdio import StdioChannel
from tests.agent.mcp.conftest import SERVER, Connect


@pytest.mark.parametrize(("mode", "version"), [("modern", MODERN), ("legacy", LEGACY[0]), ("both", MODERN)])
async def test_each_era_is_found_out_and_spoken(connect: Connect, mode: str, version: str) -> None:
    client = await connect(mode)
    assert client.version == version
    assert (await client.call_tool("add", {"a": 2, "b": 3}, 60)).text == "5"


async def test_a_server_that_does_not_answer_what_it_does_not_know_is_taken_for_an_old_one(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_PATIENCE", 0.2)
    client = await connect("silent")
    assert client.version == LEGACY[0]
    assert (await client.call_tool("add", {"a": 2, "b": 3}, 60)).text == "5"


async def test_a_modern_server_that_is_slow_to_start_is_not_taken_for_an_old_one(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_PATIENCE", 0.0001)
    assert (await connect("modern")).version == MODERN


async def test_tools_are_listed_over_all_pages_and_wrong_ones_left_out(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    tools = {tool.name: tool for tool in await (await connect()).list_tools(60)}
    assert list(tools)[:3] == ["add", "count", "say"]
    assert len(tools) == 22
    assert tools["add"].description == "Add two numbers."
    assert tools["add"].reads
    assert not tools["count"].reads
    assert tools["add"].parameters["required"] == ["a", "b"]
    assert "'broken schema' is left out" in caplog.text
    assert "'list.schema' is left out" in caplog.text


async def test_what_results_say(connect: Connect) -> None:
    client = await connect()
    assert (await client.call_tool("image", {}, 60)).text == "see:\n[image: image/png, 100 bytes, not shown]"
    structured = await client.call_tool("structured", {}, 60)
    assert (structured.text, structured.structured) == ('{"n": 1}', {"n": 1})
    failed = await client.call_tool("fail", {}, 60)
    assert failed.is_error
    assert failed.text == "the well is dry"
    with pytest.raises(RpcError, match="Unknown tool"):
        await client.call_tool("refuse", {}, 60)
    text = "ä\n€ 😀" * 30_000  # longer than a pipe holds, and no character of one byte
    assert (await client.call_tool("say", {"text": text}, 60)).text == text
    assert (await client.call_tool("say", {"text": "half \ud83d"}, 60)).text == "half ?"


async def test_a_tool_may_ask_for_the_same_call_again_but_not_for_a_person(connect: Connect) -> None:
    client = await connect()
    assert (await client.call_tool("again", {}, 60)).text == "thanks for a token"
    with pytest.raises(InputRequired):
        await client.call_tool("again", {"person": True}, 60)


async def test_an_old_server_that_asks_for_something_is_refused_and_goes_on(connect: Connect) -> None:
    client = await connect("legacy")
    assert json.loads((await client.call_tool("asks", {}, 60)).text) == {"s1": -32601, "s2": "result"}


async def test_a_change_of_tools_is_noticed(connect: Connect) -> None:
    client = await connect("legacy")
    before = {tool.name for tool in await client.list_tools(60)}
    await client.call_tool("grow", {}, 60)
    assert client.channel.tools_changed
    assert {tool.name for tool in await client.list_tools(60)} - before == {"grown"}
    assert not client.channel.tools_changed


# ── servers that fail ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_server_that_dies_in_the_middle_of_a_call_has_failed(connect: Connect) -> None:
    client = await connect()
    with pytest.raises(McpServerFailure, match="falling piano") as caught:
        await client.call_tool("die", {}, 60)
    assert caught.value.retryable
    with pytest.raises(McpServerFailure):
        await client.call_tool("add", {"a": 1, "b": 1}, 60)


async def test_noise_is_passed_over(connect: Connect) -> None:
    client = await connect()
    assert (await client.call_tool("noise", {}, 60)).text == "quiet again"
    assert (await client.call_tool("wrong_id", {}, 60)).text == "right at last"
    assert (await client.call_tool("latin", {}, 60)).text == "\N{REPLACEMENT CHARACTER}"
    assert (await client.call_tool("half", {}, 60)).text == "?!"
    assert (await client.call_tool("deep", {}, 60)).text == "not so deep"


async def test_too_much_noise_is_a_failure(connect: Connect) -> None:
    client = await connect()
    with pytest.raises(McpServerFailure, match="nobody asked for"):
        await client.call_tool("flood", {}, 60)


async def test_a_reply_that_is_too_large_is_thrown_away_and_the_next_one_is_not(connect: Connect) -> None:
    client = await connect(bounds=Bounds(reply_bytes=100_000))
    with pytest.raises(ReplyTooLarge, match="100,000 bytes"):
        await client.call_tool("large", {"size": 1_000_000}, 60)
    assert (await client.call_tool("count", {}, 60)).text == "2"


async def test_a_reply_without_result_and_a_result_of_unknown_type_are_failures(connect: Connect) -> None:
    with pytest.raises(McpServerFailure, match="no result and no error"):
        await (await connect()).call_tool("no_result", {}, 60)
    with pytest.raises(McpServerFailure, match="unknown type 'surprise'"):
        await (await connect()).call_tool("odd_type", {}, 60)


async def test_a_call_that_is_given_up_leaves_the_connection_good(connect: Connect) -> None:
    client = await connect()
    with pytest.raises(TimeoutError):
        await client.call_tool("large", {"size": 5_000_000}, 0.0001)
    assert (await client.call_tool("add", {"a": 1, "b": 1}, 60)).text == "2"
    task = asyncio.create_task(client.call_tool("large", {"size": 5_000_000}))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await client.call_tool("add", {"a": 1, "b": 1}, 60)).text == "2"


async def test_a_server_that_hangs_is_closed_with_everything(connect: Connect) -> None:
    client = await connect()
    with pytest.raises(TimeoutError):
        await client.call_tool("hang", {}, 0.1)
    await client.close()
    with pytest.raises(McpServerFailure):
        await client.call_tool("add", {"a": 1, "b": 1}, 60)


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_process_is_given_no_variables_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    channel = await StdioChannel.start([sys.executable, str(SERVER)], environment={"MINE": "1"})
    client = McpClient(channel)
    await client.connect(60)
    seen = json.loads((await client.call_tool("environment", {}, 60)).text)
    await client.close()
    assert seen["MINE"] == "1"
    assert "SOME_API_KEY" not in seen


async def test_a_command_that_is_not_there_will_not_be_there_next_time() -> None:
    with pytest.raises(McpServerFailure, match="cannot be started") as caught:
        await StdioChannel.start(["/no/such/server"], environment={})
    assert not caught.value.retryable


async def test_a_program_that_is_no_server_is_told_from_one() -> None:
    client = McpClient(await StdioChannel.start(["cat"], environment={}))
    with pytest.raises(McpServerFailure):
        await client.connect(1)
    await client.close()


async def test_closing_ends_what_a_server_started_and_one_that_ignores_the_end_of_its_input() -> None:
    script = "trap '' TERM; sleep 3600 & echo $! >&2; sleep 3600"
    channel = await StdioChannel.start(["sh", "-c", script], environment={})
    await channel.close()
    assert _ends(channel._process.pid)


def _group_is_alive(group: int) -> bool:
    """Whether a process of the group still runs; one that has ended and that nobody has waited for does not."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    states = [line.split()[1] for line in listed.splitlines() if line.split()[0] == str(group)]
    return any(not state.startswith("Z") for state in states)


def _ends(group: int) -> bool:
    until = time.monotonic() + 60
    while _group_is_alive(group) and time.monotonic() < until:
        time.sleep(0.01)
    return not _group_is_alive(group)


def test_servers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """Also one that does not look at its input, when we are killed without a chance to do anything."""
    script = tmp_path / "owner.py"
    script.write_text(
        "import asyncio\n"
        "from reward_kit.agent.mcp.stdio import StdioChannel\n"
        "async def main():\n"
        "    channel = await StdioChannel.start(['sleep', '3600'], environment={})\n"
        "    print(channel._process.pid, flush=True)\n"
        "    await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    owner = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    group = int(owner.stdout.readline())
    assert _group_is_alive(group)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    assert _ends(group)
