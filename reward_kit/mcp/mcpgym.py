# SPDX-License-Identifier: Apache-2.0
"""`McpGym`, where users of the public package import it from."""

from reward_kit.agent.mcp.gym_server import McpGym, control_plane_endpoint

__all__ = ["McpGym", "control_plane_endpoint"]
