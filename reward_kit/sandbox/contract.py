# SPDX-License-Identifier: Apache-2.0
"""What every sandbox is: a place where commands run that can touch nothing else.

    backend.open(spec) ─▶ Sandbox ─▶ run · run_standalone · read · write ─▶ close

A command that fails is a value, an `ExecResult`; a sandbox that fails is a `SandboxError`, which is retryable and never
scored. Nothing survives the close, and nothing is ever used for a second task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self, runtime_checkable

from reward_kit.models import ExecResult

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractAsyncContextManager

__all__ = [
    "Checking",
    "Limits",
    "OpenSandbox",
    "Probe",
    "Sandbox",
    "SandboxBackend",
    "SandboxSpec",
    "check_in",
    "mark_in",
]


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use; every one of them is enforced."""

    memory_mb: int = 512
    """Memory of all its processes together, files in memory included."""
    processes: int = 128
    """Processes and threads at a time."""
    timeout: float = 30.0
    """Seconds one command may take, unless the call says otherwise."""
    cpu_seconds: float = 60.0
    """CPU time one process may use."""
    file_size_mb: int = 512
    """The largest file it may write."""
    disk_mb: int = 2048
    """What all its files together may take on disk. It also says how many there may be: 64 per MB, 8,192 at least."""
    output_bytes: int = 1 << 20
    """What is kept of each of a command's output streams: the beginning and the end."""
    open_files: int = 1024


@dataclass(frozen=True)
class SandboxSpec:
    """What to open. Two equal specs open equal sandboxes."""

    image: str | None = None
    """A container image (docker, SoS), or the path of a root filesystem (namespaces). None: the backend's default."""
    setup: tuple[str, ...] = ()
    """Commands run in the sandbox's own shell before anything else, so that a `cd` lasts."""
    setup_join: Literal["&&", ";"] = "&&"
    """`&&`: a setup command that fails ends the setup, and opening with it. `;`: the others still run."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Written before the setup runs; relative names are under `workdir`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside the few that every sandbox has. Nothing of the host's environment is seen."""
    workdir: str | None = None
    """Where the shell begins; the backend's home directory when left out."""
    limits: Limits = Limits()
    network: bool = False
    """Whether the network may be reached. Off unless asked for."""


class Probe(NamedTuple):
    """What a backend's self-test found."""

    works: bool
    detail: str
    """What it is, with versions; or why it does not work."""
    advice: str = ""
    """What to do where it does not work."""


@runtime_checkable
class Sandbox(Protocol):
    """One open sandbox. One command runs in its shell at a time."""

    async def run(self, command: str, *, timeout: float | None = None, stdin: bytes | None = None) -> ExecResult:
        """Run in the persistent shell: what it does to directory, variables and functions lasts.

        A command that exceeds its time is killed with everything it started; the shell lives on where it can, else the
        result says `exited`.
        """
        ...

    async def run_standalone(
        self, command: str, *, timeout: float | None = None, stdin: bytes | None = None
    ) -> ExecResult:
        """Run as a process of its own, in the directory where the shell is, unaffected by its functions and variables.

        The exit status is what the operating system reports: nothing the shell did can forge it.
        """
        ...

    async def read(self, path: str) -> bytes:
        """The content of a file in the sandbox, never of one outside, wherever its links point.

        Relative paths are under the spec's `workdir`. Where there is no such regular file, an `OSError`.
        """
        ...

    async def write(self, path: str, content: bytes) -> None:
        """Write a file in the sandbox, never one outside, wherever links there point; make the directories above it."""
        ...

    async def close(self) -> None:
        """End everything in it and leave nothing behind. May be called twice."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class Checking(Protocol):
    """A sandbox that can check what a command has done, and be sure of what it checks with."""

    async def mark(self) -> None:
        """What the setup has written until now is what the task is about; later changes of it are no one's cheating."""
        ...

    async def check(self, command: str) -> ExecResult:
        """Run standalone, with the shell, programs and libraries of the sandbox's root, whatever was changed of them.

        What runs in the sandbox stands still meanwhile, unless the command talks to it. Where the command reached a
        program that was changed, the result is `distrusted`.
        """
        ...


async def mark_in(box: Sandbox) -> None:
    """Say that the setup is done, where the sandbox wants to know."""
    if isinstance(box, Checking):
        await box.mark()


async def check_in(box: Sandbox, command: str) -> ExecResult:
    """Check as well as the sandbox can: one that offers commands only checks with what the command has left."""
    return await (box.check(command) if isinstance(box, Checking) else box.run_standalone(command))


class SandboxBackend(Protocol):
    """A way of making sandboxes."""

    name: str
    """How it is asked for: `namespaces`, `docker`, `podman`, `sos`, `none`."""

    async def probe(self) -> Probe:
        """Try it for real: open a sandbox, run a command, close it."""
        ...

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """A fresh sandbox with its setup done. A failing setup (`&&`) or a broken backend is a `SandboxError`."""
        ...

    async def close(self) -> None:
        """Close every sandbox that is still open, and what the backend itself keeps."""
        ...


class OpenSandbox(Protocol):
    """Opens sandboxes the way the run's settings say. What a reward that names `sandbox` is handed."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that the sandboxes live on; None as long as any will do."""
        ...

    def __call__(
        self,
        *,
        setup: Sequence[str] = (),
        files: Mapping[str, bytes] | None = None,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
        limits: Limits | None = None,
    ) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh sandbox with its setup done and its files written; `limits` instead of those of the settings."""
        ...
