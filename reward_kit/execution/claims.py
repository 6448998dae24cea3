# SPDX-License-Identifier: Apache-2.0
"""What the files of a run depend on, held against the directory that has some already.

nothing there                        it is claimed
made with the same settings          the run goes on; where nothing is owed and nothing was touched, it is finished
made with others, and worth nothing  set aside
made with others                     refused, or, with `rescore`, judged again
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from reward_kit.config_models import RewardConfig
from reward_kit.errors import StorageError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.options import RunInputs
from reward_kit.execution.owed import Workload
from reward_kit.execution.result import RunResult
from reward_kit.execution.run_identity import reading_of, results_settings, rollouts_settings
from reward_kit.execution.run_summary import RunSummary
from reward_kit.scoring.rewards import Reward, Rewards
from reward_kit.storage.run_directory import ROLLOUTS, Claim, RunDirectory, digest_of, free_place, other_files
from reward_kit.storage.samples import SAMPLES

__all__ = ["Claims", "holds_former_ids", "keep_ids"]

_log = logging.getLogger(__name__)

_OTHER_DIRECTORY = "Choose another place with `output.output_dir=…`"
_OR_RESCORE = "Judge the old rollouts again with `rescore`, or choose another place with `output.output_dir=…`."
_IDS = "ids_are_hashes"
"""A fact of the manifest: what the id of a row is made of that has none of its own."""


class Claims:
    """What the rollouts and the results of one run depend on, and the data that they were made of."""

    def __init__(
        self, inputs: RunInputs, reward: Rewards | None, workload: Workload, others_rollouts: Path | None
    ) -> None:
        """`others_rollouts`: the file of rollouts that is judged and is not this run's own."""
        self._inputs = inputs
        self._config = config = inputs.config
        self._rescore = inputs.options.rescore
        self._named: Collection[tuple[str, Reward]] = () if reward is None else reward.named.items()
        self._rollouts = self._results = None
        if inputs.phase != "execution" or config.rollouts_file is not None:
            made_with = rollouts_settings(config, others_rollouts)
            self._rollouts = Claim("rollouts", digest_of(made_with), made_with, _OTHER_DIRECTORY)
        if reward is not None:
            made_with = results_settings(reward, config)
            self._results = Claim("results", digest_of(made_with), made_with, _OR_RESCORE)
        self.facts = {
            "n": len(config.draws),
            "limit": config.sample_limit,
            "source": workload.fingerprint,
            "reading": reading_of(config.dataset),
            "pass_threshold": _thresholds(config.reward),
        }
        """What decides, beside the digests, whether a finished run has anything left to do."""

    def bind(self, directory: RunDirectory) -> None:
        """Bind the directory to what its files depend on, or refuse it when they depend on something else."""
        if self._begins_anew(directory):
            directory.set_worthless_aside("rollouts")
        if self._rollouts is not None:
            directory.claim(self._rollouts)
        if self._results is not None:
            if self._rescore and not self._goes_on(directory):
                directory.set_results_aside()
            if self._refuse_other_files(directory):
                directory.set_worthless_aside("results")
            directory.claim(self._results)
        for split, each in self._named:
            each.opened.tell(partial(_note_opened, directory, split, each.opened.project.root))

    def for_plan(self) -> tuple[RunDirectory, bool]:
        """The directory as a plan is to see it, and whether all is judged anew; refuses what a run would refuse."""
        place = self._inputs.path
        directory = RunDirectory.seen_from_outside(place)
        if self._inputs.options.overwrite or self._begins_anew(directory):
            directory = RunDirectory.seen_from_outside(free_place(place))  # as if nothing were there
        anew = self._rescore and self._results is not None and not self._goes_on(directory)
        anew = anew or self._refuse_other_files(directory)
        for claim in (self._rollouts, None if anew else self._results):
            if claim is None or directory.is_bound(claim):
                continue
            if directory.is_claimed(claim.which):  # by something that is worth nothing, and is set aside
                anew = True
                if claim is self._rollouts:
                    directory = RunDirectory.seen_from_outside(free_place(place))
        return directory, anew

    def finished_before(self, directory: RunDirectory, sizes: Mapping[str, Any]) -> RunResult | None:
        """The result of a run that is finished, with nothing owed and its files untouched, without reading them."""
        last = directory.finished_entry(self._inputs.phase, self.facts)
        output, options = self._config.output, self._inputs.options
        wanted = output.results_file or output.preview_pairs_file or options.retry_failed
        if not self.facts["source"] or last.get("files") != sizes or wanted:
            return None
        summary = cast("RunSummary | None", directory.read_summary())
        if summary is None or summary.get("failed"):
            return None
        counters = RunCounters(self._inputs.phase, found_rollouts=int(summary.get("records", 0)))
        return RunResult("finished", directory.path, summary, counters)

    def has_every_answer(self, directory: RunDirectory, sizes: Mapping[str, Any]) -> bool:
        """Whether the last entry had every answer this one asks for, of a dataset and rollouts that are untouched.

        Then the dataset need not be read again to see what is owed.
        """
        files = directory.finished_entry(self._inputs.phase, self.facts).get("files") or {}
        untouched = files.get(ROLLOUTS) and all(files.get(name) == sizes.get(name) for name in (ROLLOUTS, SAMPLES))
        if not (untouched and self.facts["source"]) or self._inputs.options.retry_failed:
            return False
        summary = directory.read_summary() or {"skipped_rows": 1}
        return not (summary.get("not_asked_for") or summary.get("skipped_rows"))

    def _goes_on(self, directory: RunDirectory) -> bool:
        """Whether `rescore` goes on with a judging that was cut off: nothing that it depends on has changed."""
        same = self._results is not None and directory.was_cut_off_judging(self._results)
        return same and not self._other_files(directory)

    def _begins_anew(self, directory: RunDirectory) -> bool:
        """Whether the data were changed, or are read in another way, since an attempt that is worth nothing."""
        last = directory.phases[-1] if directory.phases else self.facts
        other_data = any(last.get(name) != self.facts[name] for name in ("source", "reading"))
        return self._inputs.phase != "execution" and other_data and directory.is_worthless("rollouts")

    def _other_files(self, directory: RunDirectory) -> list[str]:
        """The files that a reward opened when it judged, and that are no longer what they were."""
        return [
            name
            for split, each in self._named
            for name, digest in directory.opened.get(split, {}).items()
            if digest is not None and each.opened.project.digest(name) != digest
        ]

    def _refuse_other_files(self, directory: RunDirectory) -> bool:
        """Refuse results that depend on files which have changed since. True where they are worth nothing anyway."""
        files = self._other_files(directory)
        if files and not directory.is_worthless("results"):
            raise StorageError(other_files(directory.path, files, _OR_RESCORE))
        return bool(files)


