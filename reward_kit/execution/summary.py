"""The figures of a run, from its results in dataset order, in one pass and constant memory.

Means are over judged records; failures are counted beside them, always. The n answers to one prompt are not
independent, so every interval is computed over samples, not over rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from reward_kit.execution.failures import FailureKinds
from reward_kit.statistics import ClusteredMean, Estimate, PassAtK

__all__ = ["summarise"]


class _Totals:
    """Running sums over result rows."""

    def __init__(self) -> None:
        self.scores = ClusteredMean()
        self.passes = PassAtK(0)
        self.metrics: dict[str, ClusteredMean] = {}
        self.failures = FailureKinds()
        self.samples = self.judged = self.passed = self.cached = 0
        self.prompt_tokens = self.completion_tokens = 0
        self.cost = 0.0
        self.cost_known = True

    def add(self, rows: list[dict[str, Any]], threshold: float) -> None:
        """Take account of all rows of one sample, which passes with a score of `threshold`."""
        self.samples += 1
        scores: list[float] = []
        passed, metrics = 0, False
        for row in rows:
            if row["status"] == "ok":
                score = float(row["evaluation_score"])
                scores.append(score)
                passed += score >= threshold
                metrics = metrics or bool(row["evaluation_metrics"])
            self._add_row(row)
        self.judged += len(scores)
        self.passed += passed
        if scores:
            self.scores.add(scores)
            self.passes.add(len(scores), passed)
            self.passes.k_max = max(self.passes.k_max, len(scores))
        if metrics:
            self._add_metrics([row for row in rows if row["status"] == "ok"])

    def _add_metrics(self, judged: list[dict[str, Any]]) -> None:
        by_name: dict[str, list[float]] = {}
        for row in judged:
            for name, metric in row["evaluation_metrics"].items():
                by_name.setdefault(name, []).append(float(metric["score"]))
        for name, values in by_name.items():
            self.metrics.setdefault(name, ClusteredMean()).add(values)

    def _add_row(self, row: dict[str, Any]) -> None:
        failure, cached, usage = row.get("failure"), row.get("cached"), row.get("usage")
        if failure is not None:
            self.failures.add(failure)
        if cached:
            self.cached += 1
        elif usage is not None:
            self.prompt_tokens += usage.get("prompt_tokens", 0)
            self.completion_tokens += usage.get("completion_tokens", 0)
        if row["cost"] is not None:
            self.cost += row["cost"]
        elif usage is not None:
            self.cost_known = False


def summarise(
    rows: Iterable[dict[str, Any]], *, pass_threshold: float, by_split: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The figures of result rows that come in dataset order, the rows of a sample together.

    `by_split` are the thresholds of splits that have one of their own; each of them gets figures of its own, too.
    """
    whole = _Totals()
    thresholds = by_split or {}
    parts = {split: _Totals() for split in thresholds}
    for _, group in groupby(rows, key=itemgetter("id")):
        sample = list(group)
        split = str(sample[0].get("split")) if parts else ""
        threshold = thresholds.get(split, pass_threshold)
        whole.add(sample, threshold)
        if split in parts:
            parts[split].add(sample, threshold)
    figures = _told(whole) | {"pass_threshold": pass_threshold}
    if parts:
        figures["splits"] = {
            split: _told(totals) | {"pass_threshold": thresholds[split]} for split, totals in parts.items()
        }
    return figures


def _told(totals: _Totals) -> dict[str, Any]:
    failed = totals.failures.total
    return {
        "samples": totals.samples,
        "records": totals.judged + failed,
        "judged": totals.judged,
        "failed": failed,
        **totals.failures.figures(),
        "mean_score": _figures(totals.scores.estimate()),
        "passed": totals.passed,
        "pass_rate": totals.passed / totals.judged if totals.judged else None,
        "pass_at_k": {str(k): _figures(estimate) for k, estimate in totals.passes.estimates().items()},
        "metrics": {name: _figures(metric.estimate()) for name, metric in sorted(totals.metrics.items())},
        "cached": totals.cached,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "cost": totals.cost if totals.cost_known else None,
    }


def _figures(estimate: Estimate | None) -> Mapping[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "samples": estimate.count}
