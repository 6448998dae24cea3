# SPDX-License-Identifier: Apache-2.0
"""What containers add to the contract: how they are made, what becomes of them, and what an engine in trouble does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import SandboxError
from reward_kit.sandbox.containers import backend as containers
from reward_kit.sandbox.containers.backend import ContainerBackend
from reward_kit.sandbox.containers.engine import LABEL, owner_mark
from reward_kit.sandbox.contract import Limits, Probe, SandboxSpec
from reward_kit.sandbox.pool import SandboxPool
from reward_kit.sandbox.sos.server import serving

MAKERS = {"docker": containers.docker, "podman": containers.podman}
_PROBES: dict[str, Probe] = {}


@pytest.fixture(params=MAKERS)
async def name(request: pytest.FixtureRequest) -> str:
    """An engine that works here."""
    name = str(request.param)
    if name not in _PROBES:
        backend = MAKERS[name]()
        _PROBES[name] = await backend.probe()
        await backend.close()
    if not _PROBES[name].works:
        pytest.skip(f"{name} does not work here: {_PROBES[name].detail}")
    return name


@asynccontextmanager
async def made(name: str, **options: Any) -> AsyncIterator[ContainerBackend]:
    """A backend of our own, and nothing left of it."""
    backend = MAKERS[name](**options)
    try:
        yield backend
    finally:
        await backend.close()
        assert await ours(name) == []


async def ours(name: str) -> list[dict[str, Any]]:
    """Containers with the mark of this process."""
    return await owned(name, owner_mark())


async def owned(name: str, owner: str) -> list[dict[str, Any]]:
    """Containers with the mark of the process that is called `owner`."""
    found: list[dict[str, Any]] = await ask(
        name, lambda engine: engine.containers(all=True, filters={"label": f"{LABEL}={owner}"})
    )
    return found


async def ask(name: str, question: Callable[[Any], Any]) -> Any:
    """What the engine says to the docker SDK, without our product between them."""
    docker = pytest.importorskip("docker")

    def asked() -> Any:
        client = docker.APIClient(base_url=MAKERS[name]().url, version="auto", timeout=60)
        try:
            return question(client)
        finally:
            client.close()

    return await asyncio.to_thread(asked)


def remove(key: str, engine: Any) -> None:
    engine.remove_container(key, force=True, v=True)


# ── how they are made ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_container_has_little_and_sees_nothing(name: str) -> None:
    limits = Limits(memory_mb=96, processes=20, open_files=400, file_size_mb=3, cpu_seconds=7)
    async with made(name) as backend, await backend.open(SandboxSpec(limits=limits)) as sandbox:
        said = await sandbox.run(
            "ls /sys/class/net; ulimit -n; ulimit -f; ulimit -t; grep -E 'CapBnd|NoNewPrivs' /proc/1/status"
        )
        words = said.output.split()
        assert words[:4] == ["lo", "400", str(3 << 10), "7"]
        assert words[-1] == "1" and int(words[words.index("CapBnd:") + 1], 16).bit_count() == 14
        many = await sandbox.run("for i in $(seq 60); do sleep 30 & done; wait", timeout=3)
        assert "Resource temporarily unavailable" in many.stderr


async def test_a_cpu_loop_is_ended_by_its_cpu_time(name: str) -> None:
    async with made(name) as backend, await backend.open(SandboxSpec(limits=Limits(cpu_seconds=1))) as sandbox:
        done = await sandbox.run_standalone("while :; do :; done", timeout=30)
        assert not done.ok and not done.timed_out and (done.cpu_seconds or 0) > 0.5


async def test_containers_that_were_started_ahead_are_used_once(name: str) -> None:
    async with made(name) as backend:
        pool = SandboxPool(backend, size=4, warm=2)
        for _ in range(3):
            async with await pool.open(SandboxSpec()) as sandbox:
                assert (await sandbox.run("ls /tmp/used; touch /tmp/used")).exit_code == 0
                assert "No such file" in (await sandbox.run_standalone("cat /tmp/used/x; ls /nothing")).stderr
        async with asyncio.timeout(60):
            while len(await ours(name)) < 2:
                await asyncio.sleep(0.1)
        async with await pool.open(SandboxSpec(limits=Limits(memory_mb=64))) as sandbox:
            assert (await sandbox.run("echo of another kind")).ok
        await pool.close()


async def test_an_image_that_is_not_to_be_had_is_named(name: str) -> None:
    async with made(name) as backend:
        with pytest.raises(SandboxError, match="localhost:1/none:such") as failure:
            await backend.open(SandboxSpec(image="localhost:1/none:such"))
        assert not failure.value.retryable


# ── what becomes of them ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "command",
    [
        "kill -9 -1; kill -9 1; sleep 0.3",
        ":() { :|:& }; :",
        "head -c 1G /dev/zero | tail",
        "rm -rf --no-preserve-root / 2>/dev/null",
        "exec 0<&- 1>&- 2>&-; sleep 60 & disown",
        "yes | head -c 30M",
        "echo x > /proc/1/fd/0; cat /proc/1/mem 2>/dev/null | head -c 100",
    ],
)
async def test_after_a_hostile_command_the_next_task_works(name: str, command: str) -> None:
    limits = Limits(memory_mb=64, processes=32, output_bytes=10_000)
    async with made(name) as backend:
        async with await backend.open(SandboxSpec(limits=limits)) as sandbox:
            done = await sandbox.run(command, timeout=10)
            assert len(done.output) < 30_000
        async with await backend.open(SandboxSpec(limits=limits)) as sandbox:
            assert (await sandbox.run("echo fine; ls /")).ok


async def test_a_killed_process_leaves_containers_that_end_and_are_swept(name: str, tmp_path: Path) -> None:
    script = tmp_path / "opens.py"
    script.write_text(
        "import asyncio, sys\n"
        "from reward_kit.sandbox.containers import backend as containers\n"
        "from reward_kit.sandbox.containers.engine import owner_mark\n"
        "from reward_kit.sandbox.contract import SandboxSpec\n"
        "async def main():\n"
        f"    backend = containers.{name}()\n"
        "    sandbox = await backend.open(SandboxSpec())\n"
        "    print(owner_mark(), flush=True)\n"
        "    await sandbox.run('sleep 60')\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        script,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    owner = (await process.stdout.readline()).decode().strip()
    assert len(await owned(name, owner)) == 1
    process.send_signal(signal.SIGKILL)
    await process.wait()
    async with asyncio.timeout(60):
        while any(one["State"] == "running" for one in await owned(name, owner)):
            await asyncio.sleep(0.1)
    async with made(name) as backend, await backend.open(SandboxSpec()):
        assert not await owned(name, owner)


async def test_a_cancelled_opening_leaves_nothing(name: str) -> None:
    async with made(name) as backend:
        opening = asyncio.create_task(backend.open(SandboxSpec(setup=("sleep 60",))))
        await asyncio.sleep(1.0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert await ours(name) == []


# ── engines in trouble ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_container_killed_from_outside_is_worth_another_try(name: str) -> None:
    async with made(name) as backend, await backend.open(SandboxSpec()) as sandbox:
        running = asyncio.create_task(sandbox.run("sleep 60"))
        await asyncio.sleep(0.5)
        key = (await ours(name))[0]["Id"]
        await ask(name, lambda engine: engine.kill(key))
        with pytest.raises(SandboxError, match="from outside") as failure:
            await running
        assert failure.value.retryable
        with pytest.raises(SandboxError):
            await sandbox.run("true")
        async with await backend.open(SandboxSpec()) as another:
            assert (await another.run("true")).ok


class Door:
    """A socket before an engine's own, which can be shut."""

    def __init__(self, path: Path, engine: str) -> None:
        self.url = f"unix://{path}"
        self._path = path
        self._engine = engine.removeprefix("unix://")
        self._server: asyncio.Server | None = None
        self._through: set[asyncio.StreamWriter] = set()

    async def open(self, handle: Callable[..., Awaitable[None]] | None = None) -> None:
        self._server = await asyncio.start_unix_server(handle or self._handle, self._path)

    async def shut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._through):
            writer.close()
        await asyncio.sleep(0.1)
        self._path.unlink(missing_ok=True)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_unix_connection(self._engine)
        self._through |= {writer, ours}
        await asyncio.gather(self._pass(reader, ours), self._pass(theirs, writer))
        self._through -= {writer, ours}

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        sink.close()
        with suppress(OSError):
            await sink.wait_closed()