def holds_former_ids(directory: RunDirectory) -> bool:
    """Whether rows without an id were named after all their columns here, as they once were."""
    rollouts = directory.rollouts_path
    return directory.noted(_IDS) is None and rollouts.exists() and rollouts.stat().st_size > 0


def keep_ids(directory: RunDirectory, workload: Workload) -> None:
    """Have rows without an id named as they are in this directory."""
    if holds_former_ids(directory):
        workload.keep_former_ids()
    else:
        directory.note(_IDS, "without the ground truth")


def _note_opened(directory: RunDirectory, split: str, root: Path, opened: Mapping[str, str | None]) -> None:
    """Keep what a reward opened, as it was first; the run directory and the table beside it are our own."""
    inside = directory.path.resolve()
    files = {name: digest for name, digest in opened.items() if not _is_ours((root / name).resolve(), inside)}
    known = directory.opened.get(split, {})
    for name, digest in files.items():
        if digest is not None and known.get(name, digest) not in (digest, None):
            _log.warning(
                "%r has changed while the run judged with it. To judge all answers alike, run again with `rescore`.",
                name,
            )
    if files:
        directory.note_opened(split, files)


def _is_ours(file: Path, directory: Path) -> bool:
    table = directory.with_suffix(".parquet") if directory.suffix == ".run" else None
    return directory in file.parents or file == table


def _thresholds(reward: RewardConfig) -> float | dict[str, float]:
    whole = reward.pass_threshold
    named = {split: part.pass_threshold for split, part in reward.by_split.items()}
    return {"": whole, **named} if named else whole
