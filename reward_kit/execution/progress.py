# SPDX-License-Identifier: Apache-2.0
"""Progress of a run in one line, and who shows it where there is no command: a terminal, a log or a notebook."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from reward_kit.http.retry import requests_held_up

if TYPE_CHECKING:
    from reward_kit.execution.counters import BatchWatch, RunCounters

__all__ = ["LineReporter", "NotebookReporter", "facts", "in_notebook", "of_expected", "progress_line", "stages"]

_LOG_SECONDS = 5.0
"""How often a line is printed when nobody watches a terminal."""
_LIVE_SECONDS = 0.2


def progress_line(counters: RunCounters) -> str:
    """The run's state in one line."""
    parts = [f"{stage} {done}{of_expected(counters.expected)}" for stage, done in stages(counters)]
    return " · ".join([*parts, *facts(counters)])


def stages(counters: RunCounters) -> list[tuple[str, int]]:
    """The stages of the run's phase, and how many answers each has dealt with."""
    found = []
    if counters.phase != "execution":
        found.append(("generated", counters.found_rollouts + counters.generated))
    if counters.phase != "inference":
        found.append(("scored", counters.found_results + counters.scored))
    return found


def facts(counters: RunCounters) -> list[str]:
    """Rates, costs, failures, the mean so far, and the time that is left; of batches, while they are waited for."""
    watch = counters.batches
    return _of_stages(counters) if watch is None else _of_batches(watch, counters.stopping)


def _of_stages(counters: RunCounters) -> list[str]:
    seconds = max(counters.seconds, 1e-9)
    done = counters.generated if counters.phase == "inference" else counters.scored
    found = [f"{done / seconds:.1f}/s"]
    if (episodes := counters.episodes) is not None:
        found.append(f"{episodes.in_flight} episodes in flight, {episodes.turns} turns")
        if episodes.tool_errors:
            found.append(f"{episodes.tool_errors} of {episodes.tool_calls} tool calls failed")
    if counters.completion_tokens:
        found.append(f"{counters.completion_tokens / seconds:.0f} tokens/s")
    if counters.cached:
        found.append(f"{counters.cached} cached")
    if counters.cost:
        found.append(f"cost {counters.cost:.4f}")
    if counters.judged:
        found.append(f"mean {counters.score_sum / counters.judged:.3f}")
    found += _troubles(counters)
    if counters.stopping:
        found.append("stopping: finishing what is in flight")
    elif (left := _time_left(counters, done / seconds)) is not None:
        found.append(f"{left} left")
    return found


def _of_batches(watch: BatchWatch, stopping: str | None) -> list[str]:
    found = [watch.doing]
    if watch.files:
        found.append(f"{watch.ended} of {watch.files} batches ended")
        found.append(f"{watch.answered:,} of {watch.requests:,} requests answered")
    if watch.failed:
        found.append(f"{watch.failed:,} failed")
    if stopping:
        found.append("stopping")
    elif (left := watch.seconds_left) is not None:
        found.append(f"{_clock(left)} left")
    return found


def _troubles(counters: RunCounters) -> list[str]:
    """What failed, who is busy, and a mirror that does not keep up."""
    failed = max(counters.failed, counters.generation_failures)
    busy = [
        f"{waiting} requests wait, the endpoint is busy: set {setting}"
        for setting, waiting in requests_held_up().items()
    ]
    lag = None if counters.mirror is None else counters.mirror.lag()
    return [*([f"{failed} failed"] if failed else []), *busy, *([lag] if lag is not None else [])]


def of_expected(expected: int | None) -> str:
    """`/100`, or nothing where nobody knows how many there will be."""
    return f"/{expected}" if expected is not None else ""


def _time_left(counters: RunCounters, rate: float) -> str | None:
    if counters.expected is None or rate <= 0:
        return None
    _, done = stages(counters)[-1]
    return _clock(max(0, counters.expected - done) / rate)


def _clock(duration: float) -> str:
    minutes, seconds = divmod(int(duration), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class LineReporter:
    """Progress on standard error: one line that is rewritten on a terminal, a line now and then in a log."""

    async def watch(self, counters: RunCounters) -> None:
        """Show the counters until cancelled, and then a last time."""
        live = sys.stderr.isatty()
        try:
            while True:
                if live:
                    self._write(counters, "\r", "")
                await asyncio.sleep(_LIVE_SECONDS if live else _LOG_SECONDS)
                if not live:
                    self._write(counters, "", "\n")
        finally:
            self._write(counters, "\r" if live else "", "\n")

    def _write(self, counters: RunCounters, before: str, after: str) -> None:
        erase = "\x1b[K" if before else ""
        sys.stderr.write(f"{before}{progress_line(counters)}{erase}{after}")
        sys.stderr.flush()


class NotebookReporter:
    """Progress as a line under the cell, which is replaced as the run goes on."""

    def __init__(self) -> None:
        """Take a place under the cell that runs now: the run itself may be in another thread."""
        from IPython.display import display

        self._place: Any = display({"text/plain": "…"}, raw=True, display_id=True)

    async def watch(self, counters: RunCounters) -> None:
        """Show the counters until cancelled, and then a last time."""
        try:
            while True:
                self._show(counters)
                await asyncio.sleep(_LIVE_SECONDS)
        finally:
            self._show(counters)

    def _show(self, counters: RunCounters) -> None:
        self._place.update({"text/plain": progress_line(counters)}, raw=True)


def in_notebook() -> bool:
    """Whether this code runs in a notebook: in IPython, with a kernel behind it. Nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
