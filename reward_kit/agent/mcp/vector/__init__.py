# SPDX-License-Identifier: Apache-2.0
"""Many MCP environments at once, as users of the public package know them: `make` them, and `rollout` a policy in them.

The modules `reward_kit.mcp_env`, `reward_kit.mcp` and `reward_kit.playback_policy` keep the import paths. New code is
better off with `McpEnvironment` in a run, which loses nothing when it is killed.
"""
