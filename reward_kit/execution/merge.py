# SPDX-License-Identifier: Apache-2.0
"""Joining runs that were spread over machines: one run directory out of several, as if it had been one run.

Lines are joined by (id, response_index). Where two directories have the same key, a verdict counts before a failure,
and of two verdicts the one of the directory named later.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from reward_kit.errors import ConfigError, StorageError
from reward_kit.execution.shell.summary import execution_figures, whole_summary
from reward_kit.execution.summary import summarise
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_index import JournalIndex
from reward_kit.storage.journal_lines import Head
from reward_kit.storage.run_directory import RESULTS, ROLLOUTS, Claim, RunDirectory, read_document, refuse_cut
from reward_kit.storage.samples import SAMPLES, Samples
from reward_kit.storage.thresholds import Thresholds, thresholds_of
from reward_kit.storage.vocabularies import SHELL

__all__ = ["merge_runs"]

Summary = dict[str, Any]


def merge_runs(sources: Sequence[Path], target: Path) -> Summary:
    """Merge the run directories `sources` into `target` and return the summary written there.

    What counts as passed is what it was in the first of them.
    """
    for source in sources:
        if not (source / RESULTS).is_file():
            raise ConfigError(f"{str(source)!r} holds no {RESULTS}. Name the output directories of finished shards.")
        if source.resolve() == target.resolve():
            raise ConfigError(f"{str(source)!r} is also where the result should go. Choose another --output-dir.")
    claims = _common_claims(sources)
    with RunDirectory(target) as directory:
        for which, claim in claims.items():
            advice = "Choose another --output-dir."
            directory.claim(Claim(which, claim["digest"], claim["settings"], advice))
        _merge_samples(directory, sources)
        for name in (ROLLOUTS, RESULTS):
            parts_of_it = [source / name for source in sources if (source / name).is_file()]
            directory.note_held({name: _merge_journals(parts_of_it, target / name)})
        with Journal(directory.results_path, read_only=True) as results:
            parts = [_read(source) for source in sources]
            summary = _summary(results, parts, directory, thresholds_of(sources[0]))
        directory.write_summary(summary)
        return summary


def _common_claims(sources: Iterable[Path]) -> dict[Any, Any]:
    """What all the parts were made with; parts of different runs are refused."""
    common: dict[str, tuple[Path, Any]] = {}
    for source in sources:
        for which, claim in RunDirectory.claims_of(source).items():
            first, known = common.setdefault(which, (source, claim))
            if known["digest"] != claim["digest"]:
                settings = _differences(known, claim)
                raise StorageError(
                    f"{str(first)!r} and {str(source)!r} hold {which} made with different settings ({settings}). "
                    "Merge only parts of one run."
                )
    return {which: claim for which, (_, claim) in common.items()}


def _differences(one: Summary, other: Summary) -> str:
    before, after = one["settings"], other["settings"]
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return ", ".join(f"{name}: {before.get(name)!r} and {after.get(name)!r}" for name in names)


def _merge_samples(directory: RunDirectory, sources: Iterable[Path]) -> None:
    """Put the samples of all parts into one file, before the lines that name them."""
    for source in sources:
        if (source / SAMPLES).is_file():
            with contextlib.closing(Samples(source / SAMPLES, read_only=True)) as samples:
                refuse_cut(samples)
                directory.samples.take(samples)
    directory.samples.compact()
    directory.note_held({SAMPLES: directory.samples.keys})


def _merge_journals(paths: Sequence[Path], target: Path) -> int:
    """Put the journals into one, and say how many entries it has."""
    if not paths:
        return 0
    for path in paths:
        with Journal(target) as merged, Journal(path, read_only=True) as part:
            refuse_cut(part)
            known = merged.index()
            merged.append([entry for entry in part.entries() if _counts(entry.head, known)])
    with Journal(target) as merged:  # opened anew: parts may have given one position to different samples
        merged.compact()
        return merged.keys


def _counts(head: Head, known: JournalIndex) -> bool:
    """Whether a line takes the place of what is known under its key."""
    return head.status == "ok" or known.status(head.id, head.response_index) != "ok"


def _summary(results: Journal, parts: list[Summary], target: RunDirectory, thresholds: Thresholds) -> Summary:
    first = next(results.rows(), None)
    if first is None or SHELL.is_verified not in first:
        with_model = {name: parts[0].get(name) for name in ("model", "n")}
        figures = summarise(results.rows(), pass_threshold=thresholds.whole, by_split=thresholds.by_split)
        return figures | with_model | {"parts": len(parts)}
    figures = execution_figures(results.rows())
    executions = [part["execution"] for part in parts if part.get("execution")]
    known = [part["inference"] for part in (*parts, target.read_summary() or {}) if part.get("inference")]
    common = executions[0] if executions else {}
    execution = {
        **common,
        **figures,
        "shard": None,
        "parts": len(parts),
        "seconds": max((part["seconds"] for part in executions), default=0.0),
        "start_time": min((part["start_time"] for part in executions), default=""),
        "end_time": max((part["end_time"] for part in executions), default=""),
    }
    return whole_summary(known[-1] if known else None, execution)


def _read(source: Path) -> Summary:
    return read_document(source / "summary.json") or {}
