# SPDX-License-Identifier: Apache-2.0
"""Orchestrator: one episode of a task, played and judged, as the inherited package does it.

For several episodes, and for runs that can be gone on with, there are `TaskManager` and `reward-kit agent-eval`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from reward_kit.agent.agent_model import model_settings
from reward_kit.agent.episode import Episodes
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resource_environment import resource_class
from reward_kit.agent.resource_tools import load_registry, registry_tools, resource_tools
from reward_kit.agent.rl_rollout_worker import ground_truth_of
from reward_kit.agent.task_environment import MAX_STEPS_PER_USER_TURN, TaskEnvironment, opening_messages, user_turns
from reward_kit.agent.task_reward import RecordedResource, task_reward
from reward_kit.agent.tool_registry import ToolRegistry
from reward_kit.config_models import AgentConfig, GenerationConfig
from reward_kit.errors import ConfigError, RewardKitError
from reward_kit.generation.factory import make_client
from reward_kit.models import Rollout, Sample, TaskDefinitionModel
from reward_kit.reward_call import MADE_WITH, RewardCall

__all__ = ["MAX_STEPS_PER_USER_TURN", "Orchestrator", "agent_settings"]

_log = logging.getLogger(__name__)


def agent_settings(task: TaskDefinitionModel) -> dict[str, Any]:
    """The limits of a task's episodes, as settings of a run's `agent`; the task's own key `agent` comes last."""
    settings: dict[str, Any] = {
        "max_turns": MAX_STEPS_PER_USER_TURN * max(1, len(user_turns(task))),
        "stop_pattern": task.termination_regex,
    }
    if resource_class(task.resource_type).durability == "restart":
        settings["durability"] = "restart"
    return {**settings, **((task.model_extra or {}).get("agent") or {})}


class Orchestrator:
    """Plays one task with the model that MODEL_AGENT names, and judges it."""

    def __init__(self, task_definition: TaskDefinitionModel) -> None:
        """Nothing is loaded or set up yet."""
        self.task_definition = task_definition
        self.base_resource: ForkableResource | None = None
        self.tools_module: ToolRegistry | None = None
        self.reward_function: Callable[..., Any] | None = None

    async def setup_base_resource(self) -> None:
        """Set up a resource to look at. Episodes have their own, which are forks of another one of the same config."""
        await self.close()
        resource = self._get_resource_class(self.task_definition.resource_type)()
        try:
            await resource.setup(self.task_definition.base_resource_config)
        except BaseException:
            await resource.close()
            raise
        self.base_resource = resource

    async def close(self) -> None:
        """Close the resource."""
        resource, self.base_resource = self.base_resource, None
        if resource is not None:
            await resource.close()

    async def execute_task_poc(self, sample_data: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Play one episode and judge it: `evaluation_result` and `reward_function_inputs`; or `error`."""
        try:
            await self._load_task_components()
            rollout = await self._played(sample_data or {})
            if rollout.failure is not None:
                return {"error": rollout.failure.message}
            return await self._judged(rollout)
        except RewardKitError as error:
            _log.error("Task %r failed: %s", self.task_definition.name, error)
            return {"error": str(error)}

    async def _load_task_components(self) -> bool:
        """Load the tools and the reward that the task names."""
        task = self.task_definition
        if task.tools_module_path:
            self.tools_module = load_registry(task.tools_module_path)
        try:
            self.reward_function = RewardCall(task.reward_function_path).func
        except ImportError as error:
            raise ConfigError(f"The task's reward cannot be loaded: {error}") from error
        return True

    def _get_resource_class(self, resource_type_name: str) -> type[ForkableResource]:
        """The class of a resource by the name that a task gives it."""
        return resource_class(resource_type_name)

    async def _get_available_tools(self, episode_resource: ForkableResource) -> dict[str, Callable[..., Any]]:
        """The task's tools as functions of their arguments (a dict), by name."""
        registered = [] if self.tools_module is None else registry_tools(self.tools_module, episode_resource)
        return {tool.name: tool.call for tool in [*await resource_tools(episode_resource), *registered]}

    async def _played(self, data: dict[str, Any]) -> Rollout:
        task = self.task_definition
        extra = (task.model_extra or {}).get("generation") or {}
        generation = GenerationConfig.model_validate({**extra, **model_settings()})
        environment = TaskEnvironment(task)
        sample = Sample(id=task.name, messages=opening_messages(task), ground_truth=ground_truth_of(task), columns=data)
        client = make_client(generation)
        try:
            agent = AgentConfig.model_validate(agent_settings(task))
            episodes = Episodes(client, generation.sampling(), generation.price, environment, agent)
            (rollout,) = await episodes(sample, (0,))
            return rollout
        finally:
            await client.close()
            await environment.close()

    async def _judged(self, rollout: Rollout) -> dict[str, Any]:
        task = self.task_definition
        made = getattr(task_reward, MADE_WITH)({"reward": task.reward_function_path, "task": task.name})
        call = RewardCall(made)
        arguments = call.arguments_of([rollout])
        result = await call.judge_async(arguments) if call.is_async else call.judge(arguments)
        facts = rollout.facts or {}
        inputs = {
            "messages": [message.model_dump(exclude_none=True) for message in rollout.messages],
            "state": {
                "resource": RecordedResource(facts.get("state")),
                "successful_func_calls": facts.get("successful_func_calls", []),
            },
            "task_achieved": bool(facts.get("task_achieved")),
            "task_definition_name": task.name,
            "ground_truth": rollout.sample.ground_truth,
        }
        return {"evaluation_result": result, "reward_function_inputs": inputs}
