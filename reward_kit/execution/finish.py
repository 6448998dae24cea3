# SPDX-License-Identifier: Apache-2.0
"""The end of a run: files put in dataset order, figures computed, copies made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reward_kit.config_models import PipelineConfig
from reward_kit.errors import ConfigError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.money import Money
from reward_kit.execution.totals import Totals
from reward_kit.execution.vocabulary import RUN, Vocabulary
from reward_kit.generation.cache.responses import Earlier
from reward_kit.generation.judge import JudgeUse
from reward_kit.storage.files import Draft
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_lines import Head
from reward_kit.storage.judged import JudgedAnswer
from reward_kit.storage.large_parts import whole_rows
from reward_kit.storage.projected_file import ProjectedFile
from reward_kit.storage.row_json import json_line
from reward_kit.storage.run_directory import OWN_FILES, RESULTS, RunDirectory
from reward_kit.storage.tables import preview_pair
from reward_kit.utils.checksums import CHECK, sealed_line
from reward_kit.utils.clock import moment

__all__ = ["check_copies", "finish", "interim_summary", "rollout_figures"]


def finish(  # noqa: PLR0913 - one parameter a part
    config: PipelineConfig, directory: RunDirectory, rollouts: Journal, results: Journal | None,
    counters: RunCounters, position_of: Callable[[Head], int], vocabulary: Vocabulary = RUN,
    beside: ProjectedFile | None = None, *, money: Money | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Compact the journals, write `summary.json` and the copies that were asked for; return the figures.

    `money` knows of what was spent beside the lines.
    """
    directory.samples.compact()
    if not rollouts.read_only:
        rollouts.compact(position_of)
    if beside is not None:
        beside.compact(rollouts)
    if results is None:
        figures = rollout_figures(rollouts)
    else:
        results.compact(position_of)
        figures = vocabulary.figures(results.rows_for_figures(), config.reward)
        _write_copies(config, results)
    figures |= _beyond_what_was_asked(figures, counters.called_for)
    if money is not None:
        money.complete(figures)
    summary = vocabulary.summary(figures | interim_summary(config, counters), directory)
    directory.write_summary(summary)
    return summary


def check_copies(config: PipelineConfig) -> None:
    """Refuse a copy that would take the place of a file the run lives on, before anything is paid for."""
    output = config.output
    for setting, name in (("results_file", output.results_file), ("preview_pairs_file", output.preview_pairs_file)):
        target = None if name is None else _inside(output.output_dir, name)
        taken = {_inside(output.output_dir, own) for own in OWN_FILES}
        if setting == "results_file":
            taken -= {_inside(output.output_dir, RESULTS)}  # which is where they are anyway
        if target in taken:
            raise ConfigError(f"output.{setting} is {name!r}, which is a file of the run itself. Choose another name.")


def interim_summary(config: PipelineConfig, counters: RunCounters) -> dict[str, Any]:
    """What can be said without reading the results: the run's model, and what was done since it was entered."""
    seconds = counters.seconds
    return {
        "phase": counters.phase,
        "model": config.generation.model_name if config.generation.enabled else None,
        "n": config.generation.n,
        "skipped_rows": counters.skipped_rows,
        "this_entry": {
            "seconds": seconds,
            "generated": counters.generated,
            "cached": counters.cached,
            "judged": counters.judged,
            "failed": counters.failed,
            "completion_tokens": counters.completion_tokens,
            "tokens_per_second": counters.completion_tokens / seconds if seconds > 0 else None,
            "cost": counters.cost,
            **({"cost_is_at_most": True} if counters.cost_is_at_most else {}),
            "sandbox": counters.sandbox,
            **({} if counters.earlier is None else {"earlier": _earlier_figures(counters.earlier)}),
            **({"invalid": counters.invalid} if counters.invalid else {}),
            **({} if counters.judge is None else {"judge": _judge_figures(counters.judge)}),
        },
    }


def _earlier_figures(earlier: Earlier) -> dict[str, Any]:
    return {"answers": earlier.answers, "oldest": moment(earlier.oldest), "newest": moment(earlier.newest)}


def _judge_figures(use: JudgeUse) -> dict[str, Any]:
    figures = asdict(use)
    del figures["dropped_parameters"]  # in the manifest, for the whole run
    return figures if use.cost_is_at_most else {n: held for n, held in figures.items() if n != "cost_is_at_most"}


def _beyond_what_was_asked(figures: Mapping[str, Any], wanted: int | None) -> dict[str, int]:
    """How many of the answers in the figures are there from earlier entries, and no longer called for."""
    held: int = figures["records"] if "records" in figures else figures["rollouts"]
    return {"not_asked_for": held - wanted} if wanted is not None and held > wanted else {}


def rollout_figures(journal: Journal) -> dict[str, Any]:
    """The figures of rollouts: how many there are, what failed, what was spent."""
    rollouts, samples, last_id = 0, 0, None
    totals = Totals()
    for line in journal.rows_for_figures():
        rollouts += 1
        samples += line["id"] != last_id
        last_id = line["id"]
        totals.add(line)
    return {
        "samples": samples,
        "rollouts": rollouts,
        "failed": totals.failed,
        **totals.failures(),
        **totals.spending(),
    }


def _write_copies(config: PipelineConfig, results: Journal) -> None:
    output = config.output
    if output.results_file is not None:
        target = _inside(output.output_dir, output.results_file)
        if target != results.path.resolve():
            _write_lines(target, (_whole(results, line) for line in results.in_order()))
    if output.preview_pairs_file is not None:
        lines = (json_line(pair) for pair in map(preview_pair, whole_rows(results)) if pair is not None)
        _write_lines(_inside(output.output_dir, output.preview_pairs_file), lines)


def _whole(results: Journal, line: bytes) -> bytes:
    """A line that is read without the files beside it."""
    if b'"sample":"' not in line:
        return line
    row = JudgedAnswer.of_line(line, results.samples).row
    return sealed_line(json_line({name: held for name, held in row.items() if name != CHECK}))


def _inside(output_dir: str, name: str) -> Path:
    """A relative name is a file of the run directory; an absolute one is taken as it is."""
    return (Path(output_dir) / name).resolve()


def _write_lines(target: Path, lines: Iterable[bytes]) -> None:
    with Draft(target, advice="The results themselves are safe.", make_folder=True) as draft:
        draft.write_all(lines)
