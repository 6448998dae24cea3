# SPDX-License-Identifier: Apache-2.0
"""Agents: what the parts of multi-step episodes cost, and whether that grows with the work and no faster.

python -m benchmarks agents
"""

from __future__ import annotations

from benchmarks import agent_credit, agent_peers, agent_turns
from benchmarks.report import Report

__all__ = ["main"]


def main(quick: bool = False) -> Report:
    """Measure each part; a module per subject has its rows."""
    rows = [*agent_turns.rows(quick=quick), *agent_peers.rows(quick=quick), *agent_credit.rows(quick=quick)]
    return Report("agents", "what the parts of multi-step episodes cost, and how it grows", rows)


if __name__ == "__main__":
    from benchmarks.report import as_text

    print(as_text(main()))
