# SPDX-License-Identifier: Apache-2.0
"""Agents: a model that acts in a world, turn by turn. The public names of this room, each imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reward_kit.agent.environment import Answer, Environment, World
    from reward_kit.agent.episode import Episodes
    from reward_kit.agent.tools import Hidden, Tool, ToolError, tool

__all__ = ["Answer", "Environment", "Episodes", "Hidden", "Tool", "ToolError", "World", "tool"]

_PLACES = {
    "Answer": "environment",
    "Environment": "environment",
    "World": "environment",
    "Episodes": "episode",
    "Hidden": "tools",
    "Tool": "tools",
    "ToolError": "tools",
    "tool": "tools",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
