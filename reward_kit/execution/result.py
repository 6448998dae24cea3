"""What a run hands back: how it ended, its figures, and where its files are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from reward_kit.execution.counters import RunCounters
from reward_kit.storage.journal import Journal

__all__ = ["Phase", "RunResult", "RunStatus"]

Phase = Literal["both", "inference", "execution"]
"""Generate and score; only generate; only score what was generated before."""

RunStatus = Literal["finished", "stopped", "interrupted"]
"""All is done; `max_cost` was reached; someone asked it to stop. The last two go on when the run is entered again."""


@dataclass(frozen=True)
class RunResult:
    """The end of a run."""

    status: RunStatus
    output_dir: Path
    summary: dict[str, Any]
    """What `summary.json` holds."""
    counters: RunCounters = field(repr=False)
    """What was done since the run was entered this time."""
    reason: str | None = None
    """Why the run ended early, where it did."""

    @property
    def rollouts_path(self) -> Path:
        """The generated answers, one JSON line each."""
        return self.output_dir / "rollouts.jsonl"

    @property
    def results_path(self) -> Path:
        """The judged answers, one JSON line each."""
        return self.output_dir / "results.jsonl"

    @property
    def judged(self) -> int:
        """How many answers were judged, in all."""
        return int(self.summary.get("judged", 0))

    @property
    def failed(self) -> int:
        """How many answers could not be had or not be judged."""
        return int(self.summary.get("failed", 0))

    @property
    def mean_score(self) -> float | None:
        """The mean score over judged answers; its interval is in `summary`."""
        mean = self.summary.get("mean_score")
        return None if mean is None else float(mean["value"])

    def rows(self) -> Iterator[dict[str, Any]]:
        """The result rows, one an answer and in dataset order, also where the run was interrupted."""
        with Journal(self.results_path, read_only=True) as results:
            yield from map(orjson.loads, results.in_order())
