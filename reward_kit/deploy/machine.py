# SPDX-License-Identifier: Apache-2.0
"""Actions on this machine: files, programs that run and end, and programs that are left running."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reward_kit.deploy.archive import write_files
from reward_kit.deploy.carry_out import MissingThing
from reward_kit.deploy.plan import Action, Command, ReadFile, RemoveFile, Start, Stop, WriteFiles, WriteSecret
from reward_kit.errors import DeployError
from reward_kit.redaction import mask, mask_words
from reward_kit.storage.files import Draft

__all__ = ["MachineHands", "run_command"]

_INSTALL = {
    "gcloud": "Install the Google Cloud CLI, then run: gcloud auth login",
    "docker": "Install Docker Engine, or name another program with --docker-program, such as podman.",
    "podman": "Install podman with the package manager of the system.",
}
_KEPT_LINES = 40
_STOP_SECONDS = 20.0
_READY_SECONDS = 180.0


class MachineHands:
    """Does what needs this machine only."""

    def __init__(self, folders: Mapping[str, Mapping[str, bytes]], tell: Callable[[str], None]) -> None:
        """`folders` holds the contents of what `WriteFiles` writes; `tell` hears what programs say meanwhile."""
        self._folders = folders
        self._tell = tell

    def do(self, action: Action, _: Mapping[str, str]) -> Any:
        """Do the action; see `Hands`."""
        done: Any = None
        match action:
            case WriteFiles():
                write_files(Path(action.folder), self._folders[action.folder])
            case WriteSecret():
                _write_secret(action)
            case RemoveFile():
                Path(action.path).unlink(missing_ok=True)
            case Stop():
                _stop(action)
            case Command():
                done = run_command(action, self._tell)
            case Start():
                done = _start(action)
            case ReadFile():
                done = _read(Path(action.path))
            case _:
                raise DeployError(f"This machine does not know how to do {action.kind!r}. Please report it.")
        return done


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise MissingThing(f"There is no file {str(path)!r}.") from None


def _write_secret(action: WriteSecret) -> None:
    path = Path(action.path)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with Draft(path, mode=0o600) as draft:
        draft.write(f"{action.value}\n".encode())


# ── programs that end ────────────────────────────────────────────────────────────────────────────────────────────────


def run_command(command: Command, tell: Callable[[str], None]) -> str:
    """What the program wrote to standard output; a `DeployError` with its last words where it failed."""
    import re

    pipe = None if command.follow else subprocess.PIPE
    try:
        process = subprocess.Popen(
            command.argv, stdin=subprocess.PIPE if command.stdin is not None else subprocess.DEVNULL, stdout=pipe,
            stderr=pipe, env={**os.environ, **command.environment}, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        program = Path(command.argv[0]).name
        advice = _INSTALL.get(program, "Install it, or put it on the PATH.")
        raise DeployError(f"{program!r} cannot be run: {error.strerror}. {advice}") from None
    said: deque[str] = deque(maxlen=_KEPT_LINES)
    # Who only asks whether something is there need not hear that it is not.
    hear = (lambda _: None) if command.missing else tell
    listener = threading.Thread(target=_listen, args=(process, said, hear), daemon=True)
    listener.start()
    with process:
        try:
            out = _talk(process, command.stdin)
        except BaseException:
            process.terminate()
            raise
        finally:
            process.wait()
            listener.join()
    if process.returncode == 0:
        return out
    words = mask(" ".join(said)[-1500:] or out[-500:] or "it says nothing")
    shown = shlex.join(mask_words(command.argv[:4]))
    if command.missing and re.search(command.missing, words, re.IGNORECASE):
        raise MissingThing(f"`{shown} …`: {words}")
    raise DeployError(f"`{shown} …` ended with {process.returncode}: {words}")


def _talk(process: subprocess.Popen[str], stdin: str | None) -> str:
    if process.stdin is not None:
        try:
            process.stdin.write(stdin or "")
            process.stdin.close()
        except BrokenPipeError:
            pass  # it ended without reading; its status says why
    return process.stdout.read() if process.stdout is not None else ""


def _listen(process: subprocess.Popen[str], said: deque[str], tell: Callable[[str], None]) -> None:
    if process.stderr is None:
        return
    for line in process.stderr:
        if text := line.strip():
            said.append(text)
            tell(f"    {mask(text)}")


# ── programs that are left running ───────────────────────────────────────────────────────────────────────────────────


_SAY_PID = 'echo $$ > "$0"; exec "$@"'
"""The shell writes its number, which stays the program's."""


def _start(action: Start) -> dict[str, str]:
    log = Path(action.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    pid_file = Path(action.pid_file).absolute()
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _SAY_PID, str(pid_file), *action.argv], cwd=action.folder,
            env={**os.environ, **action.environment}, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    # A thread takes note of its end, should this process still be there.
    threading.Thread(target=process.wait, daemon=True).start()
    if action.ready:
        _wait_until_ready(process, log, action.ready)
    return {"pid": str(process.pid)}


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path, ready: str) -> None:
    """Until its log says so. Before that, whoever answers at its port may be another program, not to be shown a key."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        has_ended = process.poll() is not None  # asked first: what it wrote before its end is read then
        said = log.read_text(encoding="utf-8", errors="replace")
        if ready in said and not has_ended:
            return
        if has_ended:
            words = mask(" ".join(said.split())[-1500:] or "it says nothing")
            raise DeployError(f"The server ended at once: {words} (Its port is chosen with --local-port.)")
        if time.monotonic() > deadline:
            raise DeployError(f"The server is not ready after {_READY_SECONDS:g} s. Look at its log, {str(log)!r}")
        time.sleep(0.05)


def command_of(pid: int) -> str:
    """The whole command line of a process; empty where there is none, or where it has ended."""
    # -ww: else a long line is cut to COLUMNS, and a server that runs would be taken for one that has ended.
    done = subprocess.run(
        ["ps", "-ww", "-o", "stat=,args=", "-p", str(pid)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    state, _, words = done.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else words


def _stop(action: Stop) -> None:
    path = Path(action.pid_file)
    try:
        pid = int(path.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        raise MissingThing("The process was never started.") from None
    if action.marker not in command_of(pid):
        path.unlink(missing_ok=True)
        raise MissingThing(f"The process {pid} has ended.")
    _end(pid, action.marker)
    path.unlink(missing_ok=True)


def _end(pid: int, marker: str) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            return
        except PermissionError as error:
            raise DeployError(f"The process {pid} cannot be ended: {error.strerror}. End it yourself.") from None
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            if marker not in command_of(pid):
                return
            time.sleep(0.05)
    raise DeployError(f"The process {pid} does not end. End it yourself.")
