# SPDX-License-Identifier: Apache-2.0
"""Tools over the shop's database, as the inherited agent tasks define them."""

from __future__ import annotations

from typing import Any

from reward_kit.agent import ForkableResource, ToolRegistry

R = ToolRegistry("shop")


@R.tool("Cancel a purchase and put its items back into stock.", {"purchase_id": {"type": "integer"}})
async def cancel_purchase(purchase_id: int, resource: ForkableResource) -> str:
    """Cancel it, unless it was cancelled before."""
    found = await _run(resource, "SELECT * FROM purchase WHERE id = ? AND status <> 'cancelled'", [purchase_id])
    if not found:
        raise ValueError(f"there is no purchase {purchase_id} that could be cancelled")
    await _run(resource, "UPDATE purchase SET status = 'cancelled' WHERE id = ?", [purchase_id])
    more = [found[0]["quantity"], found[0]["product_id"]]
    await _run(resource, "UPDATE product SET stock = stock + ? WHERE id = ?", more)
    return f"Purchase {purchase_id} is cancelled."


async def _run(resource: ForkableResource, query: str, parameters: list[Any]) -> Any:
    return await resource.step("execute_sql", {"query": query, "parameters": parameters})
