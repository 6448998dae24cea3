# SPDX-License-Identifier: Apache-2.0
"""What the `sandbox` settings mean: the sandboxes and the isolated Python that rewards are handed for naming them.

    async with sandbox(setup=["mkdir work", "cd work"]) as box:
        done = await box.run("touch here")
    result = await isolated_python.run("print(6 * 7)")

Each sandbox is fresh, is made the way the settings say, and is gone when the block ends; so is what a program ran in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from reward_kit.config_models import SandboxConfig
from reward_kit.errors import SandboxError, SandboxUnavailableError
from reward_kit.sandbox.choose import choose_backend
from reward_kit.sandbox.contract import Limits, OpenSandbox, Sandbox, SandboxBackend, SandboxSpec
from reward_kit.sandbox.isolated_python import IsolatedPython, running_loop
from reward_kit.sandbox.pool import SandboxPool
from reward_kit.sandbox_backends import AUTO, BACKENDS, row_of

__all__ = [
    "SandboxOnDemand",
    "Sandboxes",
    "choose_isolated_python",
    "open_isolated_python",
    "open_sandboxes",
    "sandboxes_at_a_time",
    "try_backend",
]

_EACH = 4
"""How many sandboxes one call of a reward may have open before it has to wait for another call's."""
_STARTED_AHEAD = 2
"""How many sandboxes of a slow backend are opened before they are asked for."""
_FIRST = 8
"""When so many sandboxes have failed and none has worked, the machinery is broken, not the tasks."""


def sandboxes_at_a_time() -> int:
    """How many are worth having open at once where nobody says: their work is done by this machine's cores."""
    return max(4, 2 * (os.cpu_count() or 1))


@contextlib.asynccontextmanager
async def open_sandboxes(config: SandboxConfig, *, concurrency: int) -> AsyncIterator[Sandboxes]:
    """What a reward that names `sandbox` is handed, for so many calls at a time: tried, and closed in the end."""
    sandboxes = await _chosen(config, concurrency)
    try:
        await sandboxes.try_one()
        yield sandboxes
    finally:
        await sandboxes.close()


async def _chosen(config: SandboxConfig, concurrency: int) -> Sandboxes:
    backend = await _working_backend(config)
    warm = min(concurrency, _STARTED_AHEAD) if row_of(backend.name).is_slow_to_open else 0
    return Sandboxes(SandboxPool(backend, size=concurrency * _EACH, warm=warm), config)


