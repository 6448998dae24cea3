# SPDX-License-Identifier: Apache-2.0
"""What a sandbox of namespaces costs, beside bare bubblewrap, a bare pipe to bash, and a container per task."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from benchmarks.report import Report, Row
from reward_kit.sandbox.contract import Sandbox, SandboxSpec
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from tests.sandbox.leftovers import leftovers

__all__ = ["main"]

BWRAP = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-all", "true"]
GOAL_OPEN = 2.0
GOAL_COMMAND = 3.0
PIPES = 9
GOAL_CPU = 20.0
GOAL_TASKS = 15.0
ANCESTOR_SECONDS = 0.89
"""What one container per task took, one after the other, in the runs this shape of work comes from."""
TASK = SandboxSpec(
    setup=("mkdir -p /root/task/logs && cd /root/task", "for i in 1 2 3 4 5; do echo line $i > logs/$i.log; done"),
    setup_join=";",
)
COMMAND = "cat logs/*.log | sort -r > all.log"
CHECK = "test $(wc -l < all.log) -eq 5 && head -1 all.log | grep -q 'line 5'"


def main(*, quick: bool = False) -> Report:
    """Measure everything on one backend."""
    return uvloop.run(_measure(quick))


async def _measure(quick: bool) -> Report:
    backend = NamespacesBackend()
    try:
        for _ in range(5):
            await _open_run_close(backend)
        rows = [await _opening(backend, 10 if quick else 200)]
        rows += await _command(backend, 90 if quick else 3600)
        rows += await _against_docker(backend, 2 if quick else 20)
        rows.append(await _tasks(backend, 20 if quick else 1000))
        rows.append(await _sharing(4 if quick else 40))
        rows += await _many(backend, 50 if quick else 10_000)
    finally:
        await backend.close()
    left = leftovers()
    rows.append(Row("left behind after that", float(len(left)), "; ".join(left)[:200], at_most=0.0, unit="things"))
    return Report("sandbox", "sandboxes of namespaces", rows)


async def _open_run_close(backend: NamespacesBackend) -> None:
    async with await backend.open(SandboxSpec()) as sandbox:
        assert (await sandbox.run("true")).ok


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def _opening(backend: NamespacesBackend, rounds: int) -> Row:
    """A sandbox opened, used once and closed, in turns with bubblewrap running `true`."""
    program = shutil.which("bwrap")
    assert program is not None

    async def bare() -> None:
        os.waitpid(os.posix_spawn(program, [program, *BWRAP], {}), 0)

    times = [(await _seconds(bare), await _seconds(lambda: _open_run_close(backend))) for _ in range(rounds)]
    theirs, ours = (1000 * statistics.median(column) for column in zip(*times, strict=True))
    numbers = f"{ours:.2f} ms beside {theirs:.2f} ms"
    return Row("open, `true`, close, beside `bwrap true`", ours / theirs, numbers, at_most=GOAL_OPEN)


async def _command(backend: NamespacesBackend, rounds: int) -> list[Row]:
    """A command in an open sandbox's shell, beside one through a plain pipe: on the event loop, and waited for.

    A bare pipe may be lucky with the cores its two ends run on, so several are measured.
    """
    tries = [await _beside_pipes(backend, rounds // PIPES) for _ in range(PIPES)]
    looped, blocking, ours = (1e6 * statistics.median(column) for column in zip(*tries, strict=True))
    return [
        Row(
            f"`true` in an open shell, beside a pipe to bash{how}",
            ours / bare,
            f"{ours:.0f} µs beside {bare:.0f} µs",
            at_most=goal,
        )
        for how, bare, goal in (("", looped, GOAL_COMMAND), (", blocking", blocking, None))
    ]


async def _beside_pipes(backend: NamespacesBackend, rounds: int) -> tuple[float, ...]:
    """Median seconds of a command through pipes of its own and in a sandbox of its own, in turns."""
    bash = await asyncio.create_subprocess_exec("bash", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert bash.stdin is not None
    assert bash.stdout is not None
    write, answer = bash.stdin.write, bash.stdout.readline
    with subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        to_bash, from_bash = other.stdin, other.stdout

        async def looped() -> None:
            write(b"true; echo $?\n")
            assert await answer() == b"0\n"

        async def blocking() -> None:
            to_bash.write(b"true; echo $?\n")
            assert from_bash.read(10) == b"0\n"

        async with await backend.open(SandboxSpec()) as sandbox:
            ways: list[Callable[[], Awaitable[object]]] = [looped, blocking, lambda: sandbox.run("true")]
            times = [[await _seconds(way) for way in ways] for _ in range(rounds)]
        to_bash.close()
    bash.stdin.close()
    await bash.wait()
    return tuple(statistics.median(column) for column in zip(*times, strict=True))


async def _task(backend: NamespacesBackend) -> None:
    async with await backend.open(TASK) as sandbox:
        await _solve(sandbox)


async def _solve(sandbox: Sandbox) -> None:
    assert (await sandbox.run(COMMAND)).ok
    assert (await sandbox.run_standalone(CHECK)).ok


async def _tasks(backend: NamespacesBackend, count: int) -> Row:
    """Shell tasks, four at a time: setup, command, check."""
    owed = iter(range(count))

    async def worker() -> None:
        for _ in owed:
            await _task(backend)

    seconds = await _seconds(lambda: asyncio.gather(*(worker() for _ in range(4))))
    rate = count / seconds
    numbers = f"{rate:.0f} tasks/s beside {1 / ANCESTOR_SECONDS:.1f}/s"
    return Row(
        f"{count:,} shell tasks, beside a container per task", rate * ANCESTOR_SECONDS, numbers, at_least=GOAL_TASKS
    )


async def _sharing(count: int) -> Row:
    """Tasks that share a long setup, with what it leaves kept for all of them, and without."""
    spec = SandboxSpec(setup=("mkdir -p /srv/data && cd /srv/data", "for i in {1..3000}; do echo $i > $i.txt; done"))

    async def seconds(backend: NamespacesBackend) -> float:
        async def task() -> None:
            async with await backend.open(spec) as sandbox:
                assert (await sandbox.run("ls | wc -l")).output == "3000\n"

        await _open_run_close(backend)
        return await _seconds(lambda: asyncio.gather(*(task() for _ in range(count))))

    kept, not_kept = NamespacesBackend(), NamespacesBackend(snapshots=None)
    try:
        ours, plain = await seconds(kept), await seconds(not_kept)
    finally:
        await asyncio.gather(kept.close(), not_kept.close())
    numbers = f"{count / ours:.0f} beside {count / plain:.0f} tasks/s"
    return Row("tasks that share a long setup, faster than without snapshots", plain / ours, numbers)


# ── beside docker ────────────────────────────────────────────────────────────────────────────────────────────────────


def _busy_seconds() -> float:
    """What all processors of this machine have worked since it started: engines work in processes of their own."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _docker_image() -> str | None:
    """An image of a docker that works here, if any."""
    if shutil.which("docker") is None:
        return None
    listed = subprocess.run(["docker", "images", "-q"], capture_output=True, text=True, check=False)
    return listed.stdout.split()[0] if listed.returncode == 0 and listed.stdout.strip() else None


