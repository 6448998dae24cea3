# SPDX-License-Identifier: Apache-2.0
"""A process that has imported reward-kit and forks one child for each job, so that a run starts in milliseconds.

    one JSON line in    {"config": …, "phase": …, "die_at": {"bytes": 1234}}, or {"experiment": …, "die_at": …}, or
                        {"command": ["run", …], "home": …, "room": 600, "powers": false}, as a person types it,
                        with what is imported before the fork, the environment of the child, and where it complains
    two JSON lines out  {"pid": …} as soon as the child exists, {"status": …} once it is gone (-9: it was killed)

A child can be told to kill itself, with SIGKILL, at a chosen byte written to its journals (the bytes before it are
written, those after it are not) or at a chosen file operation in its run directory (just before it happens). With a
`room`, no file can grow beyond so many bytes; without `powers`, root is an ordinary user without a home. What a command
says comes with its status.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import os
import resource
import signal
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

FILE_OPERATIONS = frozenset({"open", "os.rename", "os.truncate", "os.remove", "os.mkdir"})


class Ended(NamedTuple):
    """What came of a command."""

    code: int
    said: str


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

    def command(self, home: Path, *words: str | Path, room: int | None = None, powers: bool = True) -> Ended:
        """Call `reward-kit` in a folder: how it ended, and all that it said."""
        self.start(command=[*map(str, words)], home=str(home), room=room, powers=powers)
        reply = self._reply()
        return Ended(int(reply["status"]), str(reply["said"]))

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
        heard, said = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child(job, said)
        os.close(said)
        _say({"pid": pid})
        with os.fdopen(heard, "rb") as pipe:
            words = pipe.read().decode(errors="replace")
        _, status = os.waitpid(pid, 0)
        _say({"status": os.waitstatus_to_exitcode(status), "said": words})


def _say(fact: dict[str, Any]) -> None:
    sys.stdout.buffer.write(orjson.dumps(fact, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def _child(job: dict[str, Any], said: int) -> None:
    code = 1
    try:
        os.environ.clear()
        os.environ.update(job["environment"])
        if "stderr" in job:
            os.dup2(os.open(job["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if "command" in job:
            os.dup2(said, 2)
        os.close(said)
        os.dup2(2, 1)
        code = _run_command(job) if "command" in job else _run(job)
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


def _run_command(job: dict[str, Any]) -> int:
    from reward_kit.cli import main

    os.chdir(job["home"])
    os.environ["COLUMNS"] = "400"
    if job["powers"] is False:
        os.environ.pop("HOME", None)
        _give_up_powers()
    if job["room"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["room"], job["room"]))
    sys.argv = ["reward-kit", *job["command"]]
    try:
        main()
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 0 if leave.code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _give_up_powers() -> None:
    """Have what permissions say count, for root too."""
    version_3 = struct.pack("=II", 0x20080522, 0)
    if ctypes.CDLL(None, use_errno=True).capset(version_3, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


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
