# SPDX-License-Identifier: Apache-2.0
"""What a run hands back: how it ended, its figures, its answers, and where its files are."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from reward_kit.errors import AnswersFailedError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.run_summary import NO_PASSES, EstimateFigures, RunSummary, has_passes, many_failed, rests_on
from reward_kit.models import Failure
from reward_kit.statistics import Estimate, Interval
from reward_kit.storage.journal import Journal
from reward_kit.storage.large_parts import whole_rows
from reward_kit.storage.vocabularies import RUN
from reward_kit.utils.checksums import CHECK

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

__all__ = ["FailedAnswer", "Phase", "RunResult", "RunStatus"]

Phase = Literal["both", "inference", "execution"]
"""Generate and score; only generate; only score what was generated before."""

RunStatus = Literal["finished", "stopped", "interrupted", "detached", "failing"]
"""All is done; `max_cost` was reached, or a batch cancelled; someone asked it to stop; batches are under way and nobody
waits for them; the first answers could not be judged, all for the same reason. The same command goes on after all but
the first."""

_FILE_KEEPING = ("schema", "position", "content", CHECK)
"""Columns that files need and nobody looks at."""
_MOST_CURVE_POINTS = 8
_MOST_KINDS = 5


@dataclass(frozen=True)
class FailedAnswer:
    """An answer that could not be had, or could not be judged."""

    id: str
    response_index: int
    failure: Failure
    row: dict[str, Any] = field(repr=False)
    """Its line in the results; in the rollouts, where the run only generated."""


@dataclass(frozen=True, repr=False)
class RunResult:
    """What a run returns: its figures, its rows, and where its files are."""

    status: RunStatus
    output_dir: Path
    summary: RunSummary
    """What `summary.json` holds."""
    counters: RunCounters
    """What was done since the run was entered this time."""
    reason: str | None = None
    """Why the run ended early, where it did."""
    not_mirrored: str | None = None
    """What `output.mirror` lacks and why, where not everything could be copied there."""

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
        """The mean score over judged answers; None where nothing was judged."""
        mean = self.summary.get("mean_score")
        return None if mean is None else float(mean["value"])

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the mean score; None where it rests on one sample only, or on none."""
        mean = self.summary.get("mean_score")
        return None if mean is None else _interval(mean)

    def pass_at(self, k: int) -> Estimate:
        """The chance that at least one of `k` answers passes, with its 95 % interval."""
        known = self.summary.get("pass_at_k", {})
        found = known.get(str(k))
        if found is None:
            there = f"it is known for k from 1 to {max(map(int, known))}" if known else "nothing was judged"
            raise ValueError(f"There is no pass@{k} of this run: {there}.")
        low, high = _interval(found) or (float("-inf"), float("inf"))
        return Estimate(found["value"], low, high, found["samples"])

    # -- the answers

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The result rows, as `rows` gives them."""
        return self.rows()

    if not TYPE_CHECKING:  # `await pipeline.run()` is what the older package asked for; nobody has to write it

        def __await__(self) -> Generator[None, None, RunResult]:
            """The result itself: a run that has been waited for is done."""
            yield from ()
            return self

    def rows(self) -> Iterator[dict[str, Any]]:
        """The result rows, one per answer and in dataset order, also where the run was interrupted."""
        return self._lines(self.results_path)

    def to_pandas(self) -> DataFrame:
        """The result rows as a table: one row per answer, one column per metric and per column of the dataset.

        A metric's score is in `metric.NAME`; a column of the dataset whose name is taken is in `column.NAME`.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas. Install it with: pip install pandas") from error
        return pandas.DataFrame([_flat(row) for row in self.rows()])

    @property
    def failures(self) -> list[FailedAnswer]:
        """The answers that could not be had or not be judged, in dataset order, each with its reason."""
        path = self.results_path if self.results_path.exists() else self.rollouts_path
        rows = self._lines(path) if path.exists() else ()
        return [
            FailedAnswer(row["id"], row["response_index"], Failure.model_validate(row["failure"]), row)
            for row in rows
            if row.get("failure") is not None
        ]

    def raise_for_failures(self, *, allow: float = 0.0) -> None:
        """Raise `AnswersFailedError` if any answer failed, or if the run ended early and is not whole.

        Up to a share of `allow`, from 0 to 1, may have failed.
        """
        if self.failed > allow * self._answers:
            kinds = self.summary.get("failures_by_kind", {})
            example = next(iter(self.summary.get("failure_examples", {}).values()), "")
            raise AnswersFailedError(
                f"{self.failed:,} of {self._answers:,} answers failed ({', '.join(kinds)}), such as: {example}"
            )
        if self.status != "finished":
            raise AnswersFailedError(f"The run is not complete: it was {self.status}. {self.reason or ''}".rstrip())

    def _lines(self, path: Path) -> Iterator[dict[str, Any]]:
        with Journal(path, read_only=True) as journal:
            yield from whole_rows(journal)

    @property
    def _answers(self) -> int:
        return int(self.summary.get("records", self.summary.get("rollouts", 0)))

    # -- how it is shown

    def __repr__(self) -> str:
        facts = [f"{label} {value}" for label, value in self._figures()]
        return f"RunResult({self.status}: {', '.join([*facts, repr(str(self.output_dir))])})"

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        from html import escape

        lines = [*self._figures(), *self._curve(), *self._kinds_of_failure(), ("files", str(self.output_dir))]
        status = self.status if self.reason is None else f"{self.status}: {self.reason}"
        lines.insert(int(many_failed(self.summary) is not None), ("status", status))
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(label)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
            for label, value in lines
        )
        return f"<table>{rows}</table>"

    def _figures(self) -> Iterator[tuple[str, str]]:
        mean = self.summary.get("mean_score")
        many = many_failed(self.summary) is not None
        if many:
            yield "failed", f"{self.failed:,} of {self._answers:,}"
        if mean is not None:
            yield "mean score", _shown(mean)
        if "judged" in self.summary:
            yield "judged", f"{self.judged:,} of {self._answers:,}"
        elif "rollouts" in self.summary:
            yield "answers", f"{self._answers:,}"
        if self.failed and not many:
            yield "failed", f"{self.failed:,}"

    def _curve(self) -> Iterator[tuple[str, str]]:
        if not has_passes(self.summary):
            yield "pass@k", f"– ({NO_PASSES})"
            return
        curve = [(int(k), found) for k, found in self.summary.get("pass_at_k", {}).items()]
        few, last = len(curve) <= _MOST_CURVE_POINTS, max((k for k, _ in curve), default=0)
        for k, found in curve:
            if few or k == last or k & (k - 1) == 0:  # else the powers of two and the last
                yield f"pass@{k}", f"{_shown(found)} {rests_on(found, self.summary)}".rstrip()

    def _kinds_of_failure(self) -> Iterator[tuple[str, str]]:
        examples = self.summary.get("failure_examples", {})
        for kind, count in list(self.summary.get("failures_by_kind", {}).items())[:_MOST_KINDS]:
            yield f"{count:,} × {kind}", examples.get(kind, "")[:300]


def _interval(figures: EstimateFigures) -> Interval | None:
    low, high = figures["low"], figures["high"]
    if low is None or high is None or not (isfinite(low) and isfinite(high)):
        return None
    return Interval(low, high)


def _shown(figures: EstimateFigures) -> str:
    interval = _interval(figures)
    around = "" if interval is None else f" ({interval.low:.3f}–{interval.high:.3f})"
    return f"{figures['value']:.3f}{around}"


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A line with a column for each metric, each kind of token and each column of the dataset."""
    flat = {name: value for name, value in row.items() if name not in _FILE_KEEPING}
    metrics = flat.pop(RUN.metrics, None) or {}
    columns = flat.pop("columns", None) or {}
    usage = flat.pop("usage", None) or {}
    for name in ("prompt_tokens", "completion_tokens"):
        flat[name] = usage.get(name)
    for name, metric in metrics.items():
        flat[f"metric.{name}"] = metric["score"]
    for name, value in columns.items():
        flat[name if name not in flat else f"column.{name}"] = value
    return flat
