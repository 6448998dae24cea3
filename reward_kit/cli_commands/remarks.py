"""What a person should know about a run's figures before trusting them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["remarks"]


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """A sentence or two for each thing that the figures alone do not tell."""
    beyond: int = summary.get("not_asked_for") or 0
    return [_not_asked_for(beyond)] if beyond else []


def _not_asked_for(answers: int) -> str:
    told = "1 answer is" if answers == 1 else f"{answers:,} answers are"
    return (
        f"{told} in these figures that the dataset, its limit or n no longer call for: they were paid for and are kept."
        " For figures without them, choose another output directory; what is cached costs nothing."
    )