async def test_an_engine_that_goes_away_is_worth_another_try_and_what_it_left_is_swept(
    name: str, tmp_path: Path
) -> None:
    door = Door(tmp_path / "engine.sock", MAKERS[name]().url)
    await door.open()
    backend = MAKERS[name](door.url)
    sandbox = await backend.open(SandboxSpec())
    running = asyncio.create_task(sandbox.run("sleep 60"))
    await asyncio.sleep(0.3)
    await door.shut()
    for attempt in (running, backend.open(SandboxSpec())):
        with pytest.raises(SandboxError) as failure:
            await attempt
        assert failure.value.retryable
    await sandbox.close()
    await door.open()
    async with await backend.open(SandboxSpec()) as another:
        assert (await another.run("true")).ok
    await backend.close()
    await door.shut()
    for left in await ours(name):
        await ask(name, partial(remove, left["Id"]))


async def test_an_engine_that_hangs_is_not_waited_for(name: str, tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    door = Door(tmp_path / "engine.sock", "")
    await door.open(hang)
    backend = ContainerBackend(name, door.url, call_seconds=0.3)
    probe = await backend.probe()
    ended.set()
    await backend.close()
    await door.shut()
    assert not probe.works and ("did not answer" in probe.detail or "timed out" in probe.detail)


async def test_containers_are_served_like_anything_else(name: str) -> None:
    from reward_kit.sandbox.sos.client import SosBackend

    async with made(name) as backend, serving(backend, token="t", port=0) as url:
        client = SosBackend(url, token="t")
        async with await client.open(SandboxSpec(setup=("cd /tmp",))) as sandbox:
            assert (await sandbox.run("pwd")).output == "/tmp\n"
        await client.close()
