# SPDX-License-Identifier: Apache-2.0
"""A bench on which runs are entered and killed: one endpoint for all points of a test."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.generation.loopback import Reaction
from tests.loopback.endpoint import serving
from tests.loopback.runs import config
from tests.loopback.zygote import Zygote

__all__ = ["KILLED", "KillingBench"]

KILLED = -signal.SIGKILL


class KillingBench:
    """Runs in `home` against an endpoint that says what `says` makes of a request."""

    def __init__(self, home: Path, says: Callable[[dict[str, Any], int], Reaction]) -> None:
        self.home = home
        self._says = says
        self._kill_at_request = self._pid = 0
        self._held = ExitStack()

    def __enter__(self) -> Self:
        self.endpoint = self._held.enter_context(serving(self._react))
        self.processes = Zygote()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def run_settings(self, run: str, *, n: int, at_once: int, cache: bool, **others: Any) -> dict[str, Any]:
        """The settings of a run that sends each draw in a request of its own."""
        return config(
            self.home,
            self.endpoint.api_base,
            output__output_dir=str(self.home / run),
            generation__n=n,
            generation__n_mode="fanout",
            generation__api_params={"max_concurrent_requests": at_once},
            generation__cache={"enabled": cache, "cache_dir": str(self.home / f"cache-{run}")},
            **others,
        )

    def enter(self, settings: dict[str, Any], die_at: dict[str, int] | None = None, phase: str = "both") -> int:
        """Enter the run once; how that ended."""
        return self.enter_job({"config": settings, "phase": phase}, die_at or {})

    def enter_job(self, job: Mapping[str, Any], die_at: dict[str, int]) -> int:
        """The same of any job that a zygote knows."""
        self._kill_at_request = die_at.get("request", 0)
        self._pid = self.processes.start(**job, die_at=die_at)
        status = self.processes.wait()
        self._kill_at_request = 0
        return status

    def asked(self) -> list[dict[str, Any]]:
        """The requests since the last time this was asked."""
        requests = [*self.endpoint.requests]
        self.endpoint.requests.clear()
        return requests

    def _react(self, body: dict[str, Any], number: int) -> Reaction:
        if self._kill_at_request:
            self._kill_at_request -= 1
            if not self._kill_at_request:
                os.kill(self._pid, signal.SIGKILL)
        return self._says(body, number)
