# SPDX-License-Identifier: Apache-2.0
"""What a fresh, isolated run of a small Python program costs: a zygote beside bubblewrap with a new interpreter.

CPU time of everything involved, reward-kit's own included, in milliseconds a run; starting the zygotes is taken out by
doing few runs and many. Both ways are measured in turns, in the same minutes, with the same interpreter.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable

from benchmarks.orphans import await_orphans, children
from benchmarks.report import Report, Row
from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.linux.syscalls import become_subreaper
from reward_kit.sandbox.python.pool import PythonZygote

PROGRAM = "print(sum(x * x for x in range(int(input()))))"
FEW = 5
GOAL = 2.5


def cpu_seconds() -> float:
    """CPU time of this process and of every process it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def bubblewrap(python: str) -> list[str]:
    """The command that isolates as the zygote does, as far as bubblewrap does it."""
    shown = [part for prefix in {sys.prefix, sys.base_prefix} for part in ("--ro-bind", prefix, prefix)]
    system = [part for name in ("bin", "lib", "lib64") for part in ("--symlink", f"usr/{name}", f"/{name}")]
    fresh = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/box", "--chdir", "/box"]
    apart = ["--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--uid", "65534", "--gid", "65534"]
    # What is fresh comes first: the interpreter may be somewhere below it.
    return ["bwrap", "--ro-bind", "/usr", "/usr", *system, *fresh, *shown, *apart, python, "-I", "-c", PROGRAM]


async def by_zygote(runs: int) -> None:
    """So many runs, one after the other."""
    async with PythonZygote(size=1) as zygotes:
        for _ in range(runs):
            result = await zygotes.run(PROGRAM, stdin=b"10")
            assert result.stdout == "285\n", result


async def by_call(runs: int, *, isolated: bool) -> None:
    """So many calls of one function."""
    async with PythonZygote(size=1, limits=Limits()) as zygotes:
        outcomes = await zygotes.call("def f(n): return n * n", "f", [[n] for n in range(runs)], isolated=isolated)
        assert [outcome.value for outcome in outcomes] == [n * n for n in range(runs)]


async def by_bubblewrap(runs: int) -> None:
    """So many runs, one after the other."""
    command = bubblewrap(sys.executable)
    others = children()
    for _ in range(runs):
        done = subprocess.run(command, input=b"10", capture_output=True, check=True)
        assert done.stdout == b"285\n", done
        await_orphans(others)


def cost(way: Callable[[int], Awaitable[None]], runs: int) -> float:
    """CPU milliseconds a run, without what starting takes."""

    async def measured(count: int) -> float:
        before = cpu_seconds()
        await way(count)
        return cpu_seconds() - before

    few, many = asyncio.run(measured(FEW)), asyncio.run(measured(FEW + runs))
    return (many - few) / runs * 1000


def main(*, quick: bool = False) -> Report:
    """Measure each way in turns. This process becomes the parent of orphans, so that their time counts."""
    runs, rounds = (5, 1) if quick else (100, 5)
    become_subreaper()
    ways: dict[str, Callable[[int], Awaitable[None]]] = {
        "bubblewrap": by_bubblewrap,
        "run": by_zygote,
        "isolated call": lambda count: by_call(count, isolated=True),
        "shared call": lambda count: by_call(count, isolated=False),
    }
    costs: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            costs[name].append(cost(way, runs))
    medians = {name: statistics.median(values) for name, values in costs.items()}
    bare = medians.pop("bubblewrap")
    rows = [
        Row(
            f"a fresh {name}, cheaper than bubblewrap + `python3 -I`",
            bare / own,
            f"{own:.2f} beside {bare:.2f} CPU-ms",
            at_least=GOAL if name == "run" else None,
        )
        for name, own in medians.items()
    ]
    return Report("zygote", "isolated runs of small Python programs", rows)
