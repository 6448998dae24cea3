# SPDX-License-Identifier: Apache-2.0
"""An environment of ours as a `MultiTurnEnv` of verifiers before 0.4. Not imported but by the function that makes one.

    env = verifiers_env("savings.py:Savings", "savings.py:reached", failed_score=0.0, dataset=dataset)
    await env.evaluate(client, "my-model", rollouts_per_example=4)

verifiers 0.4 has no such class: there, tools are MCP servers, and `reward_kit.agent.mcp.server` serves any environment.
It makes a zero of every error in a reward: so an episode that cannot be judged earns `failed_score`, with an `error`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reward_kit.agent.tools import Tool
from reward_kit.config_models import AgentConfig
from reward_kit.errors import ItemError
from reward_kit.integrations.judged_world import JudgedWorld, JudgedWorlds, known_tools
from reward_kit.integrations.world_session import sample_from_row
from reward_kit.models import Message

__all__ = ["verifiers_env"]

_HERE = "reward_kit_episode"
"""Where an episode's world is in the state of its rollout."""


def verifiers_env(
    environment: Any,
    reward: Callable[..., Any] | str | None = None,
    *,
    failed_score: float,
    dataset: Any,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
    tools: Sequence[Tool] | None = None,
    **options: Any,
) -> Any:
    """A `MultiTurnEnv` over `dataset`; the `options` are those of verifiers' own class.

    Without a `reward`, what the world gave for the steps counts. Tools that change during an episode are not shown.
    """
    try:
        import verifiers as vf

        base: Any = vf.MultiTurnEnv
    except (ImportError, AttributeError) as error:
        raise ImportError(
            "verifiers_env needs verifiers before 0.4. Install it with: pip install 'verifiers<0.4'. For 0.4, serve "
            "the tools: python -m reward_kit.agent.mcp.server"
        ) from error
    worlds = JudgedWorlds(environment, reward, params, reward_params, config)
    offered = [_tool_definition(tool) for tool in (known_tools(environment) if tools is None else tools)]

    async def earned_score(state: Any) -> float:
        """What the episode was worth."""
        episode: JudgedWorld = state[_HERE]
        earned = await asyncio.to_thread(episode.earned)
        await episode.session.close_async()
        if earned is not None:
            return earned
        why = episode.session.failure or "the reward failed"
        state["error"] = state.get("error") or vf.Error(f"The episode could not be judged: {why}")
        return failed_score

    class WorldEnv(base):  # type: ignore[misc]  # verifiers has no types to check against
        """A world of ours, stepped through by verifiers."""

        async def setup_state(self, state: Any) -> None:
            """Open a world; what it shows first comes after the prompt."""
            prompt = [_plain(message) for message in state["prompt"]]
            row = {**(state.get("info") or {}), "prompt": prompt, "answer": state.get("answer")}
            episode = worlds.fresh()
            state[_HERE] = episode
            try:
                opening = await episode.session.reset_async(sample_from_row(row))
            except ItemError as failure:
                raise vf.InfraError(str(failure)) from failure
            state["prompt"] = [*state["prompt"], *map(_for_verifiers, opening)]

        async def env_response(self, messages: Any, state: Any, **_: Any) -> list[dict[str, Any]]:
            """What comes back after the model's last message; the end of the episode where it is over."""
            episode: JudgedWorld = state[_HERE]
            try:
                answer = await episode.session.act_async(_from_verifiers(messages[-1]))
            except ItemError as failure:
                raise vf.InfraError(str(failure)) from failure
            shown = [_for_verifiers(message) for message in answer.messages]
            if episode.session.ended is not None:
                state["final_env_response"] = shown
            return shown

    return WorldEnv(dataset=dataset, tool_defs=offered, rubric=vf.Rubric(funcs=[earned_score]), **options)


def _tool_definition(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _plain(message: Any) -> dict[str, Any]:
    fields: dict[str, Any] = dict(message) if isinstance(message, Mapping) else message.model_dump(exclude_none=True)
    return fields


def _from_verifiers(message: Any) -> Message:
    """verifiers' message as ours: its tool calls are flat."""
    fields = _plain(message)
    calls = [
        call
        if "function" in call
        else {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in map(_plain, fields.get("tool_calls") or ())
    ]
    content = fields.get("content")
    return Message.model_validate({"role": "assistant", "content": content, "tool_calls": calls or None})


def _for_verifiers(message: Message) -> dict[str, Any]:
    """Our message as verifiers takes it."""
    shown: dict[str, Any] = {"role": message.role, "content": message.text}
    return shown if message.tool_call_id is None else {**shown, "tool_call_id": message.tool_call_id}
