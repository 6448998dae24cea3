# SPDX-License-Identifier: Apache-2.0
"""Resources by name: made once, forked for tasks, closed when nobody uses them."""

from __future__ import annotations

import asyncio
from typing import Any

from reward_kit.agent.resource_pool import ResourcePool
from reward_kit.agent.resources import PythonStateResource


class Counted(PythonStateResource):
    """Counts how many are open."""

    open = 0

    async def setup(self, config: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        if config.get("broken"):
            raise OSError("broken")
        type(self).open += 1
        await super().setup(config)

    async def fork(self) -> Any:
        if self.get_state().get("unforkable"):
            raise OSError("no")
        type(self).open += 1
        return await super().fork()

    async def close(self) -> None:
        type(self).open -= 1
        await super().close()


async def test_a_resource_lives_as_long_as_a_task_uses_it() -> None:
    Counted.open = 0
    pool = ResourcePool()
    both = await asyncio.gather(*(pool.create_resource(Counted, "r", {}, task) for task in ("a", "b")))
    assert both[0] is both[1] is pool.get_resource("r")
    fork = await pool.fork_resource_for_task("r", "a")
    assert fork is not None and Counted.open == 2
    await pool.cleanup_task_resources("a")
    assert Counted.open == 1 and pool.get_resource("r") is not None
    await pool.cleanup_task_resources("b")
    assert Counted.open == 0 and pool.get_resource("r") is None
    await pool.create_resource(Counted, "r", {})
    await pool.close_all_resources()
    assert Counted.open == 0 and pool.resources == {}


async def test_what_fails_is_none_and_leaves_nothing(caplog: Any) -> None:
    Counted.open = 1  # the one that fails closes itself
    pool = ResourcePool()
    assert await pool.create_resource(Counted, "r", {"broken": True}) is None
    assert await pool.fork_resource_for_task("r", "a") is None
    await pool.create_resource(Counted, "u", {"initial_state": {"unforkable": 1}})
    assert await pool.fork_resource_for_task("u", "a") is None
    await pool.close_resource("missing")
    await pool.close_all_resources()
    assert Counted.open == 0
    assert "broken" in caplog.text
