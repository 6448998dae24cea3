# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, from its results in dataset order, in one pass and constant memory.

Means are over judged records; failures are counted beside them, always. The n answers to one prompt are not
independent, so every interval is computed over samples, not over rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from reward_kit.execution.totals import Totals
from reward_kit.statistics import ClusteredMean, Estimate, PassAtK
from reward_kit.storage.vocabularies import RUN
from reward_kit.utils.clock import age_in_words

if TYPE_CHECKING:
    from reward_kit.agent.figures import EpisodeFigures

__all__ = ["about_earlier", "about_invalid", "summarise"]


class _Judged:
    """Running figures of result rows."""

    def __init__(self) -> None:
        self.scores = ClusteredMean()
        self.passes = PassAtK(0)
        self.metrics: dict[str, ClusteredMean] = {}
        self.totals = Totals()
        self.episodes: EpisodeFigures | None = None
        """Of an agent, once a row of one has come."""
        self.samples = self.judged = self.passed = 0

    def add(self, rows: list[dict[str, Any]], threshold: float) -> None:
        """Take account of all rows of one sample, which passes with a score of `threshold`."""
        self.samples += 1
        if "steps" in rows[0]:
            self._add_episodes(rows)
        scores: list[float] = []
        passed, metrics = 0, False
        for row in rows:
            if (
                row["status"] == "ok" and "branch" not in row
            ):  # a branch shares steps with another: no answer of its own
                score = float(row[RUN.score])
                scores.append(score)
                passed += score >= threshold
                metrics = metrics or bool(row[RUN.metrics])
            self.totals.add(row)
        self.judged += len(scores)
        self.passed += passed
        if scores:
            self.scores.add(scores)
            self.passes.add(len(scores), passed)
            self.passes.k_max = max(self.passes.k_max, len(scores))
        if metrics:
            self._add_metrics([row for row in rows if row["status"] == "ok" and "branch" not in row])

    def _add_episodes(self, rows: list[dict[str, Any]]) -> None:
        if self.episodes is None:
            from reward_kit.agent.figures import EpisodeFigures  # here: most runs have no agent

            self.episodes = EpisodeFigures()
        self.episodes.add(rows)

    def _add_metrics(self, judged: list[dict[str, Any]]) -> None:
        by_name: dict[str, list[float]] = {}
        for row in judged:
            for name, metric in row[RUN.metrics].items():
                by_name.setdefault(name, []).append(float(metric["score"]))
        for name, values in by_name.items():
            self.metrics.setdefault(name, ClusteredMean()).add(values)


def about_invalid(results: int) -> str:
    """What there is to know where so many results said `is_score_valid=False`, and named no error."""
    subject = "1 result says" if results == 1 else f"{results:,} results say"
    return (
        f"{subject} is_score_valid=False: they count as no verdict, not by their score. If the reward marks wrong "
        "answers so, set `reward.invalid=score`."
    )


def about_earlier(earlier: Mapping[str, Any]) -> str:
    """What there is to know where answers came from the cache: how old they are, and how to have new ones."""
    answers, oldest, newest = earlier["answers"], earlier["oldest"], earlier["newest"]
    days = dict.fromkeys((oldest[:10], newest[:10]))
    subject, they_are = ("1 answer", "it is") if answers == 1 else (f"{answers:,} answers", "they are")
    most = "" if len(days) == 1 else "up to "
    return (
        f"{subject} came from the cache; {they_are} {most}{age_in_words(oldest)} old (made {' to '.join(days)}). "
        "Use `generation.cache.enabled=false` to ask anew."
    )


def summarise(
    rows: Iterable[dict[str, Any]], *, pass_threshold: float, by_split: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The figures of result rows that come in dataset order, the rows of a sample together.

    `by_split` are the thresholds of splits that have one of their own; each of them gets figures of its own, too.
    """
    whole = _Judged()
    thresholds = by_split or {}
    parts = {split: _Judged() for split in thresholds}
    for _, group in groupby(rows, key=itemgetter("id")):
        sample = list(group)
        split = str(sample[0].get("split")) if parts else ""
        threshold = thresholds.get(split, pass_threshold)
        whole.add(sample, threshold)
        if split in parts:
            parts[split].add(sample, threshold)
    figures = _summary(whole) | {"pass_threshold": pass_threshold}
    if parts:
        figures["splits"] = {
            split: _summary(judged) | {"pass_threshold": thresholds[split]} for split, judged in parts.items()
        }
    return figures


def _summary(judged: _Judged) -> dict[str, Any]:
    totals = judged.totals
    return {
        "samples": judged.samples,
        "records": judged.judged + totals.failed,
        "judged": judged.judged,
        "failed": totals.failed,
        **totals.failures(),
        **({"truncated": totals.truncated} if totals.truncated else {}),
        "mean_score": _figures(judged.scores.estimate()),
        "passed": judged.passed,
        "pass_rate": judged.passed / judged.judged if judged.judged else None,
        "pass_at_k": {str(k): _figures(estimate) for k, estimate in judged.passes.estimates().items()},
        "metrics": {name: _figures(metric.estimate()) for name, metric in sorted(judged.metrics.items())},
        **({} if judged.episodes is None else {"agent": judged.episodes.figures()}),
        "cached": totals.cached,
        **totals.spending(),
    }


def _figures(estimate: Estimate | None) -> Mapping[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "samples": estimate.count}
