# SPDX-License-Identifier: Apache-2.0
"""A process that has imported reward-kit and forks one child for each job, so that a run starts in milliseconds.

    one JSON line in    {"config": …, "phase": …, "die_at": {"bytes": 1234}}, or {"experiment": …, "die_at": …},
                        with what is imported before the fork, the environment of the child, and where it complains
    two JSON lines out  {"pid": …} as soon as the child exists, {"status": …} once it is gone (-9: it was killed)

A child can be told to kill itself, with SIGKILL, at a chosen byte written to its journals (the bytes before it are
written, those after it are not) or at a chosen file operation in its run directory (just before it happens).
"""

from __future__ import annotations

import atexit
import importlib
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import orjson

FILE_OPERATIONS = frozenset({"open", "os.rename", "os.truncate", "os.remove", "os.mkdir"})


class Zygote:
    """The process, as tests see it: one for all tests of a test process. Jobs find `preload` imported."""

    def __init__(self, *preload: str) -> None:
        self._process = _process()
        self._preload = preload

    def start(self, **job: Any) -> int:
        """Start a job; its process id."""
        assert self._process.stdin is not None
        job |= {"preload": self._preload, "environment": {**os.environ}}
        self._process.stdin.write(orjson.dumps(job, option=orjson.OPT_APPEND_NEWLINE))
        self._process.stdin.flush()
        return int(self._reply()["pid"])

    def wait(self) -> int:
        """How the job ended: its exit code, or -9 where it was killed."""
        return int(self._reply()["status"])

    def run(self, **job: Any) -> int:
        """Run a job to its end."""
        self.start(**job)
        return self.wait()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        reply: dict[str, Any] = orjson.loads(self._process.stdout.readline())
        return reply


@cache
def _process() -> subprocess.Popen[bytes]:
    """The process. It imports what a run imports, and ends with the test process."""
    command = [sys.executable, "-m", "tests.loopback.zygote"]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(process.communicate)
    return process


# ── in the process ───────────────────────────────────────────────────────────────────────────────────────────────────


def _main() -> None:
    _run({"config": None})  # imports what a run imports
    _run({"experiment": None})
    for line in sys.stdin.buffer:
        job = orjson.loads(line)
        for name in job["preload"]:
            importlib.import_module(name)
        pid = os.fork()
        if pid == 0:
            _child(job)
        _say({"pid": pid})
        _, status = os.waitpid(pid, 0)
        _say({"status": os.waitstatus_to_exitcode(status)})


def _say(fact: dict[str, int]) -> None:
    sys.stdout.buffer.write(orjson.dumps(fact, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def _child(job: dict[str, Any]) -> None:
    code = 1
    try:
        os.environ.clear()
        os.environ.update(job["environment"])
        if "stderr" in job:
            os.dup2(os.open(job["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        code = _run(job)
    finally:
        os._exit(code)


def _run(job: dict[str, Any]) -> int:
    import aiohttp  # noqa: F401
    import uvloop  # noqa: F401
    import yaml  # noqa: F401

    from reward_kit.errors import RewardKitError
    from reward_kit.execution import batches
    from reward_kit.execution.pipeline import EvaluationPipeline

    if "experiment" in job:
        return _run_experiment(job)
    if job["config"] is None:
        return 0
    _prepare_to_die(job.get("die_at") or {}, job["config"]["output"]["output_dir"])
    vars(batches)["_LOOKS_AFTER"] = (0.2,)
    try:
        result = EvaluationPipeline(
            job["config"],
            phase=job.get("phase", "both"),
            rescore=job.get("rescore", False),
            resume_from_mirror=job.get("resume_from_mirror", False),
        ).run()
    except RewardKitError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0 if result.status == "finished" else 3


def _run_experiment(job: dict[str, Any]) -> int:
    import pyarrow.parquet  # noqa: F401

    from reward_kit.execution.best_of_n import BestOfN
    from reward_kit.execution.best_of_n.experiment import load_experiment

    values = job["experiment"]
    if values is None:
        return 0
    _prepare_to_die(job.get("die_at") or {}, str(Path(values["output"]).parent))
    return 0 if BestOfN(load_experiment(values)).run().run.status == "finished" else 3


def _prepare_to_die(die_at: dict[str, int], directory: str) -> None:
    if "bytes" in die_at:
        _die_at_byte(die_at["bytes"])
    if "operation" in die_at:
        _die_at_operation(die_at["operation"], directory)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def _die_at_byte(last: int) -> None:
    from reward_kit.storage import files

    left = last

    class Dying:
        """The module `os`, whose `write` ends the process half-way through."""

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def write(self, descriptor: int, data: bytes) -> int:
            nonlocal left
            if len(data) >= left:
                os.write(descriptor, data[:left])
                _die()
            left -= len(data)
            return os.write(descriptor, data)

    vars(files)["os"] = Dying()


def _die_at_operation(number: int, directory: str) -> None:
    left = number

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in FILE_OPERATIONS and str(arguments[0]).startswith(directory):
            left -= 1
            if left == 0:
                _die()

    sys.addaudithook(hook)


if __name__ == "__main__":
    _main()
