"""What failed, counted by kind, with one message of each, so that a person sees why without opening a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

__all__ = ["FailureKinds"]


class FailureKinds:
    """A running count of the failures of a run's lines."""

    def __init__(self) -> None:
        """Nothing has failed yet."""
        self._counts: Counter[str] = Counter()
        self._messages: dict[str, str] = {}

    def add(self, failure: Mapping[str, Any]) -> None:
        """Take account of the failure of one line."""
        kind = f"{failure['stage']}: {failure['type']}"
        self._counts[kind] += 1
        self._messages.setdefault(kind, str(failure["message"]))

    @property
    def total(self) -> int:
        """How many there were."""
        return self._counts.total()

    def figures(self) -> dict[str, Any]:
        """How many of each kind, the most frequent first; and what the first of each kind said."""
        by_kind = dict(self._counts.most_common())
        return {"failures_by_kind": by_kind, "failure_examples": {kind: self._messages[kind] for kind in by_kind}}
