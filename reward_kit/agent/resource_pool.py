# SPDX-License-Identifier: Apache-2.0
"""ResourcePool: resources by name, who uses them, and closing those that nobody uses any more."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from reward_kit.agent.resource_abc import ForkableResource

__all__ = ["ResourcePool"]

_log = logging.getLogger(__name__)


class ResourcePool:
    """Resources that tasks share. If an operation fails, it is logged and returns None."""

    def __init__(self) -> None:
        """An empty pool."""
        self.resources: dict[str, ForkableResource] = {}
        self.resource_tasks: dict[str, set[str]] = {}
        self.task_resources: dict[str, set[str]] = {}
        self._forks: dict[str, list[ForkableResource]] = {}
        self._making: dict[str, asyncio.Lock] = {}

    async def create_resource(
        self,
        resource_type: type[ForkableResource],
        resource_id: str,
        config: dict[str, Any],
        task_id: str | None = None,
    ) -> ForkableResource | None:
        """The resource of that name, made and set up by whoever asks first; None where that fails."""
        async with self._making.setdefault(resource_id, asyncio.Lock()):
            resource = self.resources.get(resource_id)
            if resource is None:
                resource = await self._made(resource_type, resource_id, config)
                if resource is None:
                    return None
                self.resources[resource_id] = resource
            if task_id is not None:
                self.resource_tasks.setdefault(resource_id, set()).add(task_id)
                self.task_resources.setdefault(task_id, set()).add(resource_id)
            return resource

    def get_resource(self, resource_id: str) -> ForkableResource | None:
        """The resource of that name, or None."""
        return self.resources.get(resource_id)

    async def fork_resource_for_task(self, resource_id: str, task_id: str) -> ForkableResource | None:
        """A fork for a task, closed with the task's other resources; None where it cannot be made."""
        base = self.resources.get(resource_id)
        if base is None:
            _log.error("There is no resource %r to fork; create it first.", resource_id)
            return None
        try:
            forked = await base.fork()
        except Exception as error:  # noqa: BLE001 - a named boundary: somebody's resource
            _log.error("Resource %r could not be forked for task %r: %s", resource_id, task_id, error)
            return None
        self._forks.setdefault(task_id, []).append(forked)
        return forked

    async def cleanup_task_resources(self, task_id: str) -> None:
        """Close a task's forks, and the resources that no other task uses."""
        for forked in self._forks.pop(task_id, []):
            await self._closed(forked, f"a fork of task {task_id!r}")
        for resource_id in sorted(self.task_resources.pop(task_id, ())):
            users = self.resource_tasks.get(resource_id, set())
            users.discard(task_id)
            if not users:
                await self.close_resource(resource_id)

    async def close_resource(self, resource_id: str) -> None:
        """Close a resource and forget it."""
        resource = self.resources.pop(resource_id, None)
        self.resource_tasks.pop(resource_id, None)
        self._making.pop(resource_id, None)
        for owned in self.task_resources.values():
            owned.discard(resource_id)
        if resource is not None:
            await self._closed(resource, f"resource {resource_id!r}")

    async def close_all_resources(self) -> None:
        """Close everything."""
        for task_id in [*self._forks, *self.task_resources]:
            await self.cleanup_task_resources(task_id)
        for resource_id in list(self.resources):
            await self.close_resource(resource_id)
        self.task_resources.clear()

    async def _made(
        self, kind: type[ForkableResource], resource_id: str, config: dict[str, Any]
    ) -> ForkableResource | None:
        resource = kind()
        try:
            await resource.setup(config)
        except Exception as error:  # noqa: BLE001 - a named boundary: somebody's resource
            _log.error("Resource %r (%s) could not be set up: %s", resource_id, kind.__name__, error)
            await self._closed(resource, f"resource {resource_id!r}")
            return None
        return resource

    async def _closed(self, resource: ForkableResource, what: str) -> None:
        try:
            await resource.close()
        except Exception as error:  # noqa: BLE001 - a named boundary: somebody's resource
            _log.error("Closing %s failed: %s", what, error)
