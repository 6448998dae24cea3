# SPDX-License-Identifier: Apache-2.0
"""The shape of a part of a run, and what it finds when it is its turn.

Part(inputs) ─▶ check ─▶ prepare ─▶ enter ─▶ before ─▶ the stages ─▶ after ─▶ leave
                                      └──────── the run directory is ours ────────┘
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from reward_kit.execution.counters import RunCounters
from reward_kit.execution.engine import End
from reward_kit.execution.money import Money
from reward_kit.execution.options import RunInputs
from reward_kit.execution.owed import Ledger, Work, Workload
from reward_kit.execution.result import RunResult
from reward_kit.generation.stack import ModelStack
from reward_kit.storage.journal import Journal
from reward_kit.storage.run_directory import RunDirectory
from reward_kit.storage.turn_journal import TurnJournal

__all__ = ["Entry", "Part"]


async def _nothing() -> None:
    """There is no copy to wait for."""


@dataclass
class Entry:
    """A run that was entered: its journals are open, and what is owed is known. Parts give the stages what they have.

    What they leave out, the engine opens as the config says.
    """

    directory: RunDirectory
    rollouts: Journal
    ledger: Ledger
    workload: Workload
    counters: RunCounters
    money: Money
    files: AsyncExitStack
    """Closed when the run is left."""
    connections: AsyncExitStack
    """Closed when the stages have ended."""
    works: Iterator[Work]
    """What the stages will work through."""
    models: ModelStack | None = None
    """What the generate stage plays with."""
    turns: TurnJournal | None = None
    """Where the turns of episodes are kept."""
    keep: list[Callable[[], None]] = field(default_factory=list)
    """Called now and then, to put down what no journal holds."""
    hold: Callable[[], Awaitable[None]] = _nothing
    """Comes back when all that was written is safe wherever the run is kept."""


class Part:
    """Something that a run can do and need not. Each step does nothing, unless a part says otherwise.

    It stands in a file of its own in `parts/`, and in the table there; nobody else knows it.
    """

    def __init__(self, inputs: RunInputs) -> None:
        """Take the inputs of the run. What cannot be is refused here, before anything else."""
        self.inputs = inputs
        self.config = inputs.config
        self.options = inputs.options

    def check(self, *, planning: bool) -> None:
        """Refuse what cannot be right while nothing is on disk yet; `planning`, or before a run."""

    async def prepare(self) -> None:
        """Before the run directory is looked at."""

    async def enter(self, directory: RunDirectory) -> None:
        """The run directory is ours, and nothing was written to it yet."""

    async def before(self, entry: Entry) -> End | None:
        """Before the stages, which do not begin where this says how the run ends for now."""

    def after(self, entry: Entry, end: End) -> End:
        """After stages that were not interrupted; how the run ends."""
        del entry
        return end

    async def leave(self, result: RunResult | None) -> RunResult | None:
        """Before the directory is another's again, in any case; without a `result`, something went wrong."""
        return result
