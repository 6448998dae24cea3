# SPDX-License-Identifier: Apache-2.0
"""MCP: tools that servers of the Model Context Protocol offer, as a world of ours; and our tools as such a server.

protocol   what goes over the wire           results    what a call's result means for a model
contract   one connection to a server        client     eras, lists of tools, calls
stdio      … to a process on this machine    pool       processes that are started ahead
sandboxed  … to a process in a sandbox       environment  a world of its own for each rollout
http       … to an address                   server     any environment's tools, for other people's agents
gym_server   servers of the older public package, as they were written
"""
