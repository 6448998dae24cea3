# SPDX-License-Identifier: Apache-2.0
"""What a fork of a resource costs, beside the cheapest bare way to copy the same state.

CPU time per fork, the first use of the copy and its closing included, in turns with the bare way in the same run. The
bare ways: `pickle.loads` of a dump that is there already; SQLite's `deserialize` of an image that is there already; an
overlay mounted over the directory. Uses are taken out: what a query on an open resource costs is measured, and left out
on both sides.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.report import Report, Row
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resources import FileSystemResource, PythonStateResource, SQLResource

GOAL = 1.5
FILES = 1000
QUERY = "SELECT count(*) FROM t WHERE a < 5"

OVERLAY = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
root, times = sys.argv[1], int(sys.argv[2])
began = time.process_time()
for number in range(times):
    for name in ("upper", "work", "merged"):
        os.makedirs(f"{root}/{number}/{name}")
    place = f"{root}/{number}"
    options = f"lowerdir={root}/lower,upperdir={place}/upper,workdir={place}/work".encode()
    if libc.mount(b"overlay", f"{place}/merged".encode(), b"overlay", 0, options):
        sys.exit("mount: " + os.strerror(ctypes.get_errno()))
    with open(f"{place}/merged/written.txt", "w") as file:
        file.write("x")
    libc.umount(f"{place}/merged".encode())
    os.remove(f"{place}/upper/written.txt")
    for name in ("upper", "work/work", "work", "merged"):
        if os.path.isdir(f"{place}/{name}"):
            os.rmdir(f"{place}/{name}")
    os.rmdir(place)
print((time.process_time() - began) / times)
"""


async def cpu(work: Callable[[], Awaitable[object]], times: int) -> float:
    """CPU seconds of one `work`."""
    began = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - began) / times


async def in_turns(
    ours: Callable[[], Awaitable[object]], bare: Callable[[], Awaitable[object]], times: int, rounds: int
) -> tuple[float, float]:
    """Both costs, each the median of the rounds."""
    found = [(await cpu(ours, times), await cpu(bare, times)) for _ in range(rounds)]
    return statistics.median(one for one, _ in found), statistics.median(other for _, other in found)


def row(what: str, ours: float, bare: float, how: str) -> Row:
    """One resource against its bare way."""
    return Row(what, ours / bare, f"{ours * 1000:.3f} ms; {how}: {bare * 1000:.3f} ms", at_most=GOAL)


