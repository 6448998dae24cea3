"""The backends `docker` and `podman`: one container a task, through the docker SDK and the engine's socket.

A container's first process is our driver, which runs every command of the task: no `exec` is asked of the engine, and
a command costs what it costs. Containers can be started before they are needed (`prestarted`); none is used twice.

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
import logging
import os
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.errors import MissingExtraError, RewardKitError, SandboxError
from reward_kit.sandbox.containers_engine import ContainerKind, Engine
from reward_kit.sandbox.containers_sandbox import ContainerSandbox
from reward_kit.sandbox.containers_stream import DriverStream
from reward_kit.sandbox.contract import Limits, Probe, Sandbox, SandboxSpec

__all__ = ["DEFAULT_IMAGE", "ContainerBackend", "docker", "podman"]

DEFAULT_IMAGE = "debian:bookworm-slim"
"""The image of a sandbox whose spec names none."""

_log = logging.getLogger(__name__)


class _Ready(NamedTuple):
    """A container whose driver waits for its first request."""

    key: str
    stream: DriverStream


def docker(url: str | None = None, *, image: str = DEFAULT_IMAGE, prestarted: int = 0) -> ContainerBackend:
    """Docker at `url`, or where DOCKER_HOST says, or at its usual socket."""
    found = url or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    return ContainerBackend("docker", found, image=image, prestarted=prestarted)


def podman(url: str | None = None, *, image: str = DEFAULT_IMAGE, prestarted: int = 0) -> ContainerBackend:
    """Podman's service at `url`, or where CONTAINER_HOST says, or at its usual socket."""
    own = Path(os.environ.get("XDG_RUNTIME_DIR", "/run")) / "podman" / "podman.sock"
    usual = own if own.exists() else Path("/run/podman/podman.sock")
    found = url or os.environ.get("CONTAINER_HOST") or f"unix://{usual}"
    return ContainerBackend("podman", found, image=image, prestarted=prestarted)


class ContainerBackend:
    """Sandboxes in containers of one engine.

    `prestarted`: how many containers are kept ready, of the kind that was asked for last.
    """

    def __init__(self, name: str, url: str, *, image: str = DEFAULT_IMAGE, prestarted: int = 0) -> None:
        self.name = name
        self._engine = Engine(name, url)
        self._image = image
        self._prestarted = prestarted
        self._kind: ContainerKind | None = None
        self._ready: deque[_Ready] = deque()
        self._open: set[ContainerSandbox] = set()
        self._present: set[str] = set()
        self._preparing = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()
        self._filling: asyncio.Task[None] | None = None

    async def probe(self) -> Probe:
        """Open a sandbox, run a command in it, close it."""
        try:
            version = await self._engine.version()
            async with await self.open(SandboxSpec()) as sandbox:
                said = await sandbox.run("echo here")
        except MissingExtraError as error:
            return Probe(False, str(error))
        except RewardKitError as error:
            return Probe(False, str(error), f"Start {self.name}, and see that {self._engine.url} can be reached.")
        works = said.ok and said.stdout == "here\n"
        return Probe(works, version if works else f"its shell answered {said.output!r}")

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """A fresh container with its files written and its set-up done."""
        kind = ContainerKind(spec.image or self._image, _made_into(spec.limits), spec.network)
        ready = await self._take(kind)
        sandbox = ContainerSandbox(self._engine, ready.key, ready.stream, spec, self._open.discard)
        self._open.add(sandbox)
        try:
            await sandbox.begin()
        except BaseException:
            await asyncio.shield(self._later(sandbox.close()))
            raise
        return sandbox

    async def close(self) -> None:
        """Remove every container of this backend, and let go of the engine."""
        if self._filling is not None:
            self._filling.cancel()
        closing: Iterable[Coroutine[Any, Any, None]] = [sandbox.close() for sandbox in list(self._open)]
        await asyncio.gather(*closing, *self._background, return_exceptions=True)
        await self._discard_ready()
        await self._engine.close()

    # ── containers that wait ─────────────────────────────────────────────────────────────────────────────────────

    async def _take(self, kind: ContainerKind) -> _Ready:
        await self._prepare(kind.image)
        if kind != self._kind:
            self._kind = kind
            await self._discard_ready()
        found: _Ready | None = None
        while self._ready and found is None:
            candidate = self._ready.popleft()
            if candidate.stream.ended:
                await self._discard(candidate)
            else:
                found = candidate
        if self._prestarted and (self._filling is None or self._filling.done()):
            self._filling = self._later(self._fill(kind))
        return found or _Ready(*await self._engine.create(kind))

    async def _fill(self, kind: ContainerKind) -> None:
        try:
            while kind == self._kind and len(self._ready) < self._prestarted:
                self._ready.append(_Ready(*await self._engine.create(kind)))
        except SandboxError as error:
            _log.warning("no container could be started in advance: %s", error)

    async def _prepare(self, image: str) -> None:
        """Once: sweep what others left. Once an image: see that it is here."""
        async with self._preparing:
            if image in self._present:
                return
            if not self._present:
                await self._engine.sweep()
            await self._engine.need_image(image)
            self._present.add(image)

    async def _discard_ready(self) -> None:
        waiting, self._ready = list(self._ready), deque()
        await asyncio.gather(*(self._discard(one) for one in waiting))

    async def _discard(self, ready: _Ready) -> None:
        try:
            await self._engine.remove(ready.key)
        except SandboxError as error:
            _log.warning("a container is left behind: %s", error)
        finally:
            await ready.stream.close()

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def _made_into(limits: Limits) -> Limits:
    """The limits that a container is made with, the others left at one value so that they do not tell kinds apart."""
    return replace(limits, timeout=0.0, output_bytes=0)
