# SPDX-License-Identifier: Apache-2.0
"""What a run's lines add up to, whatever their vocabulary: tokens, money, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

__all__ = ["Totals"]


class Totals:
    """Running sums over lines of rollouts or of results. What came from the cache was paid for before."""

    def __init__(self) -> None:
        """Nothing was spent, and nothing has failed yet."""
        self.cached = 0
        self.truncated = 0
        """Answers that were cut off at the limit of tokens."""
        self._prompt_tokens = self._completion_tokens = 0
        self._cost = 0.0
        self._cost_known = True
        self._at_most = False
        self._failures: Counter[str] = Counter()
        self._messages: dict[str, str] = {}
        self._tracebacks: dict[str, str] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Take account of one line."""
        failure, usage, cost = line.get("failure"), line.get("usage"), line["cost"]
        if failure is not None:
            kind = f"{failure['stage']}: {failure['type']}"
            self._failures[kind] += 1
            self._messages.setdefault(kind, str(failure["message"]))
            if trace := failure.get("traceback"):
                self._tracebacks.setdefault(kind, str(trace))
        self.truncated += line.get("finish_reason") == "length"
        if line.get("cached"):
            self.cached += 1
        elif usage is not None:
            self._prompt_tokens += usage.get("prompt_tokens", 0)
            self._completion_tokens += usage.get("completion_tokens", 0)
            self._cost_known = self._cost_known and cost is not None
        if cost is not None:
            self._cost += cost
        if usage is not None and usage.get("at_most") and cost != 0:
            self._at_most = True

    @property
    def failed(self) -> int:
        """How many lines hold a failure."""
        return self._failures.total()

    def failures(self) -> dict[str, Any]:
        """How many failures of each kind, the most frequent first; what the first of each kind said, and where."""
        by_kind = dict(self._failures.most_common())
        traces = {kind: self._tracebacks[kind] for kind in by_kind if kind in self._tracebacks}
        return {
            "failures_by_kind": by_kind,
            "failure_examples": {kind: self._messages[kind] for kind in by_kind},
            **({"failure_tracebacks": traces} if traces else {}),
        }

    def spending(self) -> dict[str, Any]:
        """Tokens and money; the money is None where a part of it is not known.

        Where a reply did not tell what it used, it counts with the most that it may have been, and that is said.
        """
        return {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._completion_tokens,
            "cost": self._cost if self._cost_known else None,
            **({"cost_is_at_most": True} if self._at_most else {}),
        }