async def _against_docker(backend: NamespacesBackend, rounds: int) -> list[Row]:
    """CPU time of everything on the machine, less what it does by itself; empty where docker does not work."""
    image = await asyncio.to_thread(_docker_image)
    if image is None:
        return []

    async def container() -> None:
        command = ["docker", "run", "--rm", "--network", "none", image, "true"]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)

    theirs = await _work(container, rounds)
    ours = await _work(lambda: _open_run_close(backend), 20 * rounds)
    numbers = f"{1000 * ours:.1f} beside {1000 * theirs:.0f} CPU-ms"
    return [Row("CPU of the same, less than `docker run true`", theirs / ours, numbers, at_least=GOAL_CPU)]


async def _work(work: Callable[[], Awaitable[None]], rounds: int) -> float:
    before, start = _busy_seconds(), time.perf_counter()
    for _ in range(rounds):
        await work()
    await asyncio.sleep(0.5)
    used, seconds = _busy_seconds() - before, time.perf_counter() - start
    idle = _busy_seconds()
    await asyncio.sleep(2.0)
    return (used - (_busy_seconds() - idle) / 2.0 * seconds) / rounds


# ── and what is left ─────────────────────────────────────────────────────────────────────────────────────────────────


def _memory_mb() -> float:
    """Memory of this process and its supervisors."""
    gc.collect()
    pages = [Path("/proc/self/statm").read_text()]
    children = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False).stdout
    for child in children.split():
        path = Path(f"/proc/{child}/statm")
        pages.append(path.read_text() if path.exists() else "0 0")
    return sum(int(line.split()[1]) for line in pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def _many(backend: NamespacesBackend, count: int) -> list[Row]:
    """Sandboxes opened and closed by the thousand: what stays open here, and how much memory it takes."""

    async def some(number: int) -> None:
        for _ in range(number // 4):
            await asyncio.gather(*(_open_run_close(backend) for _ in range(4)))
        await asyncio.sleep(0.5)

    await some(max(20, count // 20))
    files, memory = len(os.listdir("/proc/self/fd")), _memory_mb()
    await some(count)
    more = len(os.listdir("/proc/self/fd")) - files
    grown = _memory_mb() - memory
    return [
        Row(f"descriptors that {count:,} sandboxes leave open", float(more), "", at_most=0.0, unit="files"),
        Row(f"memory that {count:,} sandboxes leave taken", grown, f"of {memory:.0f} MB", at_most=10.0, unit="MB"),
    ]
