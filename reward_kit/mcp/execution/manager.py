# SPDX-License-Identifier: Apache-2.0
"""Acting in many environments, where users of the public package import it from."""

from reward_kit.agent.mcp.vector.rollout import ExecutionManager

__all__ = ["ExecutionManager"]
