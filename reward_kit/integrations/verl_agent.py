# SPDX-License-Identifier: Apache-2.0
"""A world of ours in verl: its tools as verl's tools, and an agent loop that gives every episode a world of its own.

    # my_agent.py, named in verl's `agent_loop_config_path` as  {name: dial, _target_: my_agent.DialLoop}
    DialLoop = verl_agent_loop("my_worlds:Dial", "my_rewards:opened", failed_score=0.0)

verl creates and releases a tool for every single call, so a tool has nowhere to keep a world. The loop has: tools
called within it act on the world of their episode. Tools without the loop (`verl_tools`) open a world when they are
created and close it when they are released. verl is imported by the functions here only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple
from uuid import uuid4

from reward_kit.agent.tools import Tool
from reward_kit.config_models import AgentConfig
from reward_kit.errors import EnvironmentFailure, ItemError
from reward_kit.integrations.judged_world import JudgedWorld, JudgedWorlds, known_tools
from reward_kit.integrations.world_session import WorldSession, sample_from_row
from reward_kit.models import Completion, Message

__all__ = ["verl_agent_loop", "verl_tools"]


class _Played(NamedTuple):
    """An episode that is being played. verl runs the calls of a turn at the same time; a world takes one by one."""

    episode: JudgedWorld
    turn: asyncio.Lock


_playing: ContextVar[_Played | None] = ContextVar("playing", default=None)
"""The episode of the agent loop in which a tool is called."""


class _Instances(dict[str, _Played]):
    """The instances of a tool by their names."""

    def __missing__(self, name: str) -> _Played:
        told = f"There is no instance {name!r} of this tool. Call `create` first."
        raise EnvironmentFailure(told, retryable=False)


def verl_tools(
    environment: Any,
    reward: Callable[..., Any] | str | None = None,
    *,
    failed_score: float,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
    tools: Sequence[Tool] | None = None,
) -> list[Any]:
    """The world's tools, each a `BaseTool` of verl.

    `create(create_kwargs=row)` opens a world for a row of the dataset, `execute` calls the tool and gives what the
    world gave for that step, `calc_reward` judges the episode, `release` closes the world. Within `verl_agent_loop`
    they act on the world of the loop's episode.
    """
    try:
        from verl.tools.base_tool import BaseTool
        from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse
    except ImportError as error:
        raise ImportError("verl_tools needs verl. Install it with: pip install verl") from error

    known = known_tools(environment) if tools is None else list(tools)
    worlds = JudgedWorlds(environment, reward, params, reward_params, config)

    class WorldTool(BaseTool):  # type: ignore[misc]  # verl has no types to check against
        """One tool of the world; an instance of it is an episode."""

        def __init__(self, tool: Tool) -> None:
            super().__init__({}, OpenAIFunctionToolSchema.model_validate(_schema(tool)))
            self._instances = _Instances()

        async def create(
            self, instance_id: str | None = None, create_kwargs: Mapping[str, Any] | None = None, **_: Any
        ) -> tuple[str, Any]:
            """Open a world, unless the agent loop has; what it shows first."""
            name, playing = instance_id or str(uuid4()), _playing.get()
            if playing is not None:
                self._instances[name] = playing
                return name, ToolResponse()
            episode = worlds.fresh()
            opening = await episode.session.reset_async(sample_from_row(create_kwargs or {}))
            self._instances[name] = _Played(episode, asyncio.Lock())
            return name, ToolResponse(text=_text(opening) or None)

        async def execute(
            self, instance_id: str, parameters: dict[str, Any], **_: Any
        ) -> tuple[Any, float, dict[str, Any]]:
            """Call the tool: what it shows, what the world gave for the step, and whether the call failed."""
            played = self._instances[instance_id]
            session = played.episode.session
            async with played.turn:
                if session.ended is not None:
                    return ToolResponse(text="The episode is over."), 0.0, {}
                shown = await session.call_async(self.name, parameters)
                failed = float(session.last_call_failed)
                return ToolResponse(text=shown), session.rewards[-1], {"failed": failed}

        async def calc_reward(self, instance_id: str, **_: Any) -> float:
            """What the episode is worth up to now."""
            return await asyncio.to_thread(self._instances[instance_id].episode.earned_or, failed_score)

        async def release(self, instance_id: str, **_: Any) -> None:
            """Close the world, unless it is the loop's."""
            played = self._instances.pop(instance_id, None)
            if played is not None and played is not _playing.get():
                await played.episode.session.close_async()

    return [WorldTool(tool) for tool in known]


