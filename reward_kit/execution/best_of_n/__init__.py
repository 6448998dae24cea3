# SPDX-License-Identifier: Apache-2.0
"""Best-of-N: n candidates for each query of each split, verified, as one Parquet file.

    experiment ─▶ one run of the one pipeline ══▶ rollouts.jsonl, results.jsonl ──▶ Parquet
                  the verifier depends on the split     baseline_run.run/            baseline_run.parquet

The run directory stands beside the Parquet and is what survives a crash; the Parquet is made from it, whole, in the
end. An experiment that is run again does what is missing, and writes the Parquet anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reward_kit._version import __version__
from reward_kit.errors import StorageError
from reward_kit.execution.best_of_n.experiment import ExperimentConfig
from reward_kit.execution.engine import Reporter
from reward_kit.execution.parts.mirroring import copy_beside
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.plan import Plan
from reward_kit.execution.result import Phase, RunResult
from reward_kit.execution.run_summary import beside_the_cost
from reward_kit.execution.vocabulary import Vocabulary
from reward_kit.generation.client import ModelClient
from reward_kit.redaction import blot
from reward_kit.storage.best_of_n_tables import (
    SCHEMA_VERSION,
    experiment_row,
    read_metadata,
    refuse_damaged_parquet,
    require_parquet,
    write_parquet,
)
from reward_kit.storage.journal import Journal
from reward_kit.storage.run_directory import ROLLOUTS, RunDirectory, digest_of, set_run_aside
from reward_kit.utils import exact_json

__all__ = ["BestOfN", "ExperimentResult"]

_VOCABULARY = Vocabulary(result_row=experiment_row)


@dataclass(frozen=True)
class ExperimentResult:
    """The end of an experiment."""

    run: RunResult
    parquet: Path | None
    """The table; None where the experiment was interrupted before there was one, or only generated."""


class BestOfN:
    """One experiment. Run it as often as you like: it only does what is missing.

    result = BestOfN(load_experiment({"model": "local", "dataset": "data.jsonl", "splits": "math", …})).run()
    """

    def __init__(
        self, experiment: ExperimentConfig, *, config_file: str | None = None, client: ModelClient | None = None
    ) -> None:
        """Say what to do; `client` stands in for the model that the experiment names."""
        self.experiment = experiment
        self._config_file = config_file
        self._client = client
        self._config = experiment.pipeline_config()

    def plan(self) -> dict[str, Plan]:
        """What each split would take and cost, without calling anyone and without writing anything."""
        plans = {}
        for split in self.experiment.splits:
            plan = self._pipeline(samples=self.experiment.samples((split,))).plan()
            if self.experiment.response_column is None:
                owed = plan.answers_to_generate + plan.cached
                plan.rollouts = plan.rows * self.experiment.run.generation.n
            else:
                owed = plan.rollouts - plan.on_disk
                plan.rollouts = sum(1 for _ in self.experiment.samples((split,)))
                plan.cost = 0.0
            plan.on_disk = plan.rollouts - owed
            plans[split] = plan
        return plans

    def run(
        self,
        reporter: Reporter | None = None,
        *,
        phase: Phase = "both",
        overwrite: bool = False,
        rescore: bool = False,
        retry_failed: bool = False,
        keep_going: bool = False,
        resume_from_mirror: bool = False,
        detach: bool = False,
    ) -> ExperimentResult:
        """Generate, verify, and write the Parquet; or only one of the two, where a `phase` is named.

        `overwrite` begins anew where another experiment's table is. `resume_from_mirror` goes on with the experiment
        that the `mirror` holds. With `detach`, batches are not waited for.
        """
        require_parquet(self.experiment.parquet)
        if overwrite:
            set_run_aside(self.experiment.run_directory)
        else:
            self._refuse_others_output()
        samples = None if phase == "execution" else self.experiment.samples()
        if samples is not None and not rescore and not (self.experiment.run_directory / ROLLOUTS).exists():
            samples.check()
        result = self._pipeline(
            samples=samples, reporter=reporter, phase=phase, rescore=rescore, retry_failed=retry_failed,
            keep_going=keep_going, resume_from_mirror=resume_from_mirror, detach=detach,
        ).run()  # fmt: skip
        if result.status in {"interrupted", "detached"} or phase == "inference":
            return ExperimentResult(result, None)
        self._write(result)
        missing = result.not_mirrored or copy_beside(self._config.output, self.experiment.parquet)
        return ExperimentResult(replace(result, not_mirrored=missing), self.experiment.parquet)

    def _pipeline(self, **options: Any) -> EvaluationPipeline:
        return EvaluationPipeline(self._config, client=self._client, vocabulary=_VOCABULARY, **options)

    # -- the output

    def _refuse_others_output(self) -> None:
        """Leave a table alone that was not made from this experiment's run directory."""
        path = self.experiment.parquet
        if not path.exists():
            return
        ours = _run_id(RunDirectory.seen_from_outside(self.experiment.run_directory))
        known = read_metadata(path)
        if ours is None or known is None or _run_in_metadata(known).get("id") != ours:
            raise StorageError(
                f"{str(path)!r} exists and was not made by this experiment. "
                "Choose another --output, or replace it with --overwrite."
            )

    def _write(self, result: RunResult) -> None:
        with RunDirectory(result.output_dir) as directory:
            metadata = self._metadata(directory, result)
            path = self.experiment.parquet
            if _is_newer(path, directory.results_path) and read_metadata(path) == metadata:
                refuse_damaged_parquet(path, pages=True)
                return
            with Journal(directory.results_path, read_only=True) as results:
                write_parquet(results.lines(), path, metadata, self.experiment.verification, results.samples)

    def _metadata(self, directory: RunDirectory, result: RunResult) -> dict[str, str]:
        """What is needed to know what the table holds, and to make it again."""
        experiment, run = self.experiment, self.experiment.run
        claims = RunDirectory.claims_of(directory.path)
        digests = {which: claim["digest"] for which, claim in claims.items()}
        results = claims.get("results", {})
        judging = {"judging": since} if (since := results.get("since")) else {}
        judged_by = {"judged_by": settings} if (settings := results.get("settings")) else {}
        size = directory.results_path.stat().st_size
        drawn = map(int, result.summary.get("pass_at_k") or ["0"])
        facts: dict[str, Any] = {
            "generated_at": directory.made_by.get("created"),
            "model": run.generation.model_name,
            "num_candidates": max(0 if experiment.response_column else run.generation.n, *drawn),
            "temperature": run.generation.temperature,
            "splits": ",".join(experiment.splits),
            "total_records": result.summary.get("records"),
            "config_file": self._config_file,
            "notes": experiment.notes,
            "dataset": run.dataset and run.dataset.path_or_name,
            "max_queries": experiment.max_queries,
            "max_tokens": run.generation.max_tokens,
            "cost": result.summary.get("cost"),
            **beside_the_cost(result.summary),
            "complete": result.status == "finished",
            "verifiers": {split: verifier.name for split, verifier in experiment.verifier_of.items()},
            "config": experiment.as_written(),
            "run": {"id": _run_id(directory), "digests": digests, "bytes": size, **judging, **judged_by},
            "made_by": directory.made_by,
            "reward_kit_version": __version__,
            "schema_version": SCHEMA_VERSION,
        }
        return {name: blot(_metadata_text(value)) for name, value in facts.items()}


def _is_newer(path: Path, than: Path) -> bool:
    """Whether the file is there, and nothing was written to the other one since: its size alone may stay the same."""
    return path.exists() and path.stat().st_mtime_ns >= than.stat().st_mtime_ns


def _metadata_text(value: Any) -> str:
    """A value as the text that Parquet metadata holds. What is not known is empty: every key is there."""
    if value is None:
        return ""
    return value if isinstance(value, str) else exact_json.dumps(value).decode()


def _run_in_metadata(metadata: dict[str, str]) -> dict[str, Any]:
    """What a table says of the run it was made from."""
    try:
        run = exact_json.loads(metadata.get("run", "{}"))
    except ValueError:
        return {}
    return run if isinstance(run, dict) else {}


def _run_id(directory: RunDirectory) -> str | None:
    """Tells run directories apart; None where there is none yet."""
    created = directory.made_by
    return digest_of(created) if created else None
