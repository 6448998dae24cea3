# SPDX-License-Identifier: Apache-2.0
"""The environment of an inherited agent task: its resource, its tools, its server, and the turns its user says.

    task definition (YAML) ─▶ TaskEnvironment ─▶ one TaskWorld per episode ─▶ facts that rewards read

A user's next turn comes when the model answers without a call, or has acted `MAX_STEPS_PER_USER_TURN` times.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.agent.environment import Answer, World, WorldAround
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resource_environment import ResourceEnvironment, resource_class
from reward_kit.agent.resource_server import ResourceServer
from reward_kit.agent.result_transform import read_transform
from reward_kit.models import EvaluationCriteriaModel, Message, Sample, TaskDefinitionModel

__all__ = ["MAX_STEPS_PER_USER_TURN", "TaskEnvironment", "TaskWorld", "opening_messages", "user_turns"]

MAX_STEPS_PER_USER_TURN = 10
"""How often the model may act before the user says his next turn."""
_GOAL = "Act with your tools until the episode is over."


def user_turns(task: TaskDefinitionModel) -> list[list[Message]]:
    """What the user says, turn by turn, at most `poc_max_turns` of them. A turn may be several messages.

    As in the inherited package, a turn whose content is a JSON list of messages stands for these.
    """
    said = [Message.model_validate(message) for message in task.messages or []]
    turns = [_in_one(message) for message in said if message.role == "user"]
    if not turns and task.initial_user_prompt:
        turns = [[Message(role="user", content=task.initial_user_prompt)]]
    return turns[: task.poc_max_turns]


def opening_messages(task: TaskDefinitionModel) -> list[Message]:
    """What an episode begins with: system messages, and the user's first turn.

    Where the task says nothing itself, and its resource is to speak first, the task's goal.
    """
    said = [Message.model_validate(message) for message in task.messages or []]
    system = [message for message in said if message.role == "system"]
    turns = user_turns(task)
    if not system and not turns and resource_class(task.resource_type).start is not World.start:
        return [Message(role="system", content=task.goal_description or task.description or _GOAL)]
    return [*system, *(turns[0] if turns else [])]


def _in_one(message: Message) -> list[Message]:
    content = message.content
    if isinstance(content, str) and content.lstrip().startswith("["):
        try:
            parts = json.loads(content)
        except ValueError:
            return [message]
        if parts and all(isinstance(part, dict) and "role" in part and "content" in part for part in parts):
            return [Message.model_validate(part) for part in parts]
    return [message]


class TaskEnvironment(ResourceEnvironment):
    """Opens the worlds of one task."""

    def __init__(self, task: TaskDefinitionModel | Mapping[str, Any], *, cwd: str | None = None) -> None:
        """Take the definition; its server, if it has one, is started in the directory `cwd`."""
        self.task = task if isinstance(task, TaskDefinitionModel) else TaskDefinitionModel.model_validate(dict(task))
        super().__init__(
            self.task.resource_type, self.task.base_resource_config, tools=self.task.tools_module_path
        )  # fmt: skip
        if (criteria := self.task.evaluation_criteria) and criteria.expected_query_result_transform:
            read_transform(criteria.expected_query_result_transform)  # refused now rather than after the episode
        served = self.task.resource_server
        self._server = None if served is None else ResourceServer(served, cwd)
        self._starting = asyncio.Lock()

    async def open(self, sample: Sample) -> TaskWorld:
        """A world around a fork of the task's resource."""
        await self._serve()
        resource = await (await self.fork()).begin(sample, self._registry)
        return TaskWorld(resource, user_turns(self.task)[1:], self.task.evaluation_criteria)

    async def close(self) -> None:
        """Close the resource and end the server."""
        await super().close()
        if self._server is not None:
            await self._server.close()

    async def _serve(self) -> None:
        if self._server is None:
            return
        async with self._starting:
            if not self._server.port:
                await self._server.start()
                self._config["base_url"] = self._server.url


class TaskWorld(WorldAround):
    """One episode of a task: the user's turns, around a resource."""

    def __init__(
        self, resource: ForkableResource, later: Sequence[list[Message]], criteria: EvaluationCriteriaModel | None
    ) -> None:
        """`later` are the user's turns after the first; `criteria` say what is asked of the resource in the end."""
        super().__init__(resource)
        self.resource = resource
        self._later = later
        self._criteria = criteria
        self._said = 0
        self._steps = 0
        self._done: list[list[dict[str, Any]]] = [[]]

    async def answer(self, message: Message) -> Answer:
        """What the calls came to, and what the user says next, where it is his turn."""
        answer = await self.resource.answer(message)
        self._note_calls(message)
        self._steps += 1
        if message.tool_calls and (answer.done or self._steps < MAX_STEPS_PER_USER_TURN):
            return answer
        if self._said >= len(self._later) or await self.resource.is_over():
            return Answer(answer.messages, done=True)
        said = self._later[self._said]
        self._said += 1
        self._steps = 0
        self._done.append([])
        return Answer([*answer.messages, *said])

    async def facts(self) -> dict[str, Any]:
        """The final state, the calls that went well by the user's turns, and whether the final query says so."""
        told = {**await super().facts(), "successful_func_calls": self._done}
        query = self._criteria.final_state_query if self._criteria else None
        if self._criteria is not None and query:
            outcome = await self.resource.step("execute_sql", {"query": query, "fetch_mode": "val"})
            transform = self._criteria.expected_query_result_transform
            achieved = read_transform(transform)(outcome) if transform else outcome
            told |= {"final_state": outcome, "task_achieved": bool(achieved)}
        return told

    async def snapshot(self) -> bytes:
        """The state of the resource, and how far the user is."""
        head = json.dumps({"said": self._said, "steps": self._steps, "done": self._done}).encode()
        state: bytes = await super().snapshot()
        return len(head).to_bytes(8, "big") + head + state

    async def restore(self, state: bytes) -> None:
        """Take over what `snapshot` wrote."""
        size = int.from_bytes(state[:8], "big")
        head = json.loads(state[8 : 8 + size])
        self._said, self._steps, self._done = head["said"], head["steps"], head["done"]
        await super().restore(state[8 + size :])

    def _note_calls(self, message: Message) -> None:
        wrong = {use.id for use in self.runner.uses if use.error not in (None, "output_cut")}
        for call in message.tool_calls or []:
            if call.id not in wrong:
                arguments = call.function.arguments
                self._done[-1].append({"name": call.function.name, "args": json.loads(arguments or "{}")})
