# SPDX-License-Identifier: Apache-2.0
"""RLRolloutWorker: one episode of a task, with a policy that is not a run's model: a trainer's own, or a script.

For whole evaluations, durable and resumable, use `reward-kit agent-eval` or a run with an `agent:` section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from reward_kit.agent.environment import Answer, World
from reward_kit.agent.models import StepData
from reward_kit.agent.open_world import as_answer, ask_world, open_world
from reward_kit.agent.policy_interface import AgentPolicy
from reward_kit.agent.task_environment import TaskEnvironment, TaskWorld, opening_messages
from reward_kit.config_models import AgentConfig
from reward_kit.errors import EnvironmentFailure, RewardError, boundary
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message, Sample, TaskDefinitionModel

__all__ = ["RLRolloutWorker", "ground_truth_of"]


def ground_truth_of(task: TaskDefinitionModel) -> dict[str, Any] | None:
    """What a task's reward is told is right; None where the task says nothing of it."""
    criteria = task.evaluation_criteria
    if criteria is None:
        return None
    return {
        "function_calls": criteria.ground_truth_function_calls,
        "comparable_state": criteria.ground_truth_comparable_state,
    }


class PolicyFailure(RewardError):
    """The policy raised, or returned something that is no action."""


class RLRolloutWorker:
    """Plays episodes of one task with one policy."""

    def __init__(self, task_definition: TaskDefinitionModel, agent_policy: AgentPolicy, max_episode_steps: int) -> None:
        """An episode ends after `max_episode_steps` at the latest."""
        if max_episode_steps < 1:
            raise ValueError(f"max_episode_steps is {max_episode_steps}; an episode has at least one step")
        self.task_definition = task_definition
        self.agent_policy = agent_policy
        self.max_episode_steps = max_episode_steps
        self._stop = re.compile(task_definition.termination_regex) if task_definition.termination_regex else None

    async def run_episode(self) -> tuple[list[StepData], list[Message], dict[str, Any] | None]:
        """Play one episode: its steps, all its messages, and the task's ground truth.

        The last step says in `step_info["terminated_by"]` why the episode ended: `done`, `answered`, `terminate`,
        `regex`, `max_steps` or `error`. An error before the first step is raised.
        """
        task, config = self.task_definition, AgentConfig()
        environment = TaskEnvironment(task)
        sample = Sample(id=task.name, messages=opening_messages(task))
        try:
            async with open_world(environment, sample, config) as world:
                shown = as_answer(await ask_world(config, "start", world.start))
                episode = _Episode(world, [*sample.messages, *shown.messages], config)
                await self._play(episode)
        finally:
            await environment.close()
        return episode.steps, episode.messages, ground_truth_of(task)

    async def _play(self, episode: _Episode) -> None:
        while True:
            try:
                why = await self._step(episode)
            except (EnvironmentFailure, PolicyFailure) as error:
                if not episode.steps:
                    raise
                episode.end("error", str(error))
                return
            if why is None and len(episode.steps) >= self.max_episode_steps:
                why = "max_steps"
            if why is not None:
                episode.end(why)
                return

    async def _step(self, episode: _Episode) -> str | None:
        """One step; why the episode is over after it, if it is."""
        observation = await episode.observation()
        specs = [tool.spec for tool in episode.world.tools]
        with boundary(PolicyFailure, f"The policy {type(self.agent_policy).__name__!r}"):
            action, raw, log_probs, value = await self.agent_policy.get_action(observation, specs)
            message = _message(action, len(episode.steps))
        answer = Answer(done=True) if message is None else await episode.act(message)
        episode.steps.append(
            StepData(
                system_step_index=len(episode.steps),
                observation_data=observation,
                action_taken=dict(action),
                raw_policy_output=raw,
                resulting_messages_history=list(episode.messages),
                policy_logprobs=log_probs,
                policy_value_estimate=value,
                step_info=episode.info(answer, message),
                base_reward=answer.reward,
            )
        )
        if message is None:
            return "terminate"
        if self._stop is not None and self._stop.search(message.text):
            return "regex"
        return None if not answer.done else "done" if message.tool_calls else "answered"


class _Episode:
    """What has happened so far."""

    def __init__(self, world: World, messages: list[Message], config: AgentConfig) -> None:
        self.world = world
        self.messages = messages
        self.steps: list[StepData] = []
        self._config = config
        self._turns = 0

    async def observation(self) -> dict[str, Any]:
        shown = None
        if isinstance(self.world, TaskWorld):
            shown = await ask_world(self._config, "describe", self.world.resource.describe)
        return {"messages": [message.model_dump(exclude_none=True) for message in self.messages], "state": shown}

    async def act(self, message: Message) -> Answer:
        self.messages.append(message)
        self._turns += 1
        self.world.runner.begin_turn()
        answer = as_answer(await ask_world(self._config, "answer", self.world.answer, message))
        self.messages += answer.messages
        return answer

    def info(self, answer: Answer, message: Message | None) -> dict[str, Any]:
        uses = self.world.runner.uses if message is not None else []
        info: dict[str, Any] = {"calls": [use.model_dump(exclude_none=True) for use in uses]}
        if message is not None:
            info["assistant_turn_index"] = self._turns - 1
        return {**info, "state": answer.state} if answer.state is not None else info

    def end(self, why: str, error: str | None = None) -> None:
        last = self.steps[-1]
        last.is_done = True
        last.step_info["terminated_by"] = why
        if error is not None:
            last.step_info["error"] = error


def _message(action: Mapping[str, Any], step: int) -> Message | None:
    """An action as a message of the assistant; None for the wish to end."""
    kind = action.get("type")
    if kind == "terminate":
        return None
    if kind == "text":
        return Message(role="assistant", content=str(action.get("content") or ""))
    if kind == "tool_call":
        asked = [action, *action.get("further_calls", ())]
        calls = [_call(each, f"call_{step}_{place}") for place, each in enumerate(asked)]
        return Message(role="assistant", content=action.get("content") or "", tool_calls=calls)
    raise ValueError(f"an action is of type 'text', 'tool_call' or 'terminate', not {kind!r}")


def _call(asked: Mapping[str, Any], key: str) -> ChatCompletionMessageToolCall:
    arguments = asked.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ChatCompletionMessageToolCall(id=key, function=FunctionCall(name=str(asked["name"]), arguments=text))