def verl_agent_loop(
    environment: Any,
    reward: Callable[..., Any] | str | None = None,
    *,
    failed_score: float,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
    tools: Sequence[Tool] | None = None,
) -> type[Any]:
    """A `ToolAgentLoop` of verl whose episodes have a world each. Its `reward_score` is what the episode was worth.

    The ground truth is that of verl's `reward_model` column; what `extra_info` holds are further columns. What the
    world shows first comes after the prompt. `judged` among the extra fields is 0 where `failed_score` stands in for a
    verdict.
    """
    try:
        from verl.experimental.agent_loop.agent_loop import ToolListWrap
        from verl.experimental.agent_loop.tool_agent_loop import AgentState, ToolAgentLoop
    except ImportError as error:
        raise ImportError("verl_agent_loop needs verl. Install it with: pip install verl") from error

    worlds = JudgedWorlds(environment, reward, params, reward_params, config)
    ours = verl_tools(environment, failed_score=failed_score, params=params, config=config, tools=tools)

    class WorldLoop(ToolAgentLoop):  # type: ignore[misc]  # verl has no types to check against
        """verl's own loop over tools, within a world."""

        def __init__(self, *arguments: Any, tools: Any = None, **options: Any) -> None:
            others = tools.tools if tools is not None else []
            super().__init__(*arguments, tools=ToolListWrap([*others, *ours]), **options)

        async def run(self, sampling_params: dict[str, Any], priority: int = 0, **row: Any) -> Any:
            """Play one episode and judge it."""
            played = _Played(worlds.fresh(), asyncio.Lock())
            session, prompt = played.episode.session, list(row.pop("raw_prompt"))
            within = _playing.set(played)
            try:
                shown = await _opening(session, _sample_row(prompt, row))
                output = await super().run(sampling_params, priority, raw_prompt=[*prompt, *shown], **row)
                await self._last_words(session, output)
                earned = await asyncio.to_thread(played.episode.earned)
            finally:
                _playing.reset(within)
                await session.close_async()
            output.reward_score = failed_score if earned is None else earned
            output.extra_fields["judged"] = float(earned is not None)
            return output

        async def _handle_processing_tools_state(self, agent_data: Any) -> Any:
            """Run the calls of a turn, and let the model not go on in a world that is over or gone."""
            state, playing = await super()._handle_processing_tools_state(agent_data), _playing.get()
            session = None if playing is None else playing.episode.session
            is_over = session is not None and (session.ended is not None or session.failure is not None)
            return AgentState.TERMINATED if is_over else state

        async def _last_words(self, session: WorldSession, output: Any) -> None:
            """Let the world, and so the reward, know what the model said in the end, which no tool was told."""
            ids, mask = output.response_ids, output.response_mask
            begin = next((place for place in range(len(mask), 0, -1) if not mask[place - 1]), 0)
            _, calls = await self.tool_parser.extract_tool_calls(ids[begin:], [tool.tool_schema for tool in ours])
            if begin == len(mask) or calls:
                return  # verl's own limits cut the episode off before the calls were made, or after
            text = self.tokenizer.decode(ids[begin:], skip_special_tokens=True)
            broken_off = "length" if len(mask) >= self.response_length else "stop"
            await session.last_words_async(
                Completion(message=Message(role="assistant", content=text), finish_reason=broken_off)
            )

    return WorldLoop


async def _opening(session: WorldSession, row: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return [message.as_request() for message in await session.reset_async(row)]
    except ItemError:
        return []  # noted by the session: verl generates all the same, and is told the failed score


def _sample_row(prompt: list[Any], row: Mapping[str, Any]) -> dict[str, Any]:
    truth = (row.get("reward_model") or {}).get("ground_truth")
    return {**(row.get("extra_info") or {}), "prompt": prompt, "ground_truth": truth}


def _schema(tool: Tool) -> dict[str, Any]:
    """The tool's schema as verl has it: each property has a `type`, which may be a list."""
    found: dict[str, Any] = {"type": "function", "function": dict(tool.spec["function"])}
    properties = {
        name: {"type": [each.get("type", "string") for each in schema["anyOf"]], **schema}
        if "anyOf" in schema
        else {"type": "string", **schema}
        for name, schema in tool.parameters.get("properties", {}).items()
    }
    found["function"]["parameters"] = {"type": "object", **tool.parameters, "properties": properties}
    return found


def _text(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.text for message in messages)
