# SPDX-License-Identifier: Apache-2.0
"""The adapter of an `McpGym`, where users of the public package import it from."""

from reward_kit.agent.mcp.gym_server import EnvironmentAdapter

__all__ = ["EnvironmentAdapter"]
