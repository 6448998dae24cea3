# SPDX-License-Identifier: Apache-2.0
"""Whether Ray works here: `reward-kit doctor` has a cluster started, or attached to, and asks an actor of it.

In a process of its own, so that a Ray that hangs can be ended: python -m reward_kit.execution.ray_engine.probe
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import NamedTuple

from reward_kit.errors import RewardKitError

__all__ = ["Probed", "probe_ray"]

_PATIENCE_SECONDS = 120.0


class Probed(NamedTuple):
    """What became of the attempt."""

    works: bool
    detail: str


def probe_ray() -> Probed:
    """Try Ray: the cluster that RAY_ADDRESS names, else one started for this."""
    command = [sys.executable, "-m", "reward_kit.execution.ray_engine.probe"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            told, complaints = process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Probed(False, f"no actor answered within {_PATIENCE_SECONDS:.0f} s")
    try:
        return Probed(*json.loads(told.splitlines()[-1]))
    except (ValueError, IndexError, TypeError):
        return Probed(False, (complaints.strip().splitlines() or ["it ended without a word"])[-1][:300])


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


if __name__ == "__main__":
    print(json.dumps(_attempt()))
