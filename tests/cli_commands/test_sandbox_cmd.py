# SPDX-License-Identifier: Apache-2.0
"""`reward-kit sandbox serve`, as a process: it serves, it says its token, and it leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from reward_kit.cli_commands.sandbox_cmd import sandbox as command
from reward_kit.errors import SandboxError
from reward_kit.sandbox.contract import SandboxSpec
from reward_kit.sandbox.sos.client import SosBackend
from tests.sandbox.sos.servers import namespaces

ROOT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def serving(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, str]]:
    """The process, its URL and what it has said."""
    async with namespaces():
        pass
    environment = {name: value for name, value in os.environ.items() if name != "REWARD_KIT_SANDBOX_TOKEN"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "reward_kit", "sandbox", "serve", "--port", "0", "--backend", "namespaces", *options,
        stdout=asyncio.subprocess.PIPE, env={**environment, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said = (await process.stdout.readline()).decode()
        if "--no-token" not in options:
            said += (await process.stdout.readline()).decode()
        url = re.search(r"http://[\d.:]+", said)
        assert url is not None, said
        yield process, url[0], said
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()


def running(text: str) -> list[str]:
    """Processes of this machine with `text` in their command line."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


async def started(text: str) -> None:
    async with asyncio.timeout(60):
        while not running(text):
            await asyncio.sleep(0.05)


async def gone(text: str) -> None:
    async with asyncio.timeout(60):
        while running(text):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_serves_until_told_to_stop_and_leaves_nothing(number: signal.Signals) -> None:
    nap = f"sleep {random.randint(10**6, 10**9)}"
    async with serving() as (process, url, said):
        token = said.rpartition("token: ")[2].strip()
        backend = SosBackend(url, token=token)
        sandbox = await backend.open(SandboxSpec())
        assert (await sandbox.run(f"{nap} & echo on")).output == "on\n"
        await started(nap)
        process.send_signal(number)
        assert await process.wait() == 0
        await gone(nap)
        await backend.close()


async def test_killed_in_mid_command_it_is_a_failure_to_retry_and_leaves_no_process() -> None:
    nap = f"sleep {random.randint(10**6, 10**9)}"
    async with serving("--no-token") as (process, url, said):
        assert "token" not in said
        backend = SosBackend(url)
        sandbox = await backend.open(SandboxSpec())
        command = asyncio.create_task(sandbox.run(nap, timeout=100))
        await started(nap)
        process.send_signal(signal.SIGKILL)
        with pytest.raises(SandboxError) as failure:
            await command
        assert failure.value.retryable
        await gone(nap)
        await backend.close()


def test_an_image_says_what_it_stands_for() -> None:
    done = CliRunner().invoke(command, ["serve", "--image", "ubuntu"])
    assert done.exit_code == 2 and "NAME=ROOT" in done.output
