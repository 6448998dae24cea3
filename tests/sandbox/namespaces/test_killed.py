# SPDX-License-Identifier: Apache-2.0
"""Processes that serve sandboxes are killed at any moment: nothing is left, and no death is taken for a command's."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import SandboxSpec
from reward_kit.sandbox.local.sandbox import LocalSandbox
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from tests.sandbox.every_backend import opened

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces need Linux"),
]

COMMANDS = ["true", "ls / > /dev/null; true | cat", "for i in 1 2 3; do /bin/true; done", "sleep 0.01"]


@pytest_asyncio.fixture
async def backend(tmp_path: Path) -> AsyncIterator[NamespacesBackend]:
    """One that keeps its files below `tmp_path`, so that its processes are known by it."""
    async with opened("namespaces"):  # else the test is skipped
        pass
    backend = NamespacesBackend(state=str(tmp_path))
    yield backend
    await backend.close()


def processes_of(state: Path) -> list[int]:
    """Those whose command names the directory: supervisors with what they fork, and each bwrap."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(state).encode() in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


async def gone(state: Path) -> list[int]:
    """Who is left, once there was time enough to end."""
    for _ in range(100):
        if not (left := processes_of(state)):
            return []
        await asyncio.sleep(0.1)
    return left


async def _open_and_forget(backend: NamespacesBackend, number: int) -> None:
    with suppress(SandboxError):
        sandbox = await backend.open(SandboxSpec(environment={"N": str(number)}, network=bool(number % 2)))
        await sandbox.close()


@pytest.mark.parametrize("seed", range(3))
async def test_a_supervisor_that_is_killed_while_it_opens_sandboxes_leaves_no_process(
    backend: NamespacesBackend, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(12):
        await _open_and_forget(backend, 0)
        opening = [asyncio.ensure_future(_open_and_forget(backend, number)) for number in range(4)]
        await asyncio.sleep(chance.uniform(0, 0.03))
        for supervisor in backend.supervisors:
            with suppress(ProcessLookupError):
                os.kill(supervisor, signal.SIGKILL)
        await asyncio.gather(*opening)
    await backend.close()
    assert await gone(tmp_path) == []


async def _until_it_fails(sandbox: LocalSandbox, command: str, *, standalone: bool) -> ExecResult:
    while True:
        done = await (sandbox.run_standalone if standalone else sandbox.run)(command)
        if not done.ok:
            return done


@pytest.mark.parametrize("standalone", [False, True])
@pytest.mark.parametrize("seed", range(2))
async def test_a_sandbox_that_dies_is_no_failed_command(
    backend: NamespacesBackend, standalone: bool, seed: int
) -> None:
    """Its first process is killed at any moment of its commands, as they start, too."""
    chance = random.Random(seed)
    for _ in range(20):
        sandbox = await backend.open(SandboxSpec())
        task = asyncio.ensure_future(_until_it_fails(sandbox, chance.choice(COMMANDS), standalone=standalone))
        await asyncio.sleep(chance.uniform(0, 0.03))
        os.kill(backend.sandboxes[sandbox].first, signal.SIGKILL)
        with pytest.raises(SandboxError) as failed:
            print("taken for a command's end:", await task)
        assert failed.value.retryable
        await sandbox.close()


async def test_what_the_shell_reports_of_a_dying_sandbox_is_not_taken_for_a_command(
    backend: NamespacesBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can start no process by then, and reports what it makes of that. The moment is too short to be hit."""
    async with await backend.open(SandboxSpec()) as sandbox:
        assert (await sandbox.run("true")).ok
        monkeypatch.setattr("reward_kit.sandbox.namespaces.backend.is_ending", lambda _: True)
        with pytest.raises(SandboxError) as failed:
            await sandbox.run("true")
        assert failed.value.retryable
