# SPDX-License-Identifier: Apache-2.0
"""Whether Ray works here: `reward-kit doctor` has a cluster started, or attached to, and asks an actor of it.

In a process of its own, so that a Ray that hangs can be ended.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

from reward_kit.errors import RewardKitError
from reward_kit.workers.host import Host
from reward_kit.workers.outcomes import Died, Done, Raised, TimedOut

__all__ = ["Probed", "probe_ray"]

_PATIENCE_SECONDS = 120.0


class Probed(NamedTuple):
    """What became of the attempt."""

    works: bool
    detail: str


def probe_ray() -> Probed:
    """Try Ray: the cluster that RAY_ADDRESS names, else one started for this."""
    with Host(_prober, name="probe of Ray", output=subprocess.DEVNULL) as host:
        match host.call(within=_PATIENCE_SECONDS):
            case Done(value=probed):
                return Probed(*probed)
            case Raised(type=kind, message=message):
                return Probed(False, f"{kind}: {message}"[:300])
            case Died(reason=why):
                return Probed(False, f"its process {why}")
            case TimedOut(seconds=seconds):
                return Probed(False, f"no actor answered within {seconds:.0f} s")


def _prober() -> Callable[[], Probed]:
    return _attempt


def _attempt() -> Probed:
    from reward_kit.config_models import EngineConfig
    from reward_kit.execution.ray_engine.cluster import load_ray, open_cluster

    start = time.monotonic()
    try:
        with open_cluster(EngineConfig(name="ray"), with_code=False) as cluster:
            answered = cluster.try_an_actor()
            nodes = cluster.nodes
    except RewardKitError as error:
        return Probed(False, str(error))
    where = f"the cluster at {address}" if (address := os.environ.get("RAY_ADDRESS")) else "a Ray of its own"
    seconds = time.monotonic() - start
    detail = f"Ray {load_ray().__version__}: an actor on {where} ({nodes} nodes) answered after {seconds:.0f} s"
    return Probed(answered, detail)
