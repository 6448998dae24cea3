# SPDX-License-Identifier: Apache-2.0
"""What a run has spent in all its entries, also where no line of its files tells of it.

    rollouts.jsonl   what each answer cost, the failures before it included
    manifest.json    `judge_cost`; and `spent`: all of it, noted before it is spent where the price is known

So a killed run knows what it may have spent on the requests that were under way: at most what was noted. Answers that
batches gave lie on this disk, and what they cost is counted when their lines are written: of such a run `spent` tells
what is spent `beside` the lines.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from reward_kit.errors import RewardKitError
from reward_kit.execution.counters import RunCounters
from reward_kit.generation.budget import Budget
from reward_kit.models import Usage
from reward_kit.storage.run_directory import RunDirectory

__all__ = ["Money"]

_log = logging.getLogger(__name__)

_SPENT = "spent"
_ROUNDED = 1e-9
"""Sums of the same costs may differ by this."""


class Money:
    """The budget of an entry, and what is kept of it in the manifest."""

    def __init__(
        self, directory: RunDirectory, counters: RunCounters, on_disk: float, max_cost: float | None, *,
        by_batches: bool = False,
    ) -> None:  # fmt: skip
        """`on_disk` is what the lines of the run cost."""
        self._directory, self._counters, self._max_cost = directory, counters, max_cost
        self._on_disk = on_disk if by_batches else None
        self._judge_before: float = directory.noted("judge_cost") or 0.0
        noted = directory.noted(_SPENT) or {}
        known = on_disk + self._judge_before
        self._before = max(known, noted["beside"] + on_disk if "beside" in noted else noted.get("cost", 0.0))
        self.unfinished: Usage | None = None
        """What was used for episodes of which no line tells yet."""
        at_most = noted.get("at_most" if self._before > known else "was_at_most", noted.get("at_most"))
        self.budget = Budget(max_cost, self._before, at_most=bool(at_most), ahead=self._note_ahead)
        """Without a limit, it counts all the same."""

    def keep(self) -> None:
        """Put down what the judge cost by now, and what it was not asked for: no journal holds it."""
        use = self._counters.judge
        if use is None:
            return
        if use.cost:
            self._directory.note("judge_cost", self.judge_cost)
        if use.cost_is_at_most:
            self._directory.note("judge_cost_is_at_most", True)
        if use.dropped_parameters:
            known = self._directory.noted("judge_dropped_parameters") or {}
            self._directory.note("judge_dropped_parameters", {**known, **use.dropped_parameters})

    @property
    def judge_cost(self) -> float:
        """What the judge cost, in all entries."""
        use = self._counters.judge
        return self._judge_before + ((use.cost or 0.0) if use is not None else 0.0)

    def _judge_figures(self) -> dict[str, Any]:
        """What the judge cost in all entries, for the summary; nothing where there is none."""
        use = self._counters.judge
        if use is None and not self._judge_before:
            return {}
        known = use is None or use.cost is not None
        at_most = self._directory.noted("judge_cost_is_at_most") and self.judge_cost
        return {"judge_cost": self.judge_cost if known else None} | ({"judge_cost_is_at_most": True} if at_most else {})

    def settle(self) -> None:
        """Put down what was spent, once nothing is under way any more."""
        self.keep()
        budget = self.budget
        if budget.spent:
            cost = budget.spent - self._before - (self.judge_cost - self._judge_before)
            if budget.is_limited or cost > self._counters.cost + _ROUNDED:
                self._counters.cost = cost
                self._counters.cost_is_at_most = self._counters.cost_is_at_most or budget.at_most
            self._directory.note(_SPENT, {"cost": budget.spent, "at_most": budget.at_most})

    def settle_quietly(self) -> None:
        """The same, where something may have gone wrong that a full disk must not hide."""
        with contextlib.suppress(RewardKitError):
            self.settle()

    def remark(self) -> None:
        """Say where more was spent than was allowed."""
        if self.budget.overspent:
            _log.warning(
                "max_cost=%g was exceeded by %.4g: requests that had been sent already cost more than was estimated "
                "for them.", self._max_cost, self.budget.overspent,
            )  # fmt: skip

    def complete(self, figures: dict[str, Any]) -> None:
        """Add to the figures of the lines what was paid for unfinished episodes and for lost requests."""
        if self.unfinished is not None:
            figures["prompt_tokens"] += self.unfinished.prompt_tokens
            figures["completion_tokens"] += self.unfinished.completion_tokens
        figures |= self._judge_figures()
        if figures["cost"] is None:
            return
        whole = self.budget.spent - self.judge_cost
        if whole > figures["cost"] + _ROUNDED:
            figures["cost"] = whole
            figures |= {"cost_is_at_most": True} if self.budget.at_most else {}

    def _note_ahead(self, cost: float) -> None:
        told = {"cost": cost} if self._on_disk is None else {"beside": cost - self.budget.fetched - self._on_disk}
        self._directory.note(_SPENT, {**told, "at_most": True, "was_at_most": self.budget.at_most})
