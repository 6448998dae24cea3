# SPDX-License-Identifier: Apache-2.0
"""The import paths of the public package for environments behind MCP servers. What they name is in `agent.mcp`."""

from __future__ import annotations

from typing import Any

__all__ = ["EnvironmentAdapter", "McpGym"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reward_kit.agent.mcp import gym_server  # here: most who import from this package need no server

    return getattr(gym_server, name)