# ── a dict ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def python_state(times: int, rounds: int, orders: int) -> Row:
    """A shop's state, as JSON has it."""
    state = {
        "orders": {
            str(n): {"user": f"user-{n}", "items": [{"id": i, "price": n * i / 7} for i in range(5)], "open": True}
            for n in range(orders)
        }
    }
    resource = PythonStateResource()
    await resource.setup({"initial_state": state})
    dumped = pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL)

    async def ours() -> None:
        fork = await resource.fork()
        assert await fork.step("get_value", {"key": "missing"}) is None
        await fork.close()

    async def bare() -> None:
        assert pickle.loads(dumped).get("missing") is None

    found = await in_turns(ours, bare, times, rounds)
    return row(f"a Python state of {len(dumped) / 1000:.3g} kB", *found, "pickle.loads")


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def database(megabytes: int) -> bytes:
    """An image of a database of that size."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    connection.executemany("INSERT INTO t (b) VALUES (?)", (("x" * 1000,) for _ in range(megabytes * 980)))
    connection.commit()
    image = connection.serialize()
    connection.close()
    return image


async def sqlite(megabytes: int, times: int, rounds: int) -> Row:
    """A database that is forked again and again, as the first state of episodes is."""
    image = database(megabytes)
    resource = SQLResource()
    await resource.setup({})
    await resource.restore(image)
    opened = sqlite3.connect(":memory:")
    opened.deserialize(image)

    async def ours() -> None:
        fork = await resource.fork()
        assert fork._opened().execute(QUERY, (), "val") == 4  # without the thread of a step, which no fork needs
        await fork.close()

    async def bare() -> None:
        copied = sqlite3.connect(":memory:")
        copied.deserialize(image)
        assert copied.execute(QUERY).fetchone() == (4,)
        copied.close()

    async def our_query() -> None:
        resource._opened().execute(QUERY, (), "val")

    async def bare_query() -> None:
        opened.execute(QUERY).fetchone()

    for _ in range(3):
        await ours()
    forks = await in_turns(ours, bare, times, rounds)
    queries = await in_turns(our_query, bare_query, times, rounds)
    await resource.close()
    opened.close()
    return row(f"SQLite, {megabytes} MB", forks[0] - queries[0], forks[1] - queries[1], "deserialize of a ready image")


# ── a directory ──────────────────────────────────────────────────────────────────────────────────────────────────────


def overlay(root: Path, times: int) -> float | str:
    """CPU seconds of one overlay mounted, written to and taken away; or why none can be mounted."""
    command = [sys.executable, "-I", "-c", OVERLAY, str(root), str(times)]
    isolated = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), *command]
    try:
        done = subprocess.run(isolated, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "there is no unshare here"
    return float(done.stdout) if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


async def directory(times: int, rounds: int) -> list[Row]:
    """A directory of small files: in memory, and with a real directory of the fork's own."""
    contents = {f"d{n % 20}/f{n}.txt": f"content {n}\n" * 10 for n in range(FILES)}
    resource: ForkableResource = FileSystemResource()
    await resource.setup({"initial_files": contents})

    async def ours() -> None:
        fork = await resource.fork()
        await fork.step("write_file", {"path": "written.txt", "content": "x"})
        await fork.close()

    async def ours_on_disk() -> None:
        fork: Any = await resource.fork()
        (await fork.directory() / "written.txt").write_text("x")
        await fork.close()

    with tempfile.TemporaryDirectory(prefix="reward-kit-bench-") as place:
        lower = Path(place) / "lower"
        for name, content in contents.items():
            (lower / name).parent.mkdir(parents=True, exist_ok=True)
            (lower / name).write_text(content)

        async def copied() -> None:
            shutil.copytree(lower, Path(place) / "copy")
            shutil.rmtree(Path(place) / "copy")

        tree = await in_turns(ours_on_disk, copied, max(1, times // 40), min(rounds, 3))
        found = [(await cpu(ours, times), overlay(Path(place), max(3, times // 10))) for _ in range(rounds)]
    await resource.close()
    on_disk = Row(
        f"a real directory of {FILES} files", tree[0] / tree[1],
        f"{tree[0] * 1000:.1f} ms; copytree: {tree[1] * 1000:.1f} ms",
    )  # fmt: skip
    mounted = [bare for _, bare in found if not isinstance(bare, str)]
    mine = statistics.median(one for one, _ in found)
    if not mounted:
        return [row(f"a directory of {FILES} files", mine, tree[1], f"copytree ({found[0][1]})"), on_disk]
    return [row(f"a directory of {FILES} files", mine, statistics.median(mounted), "an overlay mount"), on_disk]


async def measured(*, quick: bool) -> list[Row]:
    """All rows."""
    rounds = 1 if quick else 7
    return [
        await python_state(20 if quick else 300, rounds, 3),
        await python_state(3 if quick else 20, rounds, 100 if quick else 3000),
        await sqlite(1, 5 if quick else 200, rounds),
        await sqlite(2 if quick else 15, 3 if quick else 40, rounds),
        *await directory(20 if quick else 200, rounds),
    ]


def main(*, quick: bool = False) -> Report:
    """Measure and report."""
    return Report("agent_forks", "what a fork costs, beside the cheapest bare copy", asyncio.run(measured(quick=quick)))


if __name__ == "__main__":
    from benchmarks.report import as_text

    print(as_text(main()))
