# SPDX-License-Identifier: Apache-2.0
"""A warehouse with shelves and a shipping desk. Its tools are served by MCP: the run itself never imports this file.

python -m reward_kit.agent.mcp.server warehouse.py:Warehouse
"""

from __future__ import annotations

from typing import Any

from reward_kit.agent import World, tool
from reward_kit.agent.tools import ToolError
from reward_kit.models import Sample


class Warehouse(World):
    """What lies on which shelf, and what is on the desk."""

    def __init__(self, sample: Sample) -> None:
        """Begin empty; `fill` is called before the model's first turn."""
        self.shelves: dict[str, dict[str, int]] = {}
        self.desk: dict[str, int] = {}

    @tool
    def fill(self, shelves: dict[str, dict[str, int]]) -> str:
        """Put the stock on the shelves. Called by the run with a column of the dataset, not by the model."""
        self.shelves = {shelf: dict(items) for shelf, items in shelves.items()}
        return "filled"

    @tool(reads=True)
    def find(self, item: str) -> dict[str, int]:
        """Say on which shelves an item lies, and how many of it.

        Args:
            item: what to look for
        """
        return {shelf: items[item] for shelf, items in self.shelves.items() if items.get(item)}

    @tool
    def bring(self, item: str, amount: int, shelf: str) -> str:
        """Bring items from a shelf to the shipping desk.

        Args:
            item: what to bring
            amount: how many
            shelf: where they lie
        """
        there = self.shelves.get(shelf, {}).get(item, 0)
        if not 0 < amount <= there:
            raise ToolError(f"On shelf {shelf!r} there are {there} of {item!r}. You cannot take {amount}.")
        self.shelves[shelf][item] = there - amount
        self.desk[item] = self.desk.get(item, 0) + amount
        return f"{self.desk[item]} of {item!r} on the desk"

    def facts(self) -> dict[str, Any]:
        """What is on the desk in the end."""
        return {"desk": self.desk}