class Sandboxes:
    """Opens sandboxes for a reward, and stops the run when the first ones all fail."""

    def __init__(self, backend: SandboxBackend, config: SandboxConfig) -> None:
        """Open with `backend`, within the bounds of `config`."""
        self.backend = backend.name
        """How they are made."""
        self.loop = running_loop()
        """The event loop that they live on."""
        self._backend = backend
        self._config = config
        self._limits = Limits(memory_mb=config.memory_mb, timeout=config.timeout)
        self._worked = False
        self._failed = 0

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
        return self._one(
            SandboxSpec(
                image=self._config.image,
                setup=tuple(setup),
                setup_join=self._config.setup_join,
                files=files or {},
                environment=environment or {},
                workdir=workdir,
                limits=limits or self._limits,
                network=self._config.network,
            )
        )

    async def close(self) -> None:
        """Close those that are still open, and what makes them."""
        await self._backend.close()

    async def try_one(self) -> None:
        """Open one and run a command in it, so that what cannot work is said before anything is begun."""
        try:
            async with self() as box:
                done = await box.run("true")
        except SandboxError as error:
            raise SandboxUnavailableError(f"No sandbox can be opened with {self._backend.name!r}: {error}") from error
        if not done.ok:
            raise SandboxUnavailableError(
                f"A sandbox of {self._backend.name!r} cannot even run `true`: {done.output.strip() or done.exit_code}. "
                "Check the image, or choose another backend."
            )
        self._worked = False  # whether it works for the tasks is still to be seen

    @contextlib.asynccontextmanager
    async def _one(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        try:
            async with await self._backend.open(spec) as box:
                yield box
        except SandboxError as error:
            self._note(error)
            raise
        self._worked = True

    def _note(self, error: SandboxError) -> None:
        """Count failures of the machinery until something works. A wrong setup, which will not mend, is not one."""
        self._failed += error.retryable
        if not self._worked and self._failed >= _FIRST:
            raise SandboxUnavailableError(
                f"The first {self._failed} sandboxes all failed, the last one with: {error} Nothing is lost: fix it, "
                "then run the same command again."
            ) from error


class SandboxOnDemand:
    """The same, made by a backend that is chosen when the first one is asked for."""

    def __init__(self, config: SandboxConfig, *, concurrency: int, loop: asyncio.AbstractEventLoop) -> None:
        """For so many calls at a time, all of them on `loop`."""
        self.loop = loop
        self._config = config
        self._concurrency = concurrency
        self._choosing: asyncio.Task[Sandboxes] | None = None

    @contextlib.asynccontextmanager
    async def __call__(
        self,
        *,
        setup: Sequence[str] = (),
        files: Mapping[str, bytes] | None = None,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
        limits: Limits | None = None,
    ) -> AsyncIterator[Sandbox]:
        """A fresh sandbox with its setup done and its files written; `limits` instead of those of the settings."""
        opening = (await self._sandboxes())(
            setup=setup, files=files, environment=environment, workdir=workdir, limits=limits
        )
        async with opening as box:
            yield box

    async def close(self) -> None:
        """Close those that are still open, and what makes them."""
        if self._choosing is not None and await _succeeded(self._choosing):
            await self._choosing.result().close()

    async def _sandboxes(self) -> Sandboxes:
        """Chosen once; where that fails, the next who asks tries again."""
        if self._choosing is None or (self._choosing.done() and not await _succeeded(self._choosing)):
            self._choosing = self.loop.create_task(_chosen(self._config, self._concurrency))
        return await asyncio.shield(self._choosing)


async def _succeeded(task: asyncio.Task[Sandboxes]) -> bool:
    await asyncio.wait([task])
    return not task.cancelled() and task.exception() is None


async def _working_backend(config: SandboxConfig) -> SandboxBackend:
    """The backend that is asked for. An image that is no file or directory here can only be a container's."""
    if config.backend != AUTO or config.image is None or Path(config.image).exists():
        return await choose_backend(config)
    problems = []
    for name in (name for name, row in BACKENDS.items() if row.runs_images):
        try:
            return await choose_backend(config.model_copy(update={"backend": name}))
        except SandboxUnavailableError as error:
            problems.append(str(error))
    raise SandboxUnavailableError(
        f"The image {config.image!r} is not a directory on this machine, so it must be the image of a container. But "
        f"no container engine works. {' '.join(problems)}"
    )


# ── isolated Python ──────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def open_isolated_python(config: SandboxConfig, *, concurrency: int) -> AsyncIterator[IsolatedPython]:
    """What a reward that names `isolated_python` is handed; closed in the end."""
    sandbox = SandboxOnDemand(config, concurrency=concurrency, loop=asyncio.get_running_loop())
    python: IsolatedPython | None = None
    try:
        python = await choose_isolated_python(config, sandbox)
        yield python
    finally:
        if python is not None:
            await python.close()
        await sandbox.close()


async def try_backend(config: SandboxConfig) -> str | None:
    """Open a sandbox and close it, where the settings name what makes it; its name. What cannot work is said here.

    Where they name nothing, the first who needs one finds out what works: it may be zygotes alone.
    """
    if _zygotes_will_do(config):
        return None if config.backend == AUTO else config.backend
    async with open_sandboxes(config, concurrency=1) as sandboxes:
        return sandboxes.backend


def _zygotes_will_do(config: SandboxConfig) -> bool:
    """Whether the settings ask for no more than zygotes give: they have no image and no network."""
    return config.backend in (AUTO, "namespaces") and config.image is None and not config.network


async def choose_isolated_python(config: SandboxConfig, sandbox: OpenSandbox) -> IsolatedPython:
    """Zygotes where the settings ask for no more than they give, and they work here; else commands in a sandbox."""
    from reward_kit.sandbox.python.by_commands import PythonByCommands
    from reward_kit.sandbox.python.pool import PythonZygote

    if _zygotes_will_do(config):
        zygotes = PythonZygote()
        try:
            await zygotes.start_one()
            return zygotes
        except SandboxError as error:
            await zygotes.close()
            if error.retryable or config.backend == "namespaces":
                raise
    return PythonByCommands(lambda limits: sandbox(limits=limits), loop=sandbox.loop)
