"""Which backend is used: the one that is asked for, or the first that a self-test finds working."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from reward_kit.config_models import SandboxConfig
from reward_kit.errors import ConfigError, MissingExtraError, SandboxUnavailableError
from reward_kit.sandbox.contract import Probe, SandboxBackend

_log = logging.getLogger(__name__)

__all__ = ["AUTOMATIC", "backends", "choose_backend", "probe_all"]

AUTOMATIC = ("namespaces", "docker", "podman")
"""What `auto` tries, in this order. `sos` needs an address and `none` isolates nothing: both only by name."""


def _namespaces(config: SandboxConfig) -> SandboxBackend:
    from reward_kit.sandbox.namespaces.backend import NamespacesBackend

    return NamespacesBackend() if config.snapshots else NamespacesBackend(snapshots=None)


def _docker(config: SandboxConfig) -> SandboxBackend:
    from reward_kit.sandbox.containers.backend import docker

    return docker()


def _podman(config: SandboxConfig) -> SandboxBackend:
    from reward_kit.sandbox.containers.backend import podman

    return podman()


def _sos(config: SandboxConfig) -> SandboxBackend:
    from reward_kit.sandbox.sos.client import SosBackend

    return SosBackend(config.sos_url, image=config.image or "")


def _none(config: SandboxConfig) -> SandboxBackend:
    from reward_kit.sandbox.local.unisolated import UnisolatedBackend

    return UnisolatedBackend()


def backends() -> Mapping[str, Callable[[SandboxConfig], SandboxBackend]]:
    """Every backend by its name, made from a run's settings. Making one starts nothing."""
    return {"namespaces": _namespaces, "docker": _docker, "podman": _podman, "sos": _sos, "none": _none}


async def choose_backend(choice: str | SandboxConfig = "auto") -> SandboxBackend:
    """The backend that is asked for, tried; for `auto`, the first that works. The caller closes it.

    Where none works, the error says for each why, and what to do.
    """
    config = choice if isinstance(choice, SandboxConfig) else SandboxConfig.model_validate({"backend": choice})
    names = AUTOMATIC if config.backend == "auto" else (config.backend,)
    problems = []
    for name in names:
        backend, probe = await _tried(name, config)
        if backend is not None and probe.works:
            if name == "none":
                _log.warning("The sandbox backend 'none' isolates nothing: commands run as you, on your files.")
            return backend
        problems.append(f"{name}: {probe.detail.rstrip('.')}. {probe.advice}".strip())
    if len(names) == 1:
        raise SandboxUnavailableError(f"The sandbox backend {config.backend!r} does not work here. {problems[0]}")
    reasons = "\n".join(f"  - {problem}" for problem in problems)
    raise SandboxUnavailableError(
        f"No sandbox backend works here:\n{reasons}\nMend one of them, name an SoS server (`sos`), or, for commands "
        "you would run yourself, ask for 'none' by name: it isolates nothing."
    )


async def _tried(name: str, config: SandboxConfig) -> tuple[SandboxBackend | None, Probe]:
    """A backend and what its self-test found; where it does not work, it is closed again."""
    make = backends().get(name)
    if make is None:
        raise ConfigError(f"No sandbox backend is called {name!r}. Choose one of {', '.join(backends())}, or 'auto'.")
    try:
        backend = make(config)
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
