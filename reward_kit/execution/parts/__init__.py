# SPDX-License-Identifier: Apache-2.0
"""What a run can do and need not: one file each, and one line in this table. Whoever is first is entered first."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reward_kit.execution.options import RunInputs
    from reward_kit.execution.parts.part import Part

__all__ = ["PARTS", "parts_of"]

PARTS = {
    "mirroring": "Mirroring",
    "by_batches": "ByBatches",
    "agent_turns": "AgentTurns",
}
"""By file, the class of the part."""


def parts_of(inputs: RunInputs) -> list[Part]:
    """The parts of a run, each of which sees for itself whether there is anything to do."""
    return [getattr(import_module(f"{__name__}.{file}"), name)(inputs) for file, name in PARTS.items()]
