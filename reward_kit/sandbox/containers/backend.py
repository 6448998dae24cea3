# SPDX-License-Identifier: Apache-2.0
"""The backends `docker` and `podman`: one container a task, through the docker SDK and the engine's socket.

A container's first process is our driver, which runs every command of the task: no `exec` is asked of the engine, and
a command costs what it costs. A `SandboxPool` starts containers before they are needed; none is used twice.

Covered: the engine's own isolation (namespaces, its seccomp profile), root with docker's default capabilities and no
new privileges, no network, nothing of the host's files or environment. Memory (swap included), processes, CPU time,
file size, open files, output and wall time are limited. A container ends when the process that opened it does, however
that ends; what is left of it then is removed by the next one that starts. Every call to the engine has a deadline.
Not covered: how much disk a container fills in all (only the size of one file); attacks on the kernel or on the
engine. A command that attacks the driver through /proc, as root in the same container, can spoil its own results, not
others'. Output that is written to stdout and stderr at once is merged in the order of arrival. The engine is reached
by a unix or plain TCP socket. The image must have bash, and base64 for files and input.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_kit.errors import MissingExtraError, RewardKitError
from reward_kit.sandbox.containers.engine import CALL_SECONDS, ContainerKind, Engine
from reward_kit.sandbox.containers.sandbox import ContainerSandbox
from reward_kit.sandbox.contract import Limits, Probe, Sandbox, SandboxSpec

if TYPE_CHECKING:
    from reward_kit.config_models import SandboxConfig

__all__ = ["DEFAULT_IMAGE", "ContainerBackend", "docker", "make_docker", "make_podman", "podman"]

DEFAULT_IMAGE = "debian:bookworm-slim"
"""The image of a sandbox whose spec names none."""


def docker(url: str | None = None, *, image: str = DEFAULT_IMAGE) -> ContainerBackend:
    """Docker at `url`, or where DOCKER_HOST says, or at its usual socket."""
    found = url or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    return ContainerBackend("docker", found, image=image)


def podman(url: str | None = None, *, image: str = DEFAULT_IMAGE) -> ContainerBackend:
    """Podman's service at `url`, or where CONTAINER_HOST says, or at its usual socket."""
    own = Path(os.environ.get("XDG_RUNTIME_DIR", "/run")) / "podman" / "podman.sock"
    usual = own if own.exists() else Path("/run/podman/podman.sock")
    found = url or os.environ.get("CONTAINER_HOST") or f"unix://{usual}"
    return ContainerBackend("podman", found, image=image)


def make_docker(_: SandboxConfig) -> ContainerBackend:
    """Docker for a run, whose settings reach it with each sandbox."""
    return docker()


def make_podman(_: SandboxConfig) -> ContainerBackend:
    """Podman for a run, whose settings reach it with each sandbox."""
    return podman()


class ContainerBackend:
    """Sandboxes in containers of one engine, which may take `call_seconds` to answer a call."""

    def __init__(self, name: str, url: str, *, image: str = DEFAULT_IMAGE, call_seconds: float = CALL_SECONDS) -> None:
        self.name = name
        self._engine = Engine(name, url, call_seconds=call_seconds)
        self._image = image
        self._open: set[ContainerSandbox] = set()
        self._present: set[str] = set()
        self._preparing = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where the engine is reached."""
        return self._engine.url

    async def probe(self) -> Probe:
        """Open a sandbox, run a command in it, close it."""
        try:
            version = await self._engine.version()
            async with await self.open(SandboxSpec()) as sandbox:
                answer = await sandbox.run("echo here")
        except MissingExtraError as error:
            return Probe(False, str(error))
        except RewardKitError as error:
            return Probe(False, str(error), f"Start {self.name}, and see that {self.url} can be reached.")
        works = answer.ok and answer.stdout == "here\n"
        return Probe(works, version if works else f"its shell answered {answer.output!r}")

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """A fresh container with its files written and its setup done."""
        kind = ContainerKind(spec.image or self._image, _made_into(spec.limits), spec.network)
        await self._prepare(kind.image)
        key, stream = await self._engine.create(kind)
        sandbox = ContainerSandbox(self._engine, key, stream, spec, self._open.discard)
        self._open.add(sandbox)
        try:
            await sandbox.begin()
        except BaseException:
            await asyncio.shield(self._later(sandbox.close()))
            raise
        return sandbox

    async def close(self) -> None:
        """Remove every container of this backend, and let go of the engine."""
        closing: Iterable[Coroutine[Any, Any, None]] = [sandbox.close() for sandbox in list(self._open)]
        await asyncio.gather(*closing, *self._background, return_exceptions=True)
        await self._engine.close()

    async def _prepare(self, image: str) -> None:
        """Once: sweep what others left. Once an image: see that it is here."""
        async with self._preparing:
            if image in self._present:
                return
            if not self._present:
                await self._engine.sweep()
            await self._engine.need_image(image)
            self._present.add(image)

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def _made_into(limits: Limits) -> Limits:
    """The limits that a container is made with, the others left at one value so that they do not tell kinds apart."""
    return replace(limits, timeout=0.0, output_bytes=0)
