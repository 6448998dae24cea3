# SPDX-License-Identifier: Apache-2.0
"""A run whose answers come by batches: had before the stages, and found there where a model would be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_kit.errors import ConfigError
from reward_kit.execution.engine import End
from reward_kit.execution.options import RunInputs
from reward_kit.execution.parts.part import Entry, Part
from reward_kit.execution.run_identity import rollouts_settings
from reward_kit.storage.batch_journal import BatchJournal
from reward_kit.storage.run_directory import RunDirectory, digest_of

if TYPE_CHECKING:
    from reward_kit.execution.batches import BatchStage

__all__ = ["ByBatches"]


class ByBatches(Part):
    """For a run with `generation.transport=batch`; any other is kept from paying for what batches will bring."""

    def __init__(self, inputs: RunInputs) -> None:
        """Refuse what cannot be had by batches."""
        super().__init__(inputs)
        generation = self.config.generation
        self._wanted = generation.transport == "batch"
        self._stage: BatchStage | None = None
        if not (self._wanted and generation.enabled) or inputs.phase == "execution":
            return
        if self.options.client is not None:
            raise ConfigError(
                "A client of your own cannot be used with batches. Leave `generation.transport=batch` out, or the "
                "client."
            )
        from reward_kit.generation.batch.choose import batch_model  # here: most runs have no batches

        batch_model(generation)

    async def before(self, entry: Entry) -> End | None:
        """Have all answers on this disk; how the run ends for now where they are not."""
        self._stage = None
        if not entry.workload.needs_model:
            return None
        if not self._wanted:
            _refuse_to_pay_twice(entry.directory)
            return None
        from reward_kit.execution.batches import open_batches  # here: most runs have no batches

        settings = digest_of(rollouts_settings(self.config))
        opening = open_batches(
            self.config, entry.directory, settings, entry.counters, entry.money.budget, entry.hold
        )  # fmt: skip
        self._stage = stage = await entry.connections.enter_async_context(opening)
        watch = None if self.options.reporter is None else self.options.reporter.watch
        not_yet = await stage.bring(entry.workload, entry.ledger, detach=self.options.detach, watch=watch)
        if not_yet is not None:
            return End("interrupted" if not_yet.is_interrupted else "detached", not_yet.reason)
        entry.models, entry.works = stage.models(entry.ledger.known), stage.only_answered(entry.works)
        return None

    def after(self, entry: Entry, end: End) -> End:
        """Let the files of batches go whose answers are all in the rollouts; how the run ends where some had none."""
        if self._stage is None or end.status != "finished":
            return end
        entry.rollouts.sync()  # before the files go that could have made them again
        self._stage.absorbed()
        return end if self._stage.why_left is None else End("stopped", self._stage.why_left)


def _refuse_to_pay_twice(directory: RunDirectory) -> None:
    """Stop where batches are under way whose answers would be asked for a second time, online."""
    with BatchJournal(directory.batches_path, read_only=True) as batches:
        under_way = batches.under_way
    if under_way:
        requests = sum(part.requests for part in under_way)
        raise ConfigError(
            f"Batches of {requests:,} requests of this run are running at the provider, and would be paid for twice. "
            "Fetch them with `generation.transport=batch`, or give them up with `reward-kit batches cancel` and "
            "`batches forget`."
        )
