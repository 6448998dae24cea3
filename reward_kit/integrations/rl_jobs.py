# SPDX-License-Identifier: Apache-2.0
"""Training jobs: a model, a dataset and a reward in; a handle out, with which to follow, wait and cancel.

    job = start_rl_job(model=..., dataset=..., reward="my_rewards:correct", output_dir="outputs/train")
    job.wait()

A backend starts jobs. The local one runs `trl grpo` in a process group of its own, which goes on when this process
ends: `LocalJob("outputs/train")` finds it again. Everything about a job is in its directory:

    job.json                   what was asked for: the command, the reward, the data
    reward_kit_job_reward.py   the reward as TRL imports it
    data/                      the rows, where they were given as such
    train.log                  what the trainer printed
    job.lock                   locked by the trainer for as long as it lives
    exit_code                  how it ended, if it came to an end by itself
    cancelled                  there, if it was told to stop
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from reward_kit.errors import ConfigError, MissingExtraError, RewardKitError
from reward_kit.integrations.shim import write_shim
from reward_kit.reward_call import RewardCall
from reward_kit.storage.files import write_whole

__all__ = ["JobBackend", "JobFailedError", "JobRequest", "JobStatus", "LocalBackend", "LocalJob", "RLJob"]

JobStatus = Literal["running", "succeeded", "failed", "cancelled"]
"""What has become of a job."""

_SHELL = '"$@" >train.log 2>&1; echo $? >exit_code.new; mv exit_code.new exit_code'
_SHIM = "reward_kit_job_reward"
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 10.0
_SHOWN_LINES = 20


class JobFailedError(RewardKitError):
    """A training job did not succeed."""


class JobRequest(NamedTuple):
    """What a job is asked to do, whoever does it."""

    model: str
    """A directory or the name of a model."""
    dataset: str | Sequence[Mapping[str, Any]]
    """A directory, a file, the name of a dataset, or the rows themselves; each has a `prompt`."""
    reward: str
    """The import path of the reward."""
    output_dir: Path
    columns: Mapping[str, str] | None = None
    """Dataset columns to reward parameters; None: by their own names."""
    params: Mapping[str, Any] = {}
    """Given to every call of the reward."""
    method: Literal["grpo", "rloo"] = "grpo"
    settings: Mapping[str, Any] = {}
    """The trainer's own settings, such as `max_steps`."""


class RLJob(Protocol):
    """A job that was started, wherever it runs."""

    @property
    def status(self) -> JobStatus:
        """What has become of it."""
        ...

    def logs(self) -> str:
        """What the trainer printed so far."""
        ...

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait for its end. A job that failed is a `JobFailedError`; one that takes longer, a `TimeoutError`."""
        ...

    def cancel(self) -> None:
        """Stop it; harmless if it has ended."""
        ...


class JobBackend(Protocol):
    """Something that runs training jobs, such as `LocalBackend`, which runs them on this machine."""

    def start(self, request: JobRequest) -> RLJob:
        """Start the job. What comes back tells its status and its logs, and can cancel it."""
        ...


# ── on this machine ──────────────────────────────────────────────────────────────────────────────────────────────────


class LocalBackend:
    """Runs jobs here, with TRL. `program` is what is called as `trl`, for those who launch it in their own way."""

    def __init__(self, program: Sequence[str] | None = None) -> None:
        self._program = list(program) if program is not None else None

    def start(self, request: JobRequest) -> LocalJob:
        """Write the job's files and start the trainer in a session of its own."""
        directory = request.output_dir.resolve()
        RewardCall(request.reward, request.params)  # a reward that does not load is better known now
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / "job.json").exists():
            raise ConfigError(f"There is a job in {str(directory)!r} already. Choose another output_dir.")
        write_shim(
            directory / f"{_SHIM}.py",
            f"{request.reward} as TRL calls it",
            "reward_kit.integrations.trl:create_trl_adapter",
            "reward",
            [request.reward, request.columns and dict(request.columns), dict(request.params)],
            {},
        )
        command = [*self._trl(), request.method, *_arguments(request, _data(request, directory), f"{_SHIM}.reward")]
        _describe(directory, request, command)
        _launch(directory, command)
        return LocalJob(directory)

    def _trl(self) -> list[str]:
        if self._program is not None:
            return self._program
        if find_spec("trl") is None:
            raise MissingExtraError("A local training job", "train")
        return [sys.executable, "-m", "trl.cli.main"]


