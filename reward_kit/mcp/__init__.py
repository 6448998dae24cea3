# SPDX-License-Identifier: Apache-2.0
"""The import paths of the public package for environments behind MCP servers. What they name is in `agent.mcp`."""
