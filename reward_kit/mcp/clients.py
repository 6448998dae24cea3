# SPDX-License-Identifier: Apache-2.0
"""The client of an intermediary, where users of the public package import it from."""

from reward_kit.agent.mcp.vector.intermediary import IntermediaryMCPClient

__all__ = ["IntermediaryMCPClient"]
