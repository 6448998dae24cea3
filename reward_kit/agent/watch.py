# SPDX-License-Identifier: Apache-2.0
"""What goes on in all episodes of a run together, for whoever shows progress."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EpisodeWatch"]


@dataclass(slots=True)
class EpisodeWatch:
    """Plain numbers, which the episodes add to."""

    in_flight: int = 0
    """Episodes under way."""
    turns: int = 0
    """Turns of the model, those played again included."""
    tool_calls: int = 0
    tool_errors: int = 0
    """Calls of which the model was told that they went wrong."""
