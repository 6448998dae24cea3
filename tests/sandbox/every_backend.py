# SPDX-License-Identifier: Apache-2.0
"""Every backend that works here, opened for a test: what the contract suite runs over.

A backend is in the suite by being in `choose.backends()`; one that needs more than a name has an entry in `_SPECIAL`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import NamedTuple

import pytest

from reward_kit.config_models import SandboxConfig
from reward_kit.errors import RewardKitError
from reward_kit.sandbox.choose import backends
from reward_kit.sandbox.contract import Probe, SandboxBackend
from reward_kit.sandbox.linux.cgroups import find_hierarchy
from reward_kit.sandbox.namespaces.backend import NamespacesBackend
from reward_kit.sandbox_backends import BACKENDS

NAMES = tuple(backends())
ISOLATING = tuple(name for name in NAMES if BACKENDS[name].isolates)
TELLING_SIGNALS = frozenset({"namespaces", "sos", "none"})
"""Those that tell a command that a signal ended from one that exited with 128 and its number. bash does not, and in a
container it is bash who waits for commands."""
_PEAK_CAN_BE_RESET = (6, 12)
"""The first Linux where that is so under version 2 of control groups."""


class Measures(NamedTuple):
    """What the results of a backend tell of a command in the shell; None stands where they do not."""

    cpu: bool
    peak: bool


def measures_of(name: str) -> Measures:
    """What a backend must tell here: without a control group nobody counts, and `none` makes none."""
    if name == "none":
        return Measures(cpu=False, peak=False)
    if BACKENDS[name].runs_images:
        return Measures(cpu=True, peak=True)
    hierarchy = find_hierarchy()
    if hierarchy is None:
        return Measures(cpu=False, peak=False)
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    return Measures(cpu=True, peak=hierarchy.version == 1 or release >= _PEAK_CAN_BE_RESET)


@asynccontextmanager
async def _over_sos() -> AsyncIterator[SandboxBackend]:
    """Our own server over namespaces, and its client."""
    from reward_kit.sandbox.sos.client import SosBackend
    from reward_kit.sandbox.sos.server import serving

    behind = NamespacesBackend()
    async with serving(behind, token="between us", port=0) as url:
        backend = SosBackend(url, token="between us")
        yield backend
        await backend.close()
    await behind.close()


_SPECIAL: dict[str, Callable[[], AbstractAsyncContextManager[SandboxBackend]]] = {"sos": _over_sos}


@asynccontextmanager
async def _by_name(name: str) -> AsyncIterator[SandboxBackend]:
    backend = backends()[name](SandboxConfig())
    try:
        yield backend
    finally:
        await backend.close()


def _opened(name: str) -> AbstractAsyncContextManager[SandboxBackend]:
    return _SPECIAL[name]() if name in _SPECIAL else _by_name(name)


@cache
def _probe(name: str) -> Probe:
    async def probe() -> Probe:
        try:
            async with _opened(name) as backend:
                return await backend.probe()
        except RewardKitError as error:
            return Probe(False, str(error))

    return asyncio.run(probe())


@asynccontextmanager
async def opened(name: str) -> AsyncIterator[SandboxBackend]:
    """A backend of that name; the test is skipped where it does not work."""
    found = await asyncio.to_thread(_probe, name)
    if not found.works:
        pytest.skip(f"{name} does not work here: {found.detail}")
    async with _opened(name) as backend:
        yield backend
