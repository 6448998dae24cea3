# SPDX-License-Identifier: Apache-2.0
"""Policies that play a recording, where users of the public package import them from."""

from reward_kit.agent.mcp.vector.playback import PlaybackPolicyBase

__all__ = ["PlaybackPolicyBase"]
