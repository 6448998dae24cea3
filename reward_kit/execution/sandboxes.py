"""The sandboxes of a run: what a reward that names `sandbox` is handed.

    async with sandbox(setup=["mkdir work", "cd work"]) as box:
        done = await box.run("touch here")

Each is fresh, is made the way the run's `sandbox` settings say, and is gone when the block ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from reward_kit.config_models import SandboxConfig
from reward_kit.errors import SandboxError, SandboxUnavailableError
from reward_kit.sandbox.choose import choose_backend
from reward_kit.sandbox.contract import Limits, Sandbox, SandboxBackend, SandboxSpec
from reward_kit.sandbox.pool import SandboxPool
from reward_kit.sandbox_backends import AUTO, BACKENDS, row_of

__all__ = ["Sandboxes", "open_sandboxes", "sandboxes_at_a_time"]

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
    async with contextlib.AsyncExitStack() as stack:
        backend = await _working_backend(config)
        warm = min(concurrency, _STARTED_AHEAD) if row_of(backend.name).is_slow_to_open else 0
        pool = SandboxPool(backend, size=concurrency * _EACH, warm=warm)
        stack.push_async_callback(pool.close)
        sandboxes = Sandboxes(pool, config)
        await sandboxes.try_one()
        yield sandboxes


class Sandboxes:
    """Opens sandboxes for a reward, and stops the run when the first ones all fail."""

    def __init__(self, backend: SandboxBackend, config: SandboxConfig) -> None:
        """Open with `backend`, within the bounds of `config`."""
        self.backend = backend.name
        """How they are made."""
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
    ) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh sandbox with its set-up done and its files written."""
        return self._one(
            SandboxSpec(
                image=self._config.image,
                setup=tuple(setup),
                setup_join=self._config.setup_join,
                files=files or {},
                environment=environment or {},
                workdir=workdir,
                limits=self._limits,
                network=self._config.network,
            )
        )

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
        """Count failures of the machinery until something works. A wrong set-up, which will not mend, is not one."""
        self._failed += error.retryable
        if not self._worked and self._failed >= _FIRST:
            raise SandboxUnavailableError(
                f"The first {self._failed} sandboxes all failed, the last one so: {error} "
                "Nothing is lost: mend it, then run the same command again."
            ) from error


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
        f"The image {config.image!r} is no directory here, so it must be a container's; but no container engine works. "
        f"{' '.join(problems)}"
    )
