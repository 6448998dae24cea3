# SPDX-License-Identifier: Apache-2.0
"""A pool bounds how many are open, starts some ahead, and never hands out what has been used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Self

import pytest

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Probe, Sandbox, SandboxBackend, SandboxSpec
from reward_kit.sandbox.pool import SandboxPool
from tests.sandbox.every_backend import opened


class Counting:
    """A backend that knows what was asked of it."""

    name = "counting"

    def __init__(self, backend: SandboxBackend) -> None:
        self.backend = backend
        self.opened: list[Sandbox] = []

    async def probe(self) -> Probe:
        return await self.backend.probe()

    async def open(self, spec: SandboxSpec) -> Sandbox:
        sandbox = await self.backend.open(spec)
        self.opened.append(sandbox)
        return sandbox

    async def close(self) -> None:
        await self.backend.close()


@pytest.fixture
async def counting() -> AsyncIterator[Counting]:
    async with opened("namespaces") as backend:
        yield Counting(backend)


async def until_warm(counting: Counting, count: int) -> None:
    async with asyncio.timeout(60):
        while len(counting.opened) < count:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)


async def test_no_more_than_its_size_are_open(counting: Counting) -> None:
    pool = SandboxPool(counting, size=2)
    first, second = await pool.open(SandboxSpec()), await pool.open(SandboxSpec())
    third = asyncio.create_task(pool.open(SandboxSpec()))
    await asyncio.sleep(0.2)
    assert not third.done()
    await first.close()
    await first.close()  # twice is once: the bound stays
    sandbox = await third
    fourth = asyncio.create_task(pool.open(SandboxSpec()))
    await asyncio.sleep(0.2)
    assert not fourth.done()
    await second.close()
    await (await fourth).close()
    await sandbox.close()
    await pool.close()


async def test_what_was_started_ahead_is_used_once_and_set_up_then(counting: Counting) -> None:
    pool = SandboxPool(counting, size=4, warm=2)
    spec = SandboxSpec(setup=("cd /tmp", "x=$(cat greeting)"), files={"/tmp/greeting": b"hello"})
    async with await pool.open(spec) as sandbox:
        assert (await sandbox.run("pwd; echo $x; touch /tmp/used")).output == "/tmp\nhello\n"
    await until_warm(counting, 3)
    other = SandboxSpec(setup=("x=2",))
    async with await pool.open(other) as sandbox:
        assert (await sandbox.run("ls /tmp; pwd; echo $x")).output == "/root\n2\n"
    await pool.close()


async def test_another_kind_is_not_mixed_up(counting: Counting) -> None:
    pool = SandboxPool(counting, size=4, warm=2)
    async with await pool.open(SandboxSpec(environment={"V": "1"})) as sandbox:
        assert (await sandbox.run("echo $V")).output == "1\n"
    await until_warm(counting, 3)
    async with await pool.open(SandboxSpec(environment={"V": "2"})) as sandbox:
        assert (await sandbox.run("echo $V")).output == "2\n"
    await pool.close()


class Slow:
    """A backend whose sandboxes take their time to close, and say of which kind they are."""

    name = "slow"

    async def probe(self) -> Probe:
        return Probe(True, "")

    async def open(self, spec: SandboxSpec) -> Sandbox:
        return SlowToClose(spec)

    async def close(self) -> None:
        pass


class SlowToClose:
    def __init__(self, spec: SandboxSpec) -> None:
        self.kind = spec.environment["V"]

    async def run(self, command: str, *, timeout: float | None = None, stdin: bytes | None = None) -> ExecResult:
        return ExecResult(exit_code=0, output=self.kind)

    run_standalone = run

    async def read(self, path: str) -> bytes:
        return b""

    async def write(self, path: str, content: bytes) -> None:
        pass

    async def close(self) -> None:
        await asyncio.sleep(0.05)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def test_kinds_that_are_asked_for_at_once_are_not_mixed_up() -> None:
    pool = SandboxPool(Slow(), size=8, warm=1)
    one, two = SandboxSpec(environment={"V": "1"}), SandboxSpec(environment={"V": "2"})
    await (await pool.open(one)).close()  # another one is being started now
    await asyncio.sleep(0)
    given = await asyncio.gather(pool.open(two), pool.open(one), pool.open(two), pool.open(one))
    assert [(await sandbox.run("")).output for sandbox in given] == ["2", "1", "2", "1"]
    await pool.close()


async def test_what_died_while_it_waited_is_replaced(counting: Counting) -> None:
    pool = SandboxPool(counting, size=4, warm=2)
    await (await pool.open(SandboxSpec())).close()
    await until_warm(counting, 3)
    for sandbox in counting.opened:
        await sandbox.close()
    async with await pool.open(SandboxSpec()) as sandbox:
        assert (await sandbox.run("echo fine")).output == "fine\n"
    await pool.close()


async def test_a_setup_that_fails_gives_its_place_back(counting: Counting) -> None:
    pool = SandboxPool(counting, size=1, warm=1)
    for _ in range(3):
        with pytest.raises(SandboxError, match="setup"):
            await pool.open(SandboxSpec(setup=("false",)))
    async with await pool.open(SandboxSpec()) as sandbox:
        assert (await sandbox.run("true")).ok
    await pool.close()
    with pytest.raises(SandboxError, match="closed"):
        await pool.open(SandboxSpec())
