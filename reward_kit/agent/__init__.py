# SPDX-License-Identifier: Apache-2.0
"""Agents: episodes of many steps, the worlds they act in, and the credit that each step deserves.

The names below are the public ones. Each is imported when it is first used, so that `import reward_kit.agent` is cheap.
"""

from reward_kit.utils.lazy_names import lazy_names

TYPE_CHECKING = False
"""Type checkers take this to be true; `typing`, which has it too, is not imported for it."""

if TYPE_CHECKING:
    from reward_kit.agent.environment import Answer, Environment, World
    from reward_kit.agent.episode import Episodes
    from reward_kit.agent.mcp.environment import McpEnvironment
    from reward_kit.agent.mcp.several import McpServers
    from reward_kit.agent.models import StepData
    from reward_kit.agent.orchestrator import Orchestrator
    from reward_kit.agent.playback import Playback
    from reward_kit.agent.policy_interface import AgentPolicy
    from reward_kit.agent.resource_abc import ForkableResource
    from reward_kit.agent.resource_environment import ResourceEnvironment
    from reward_kit.agent.resource_pool import ResourcePool
    from reward_kit.agent.resources.bfcl_sim_api_resource import BFCLSimAPIResource
    from reward_kit.agent.resources.docker_resource import DockerResource
    from reward_kit.agent.resources.filesystem_resource import FileSystemResource
    from reward_kit.agent.resources.http_rollout_resource import HttpRolloutResource
    from reward_kit.agent.resources.python_state_resource import PythonStateResource
    from reward_kit.agent.resources.sql_resource import SQLResource
    from reward_kit.agent.rl_rollout_worker import RLRolloutWorker
    from reward_kit.agent.task_manager import TaskManager
    from reward_kit.agent.tool_registry import ToolRegistry
    from reward_kit.agent.tools import Hidden, Tool, ToolError, tool
    from reward_kit.agent.worker_worlds import in_worker

__all__ = [
    "AgentPolicy",
    "Answer",
    "BFCLSimAPIResource",
    "DockerResource",
    "Environment",
    "Episodes",
    "FileSystemResource",
    "ForkableResource",
    "Hidden",
    "HttpRolloutResource",
    "McpEnvironment",
    "McpServers",
    "Orchestrator",
    "Playback",
    "PythonStateResource",
    "RLRolloutWorker",
    "ResourceEnvironment",
    "ResourcePool",
    "SQLResource",
    "StepData",
    "TaskManager",
    "Tool",
    "ToolError",
    "ToolRegistry",
    "World",
    "in_worker",
    "tool",
]

_HOMES = {
    "AgentPolicy": "reward_kit.agent.policy_interface",
    "Answer": "reward_kit.agent.environment",
    "BFCLSimAPIResource": "reward_kit.agent.resources.bfcl_sim_api_resource",
    "DockerResource": "reward_kit.agent.resources.docker_resource",
    "Environment": "reward_kit.agent.environment",
    "Episodes": "reward_kit.agent.episode",
    "FileSystemResource": "reward_kit.agent.resources.filesystem_resource",
    "ForkableResource": "reward_kit.agent.resource_abc",
    "Hidden": "reward_kit.agent.tools",
    "HttpRolloutResource": "reward_kit.agent.resources.http_rollout_resource",
    "McpEnvironment": "reward_kit.agent.mcp.environment",
    "McpServers": "reward_kit.agent.mcp.several",
    "Orchestrator": "reward_kit.agent.orchestrator",
    "Playback": "reward_kit.agent.playback",
    "PythonStateResource": "reward_kit.agent.resources.python_state_resource",
    "RLRolloutWorker": "reward_kit.agent.rl_rollout_worker",
    "ResourceEnvironment": "reward_kit.agent.resource_environment",
    "ResourcePool": "reward_kit.agent.resource_pool",
    "SQLResource": "reward_kit.agent.resources.sql_resource",
    "StepData": "reward_kit.agent.models",
    "TaskManager": "reward_kit.agent.task_manager",
    "Tool": "reward_kit.agent.tools",
    "ToolError": "reward_kit.agent.tools",
    "ToolRegistry": "reward_kit.agent.tool_registry",
    "World": "reward_kit.agent.environment",
    "in_worker": "reward_kit.agent.worker_worlds",
    "tool": "reward_kit.agent.tools",
}
"""Where each public name lives."""


if not TYPE_CHECKING:  # a type checker sees the imports above, and no others
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)
