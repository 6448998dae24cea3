# SPDX-License-Identifier: Apache-2.0
"""Which backend is used: the one that is asked for, or the first that a self-test finds working."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Mapping
from functools import partial

from reward_kit.config_models import SandboxConfig
from reward_kit.errors import MissingExtraError, SandboxUnavailableError
from reward_kit.sandbox.contract import Probe, SandboxBackend
from reward_kit.sandbox_backends import AUTO, BACKENDS

_log = logging.getLogger(__name__)

__all__ = ["backends", "choose_backend", "probe_all"]


def backends() -> Mapping[str, Callable[[SandboxConfig], SandboxBackend]]:
    """Every backend by its name, made from a run's settings. Making one starts nothing."""
    return {name: partial(_make, row.make) for name, row in BACKENDS.items()}


def _make(path: str, config: SandboxConfig) -> SandboxBackend:
    """Import the function at `path`, as the table of backends writes it, and call it."""
    module, _, function = path.partition(":")
    made: SandboxBackend = vars(importlib.import_module(f"reward_kit.sandbox.{module}"))[function](config)
    return made


async def choose_backend(choice: str | SandboxConfig = AUTO) -> SandboxBackend:
    """The backend that is asked for, tried; for `auto`, the first that works. The caller closes it.

    Where none works, the error says for each why, and what to do.
    """
    config = choice if isinstance(choice, SandboxConfig) else SandboxConfig.model_validate({"backend": choice})
    automatic = [name for name, row in BACKENDS.items() if not row.only_by_name]
    names = automatic if config.backend == AUTO else [config.backend]
    problems = []
    for name in names:
        backend, probe = await _tried(name, config)
        if backend is not None and probe.works:
            if not BACKENDS[name].isolates:
                _log.warning("The sandbox backend %r isolates nothing: commands run as you, on your files.", name)
            return backend
        problems.append(f"{name}: {probe.detail.rstrip('.')}. {probe.advice}".strip())
    if len(names) == 1:
        raise SandboxUnavailableError(f"The sandbox backend {config.backend!r} does not work here. {problems[0]}")
    reasons = "\n".join(f"  - {problem}" for problem in problems)
    others = "; ".join(f"{name!r} ({row.only_by_name})" for name, row in BACKENDS.items() if row.only_by_name)
    raise SandboxUnavailableError(
        f"No sandbox backend works here:\n{reasons}\nSolve one of these problems, or choose another backend by name: "
        f"{others}."
    )


async def _tried(name: str, config: SandboxConfig) -> tuple[SandboxBackend | None, Probe]:
    """A backend and what its self-test found; where it does not work, it is closed again."""
    try:
        backend = backends()[name](config)
    except MissingExtraError as error:
        return None, Probe(False, str(error))
    try:
        probe = await backend.probe()
    except MissingExtraError as error:
        probe = Probe(False, str(error))
    if not probe.works:
        await backend.close()
    return backend, probe


async def probe_all(config: SandboxConfig | None = None) -> dict[str, Probe]:
    """What every backend's self-test finds here, by name."""
    settings = config or SandboxConfig()

    async def one(name: str) -> Probe:
        backend, probe = await _tried(name, settings)
        if backend is not None and probe.works:
            await backend.close()
        return probe

    found = await asyncio.gather(*map(one, backends()))
    return dict(zip(backends(), found, strict=True))
