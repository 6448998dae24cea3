# SPDX-License-Identifier: Apache-2.0
"""Policies that ask a model, where users of the public package import them from."""

from reward_kit.agent.mcp.vector.policy import FireworksPolicy, LLMBasePolicy

__all__ = ["FireworksPolicy", "LLMBasePolicy"]
