# SPDX-License-Identifier: Apache-2.0
"""Many environments behind an MCP server: `make` them, and `rollout` a policy in them. See docs/mcp.md."""

from reward_kit.agent.mcp.vector.environments import GeneralMCPVectorEnv, make
from reward_kit.agent.mcp.vector.policy import FireworksPolicy, LLMBasePolicy
from reward_kit.agent.mcp.vector.rollout import rollout, test_mcp
from reward_kit.agent.mcp.vector.types import DatasetRow, MCPSession, MCPToolCall, Trajectory

__all__ = [
    "DatasetRow",
    "FireworksPolicy",
    "GeneralMCPVectorEnv",
    "LLMBasePolicy",
    "MCPSession",
    "MCPToolCall",
    "MCPVectorEnv",
    "Trajectory",
    "make",
    "rollout",
    "test_mcp",
]

MCPVectorEnv = GeneralMCPVectorEnv
