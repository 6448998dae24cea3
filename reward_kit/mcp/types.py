# SPDX-License-Identifier: Apache-2.0
"""What moves in a rollout over MCP environments, where users of the public package import it from."""

from reward_kit.agent.mcp.vector.types import DatasetRow, MCPSession, MCPToolCall, Trajectory

__all__ = ["DatasetRow", "MCPSession", "MCPToolCall", "Trajectory"]