class LocalJob:
    """A job on this machine, known by its directory."""

    def __init__(self, directory: str | Path) -> None:
        """Find the job in `directory`, whichever process started it."""
        self.directory = Path(directory).resolve()
        if not (self.directory / "job.json").exists():
            raise ConfigError(f"There is no job in {str(self.directory)!r}. Give the output_dir of one.")

    @property
    def status(self) -> JobStatus:
        """What has become of it. One that was killed by others has failed."""
        if self._alive():
            return "running"
        if self._exit_code() == 0:
            return "succeeded"
        return "cancelled" if (self.directory / "cancelled").exists() else "failed"

    def logs(self) -> str:
        """What the trainer printed so far."""
        log = self.directory / "train.log"
        return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""

    def follow(self) -> Iterator[str]:
        """The lines that the trainer prints, as they come, until it ends."""
        log = self.directory / "train.log"
        unshown, read = b"", 0
        while True:
            running = self.status == "running"  # asked before reading, so that the last lines are read after the end
            if log.exists():
                with log.open("rb") as file:
                    file.seek(read)
                    unshown += file.read()
                    read = file.tell()
            *whole, unshown = unshown.split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
            if not running:
                yield from [unshown.decode(errors="replace")] if unshown else []
                return
            time.sleep(_POLL_SECONDS)

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait for its end. A job that failed is a `JobFailedError`; one that takes longer, a `TimeoutError`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.status) == "running":
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"The job in {str(self.directory)!r} is still running after {timeout:g} s.")
            time.sleep(_POLL_SECONDS)
        if status == "failed":
            last = "\n".join(self.logs().splitlines()[-_SHOWN_LINES:])
            code = self._exit_code()
            how = f"ended with exit code {code}" if code is not None else "was killed"
            raise JobFailedError(f"The job in {str(self.directory)!r} {how}. The end of its log:\n{last}")
        return status

    def cancel(self) -> None:
        """Stop it, by force if it does not stop when asked; harmless if it has ended."""
        if not self._alive():
            return
        (self.directory / "cancelled").touch()
        for kind, patience in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, _GRACE_SECONDS)):
            self._signal(kind)
            deadline = time.monotonic() + patience
            while self._alive():
                if time.monotonic() >= deadline:
                    break
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _signal(self, kind: signal.Signals) -> None:
        """Tell the job's process group; the lock, which only it holds, says that its number is still its own."""
        group = int(json.loads((self.directory / "job.json").read_text())["process_group"])
        try:
            os.killpg(group, kind)
        except ProcessLookupError:
            return

    def _alive(self) -> bool:
        with (self.directory / "job.lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _exit_code(self) -> int | None:
        file = self.directory / "exit_code"
        return int(file.read_text()) if file.exists() else None


def _describe(directory: Path, request: JobRequest, command: Sequence[str]) -> None:
    description = {"command": list(command), "reward": request.reward, "model": request.model, "method": request.method}
    write_whole(directory / "job.json", json.dumps(description, indent=2) + "\n")


def _launch(directory: Path, command: Sequence[str]) -> None:
    """Start the trainer in a session of its own, with a lock that is held until the last of it is gone."""
    path = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
    with (directory / "job.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            ["sh", "-c", _SHELL, "sh", *command],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock.fileno(),),
            start_new_session=True,
        )
    threading.Thread(target=process.wait, name="reward-kit job", daemon=True).start()  # so that no zombie is left
    file = directory / "job.json"
    description = {**json.loads(file.read_text(encoding="utf-8")), "process_group": process.pid}
    write_whole(file, json.dumps(description, indent=2) + "\n")


def _data(request: JobRequest, directory: Path) -> str:
    """What to call the dataset: its directory or its name. Rows and files are put into a directory of their own."""
    if not isinstance(request.dataset, str):
        return _written(request.dataset, directory / "data")
    path = Path(request.dataset)
    if path.is_file():
        copy = directory / "data" / path.name
        write_whole(copy, path.read_bytes())
        return str(copy.parent)
    return str(path.resolve()) if path.is_dir() else request.dataset


def _written(rows: Iterable[Mapping[str, Any]], directory: Path) -> str:
    given = list(rows)
    if not given or any("prompt" not in row for row in given):
        raise ConfigError(
            "The dataset is empty or has rows without a 'prompt'; give each a text or a list of messages."
        )
    write_whole(directory / "train.jsonl", "".join(f"{json.dumps(row)}\n" for row in given))
    return str(directory)


def _arguments(request: JobRequest, data: str, reward: str) -> list[str]:
    model = Path(request.model)
    named = {
        "model_name_or_path": str(model.resolve()) if model.exists() else request.model,
        "dataset_name": data,
        "reward_funcs": reward,
        "output_dir": str(request.output_dir.resolve()),
        **request.settings,
    }
    return [word for name, value in named.items() for word in _words(name, value)]


def _words(name: str, value: Any) -> list[str]:
    """A setting as TRL's command line takes it: a list is several words after one name."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [f"--{name}", *(json.dumps(each) if isinstance(each, dict) else str(each) for each in values)]
