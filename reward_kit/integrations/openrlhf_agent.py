# SPDX-License-Identifier: Apache-2.0
"""A world of ours in OpenRLHF: its own loop over turns, in which each episode has a world and is judged in the end.

    # my_agent.py, given as  --train.agent_func_path my_agent.py
    AgentExecutor = openrlhf_agent("my_worlds:Dial", "my_rewards:opened", failed_score=0.0)

OpenRLHF knows only text. Tool calls are read from it, in any of the usual formats; say in the prompt which tools there
are. It asks an agent nothing more when the room for tokens is used up, and never closes one: so the executor judges the
episode and closes its world, however it ended. OpenRLHF is imported by the function here only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from reward_kit.config_models import AgentConfig
from reward_kit.errors import ItemError
from reward_kit.integrations.judged_world import JudgedWorld, JudgedWorlds
from reward_kit.integrations.world_session import sample_from_row
from reward_kit.models import Message

__all__ = ["openrlhf_agent"]

_log = logging.getLogger(__name__)

_playing: ContextVar[JudgedWorld] = ContextVar("playing")
"""The episode that the executor at work has opened for its agent."""


def openrlhf_agent(
    environment: Any,
    reward: Callable[..., Any] | str | None = None,
    *,
    failed_score: float,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
    written: Callable[[Sequence[Message]], str] | None = None,
) -> type[Any]:
    """The `AgentExecutor` class that OpenRLHF looks for in the file of an agent.

    An episode earns what the world gave for its steps, and what the reward says of the whole besides; `failed_score`,
    with `judged` 0 among the logs, where it cannot be judged. `written` makes text of what the world shows, with the
    marks that the model's chat template has between turns; without it, only their texts are written.
    """
    try:
        from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor
        from torch import tensor
    except ImportError as error:
        raise ImportError("openrlhf_agent needs OpenRLHF. Install it with: pip install openrlhf") from error
    worlds, write = JudgedWorlds(environment, reward, params, reward_params, config), written or _plain

    class AgentInstance(AgentInstanceBase):  # type: ignore[misc]  # OpenRLHF has no types to check against
        """A world of ours, stepped through by OpenRLHF."""

        def __init__(self) -> None:
            self._session = _playing.get().session

        async def reset(self, states: Mapping[str, Any], **_: Any) -> dict[str, Any]:
            """Begin the episode: `observation` is the prompt, `label` what a right answer looks like."""
            prompt = states["observation"]
            try:
                opening = await self._session.reset_async(
                    sample_from_row({"prompt": prompt, "ground_truth": states.get("label")})
                )
            except ItemError as error:  # raised here it would end the training; so this one episode fails
                _log.warning("an episode could not begin: %s", error)
                return {"observation": prompt}
            return {"observation": f"{prompt}{write(opening)}" if opening else prompt}

        async def step(self, states: Mapping[str, Any], **_: Any) -> dict[str, Any]:
            """Have the world answer `action_text`."""
            session = self._session
            if session.failure is not None:
                return _step(tensor(0.0), "", done=True)
            try:
                answer = await session.say_async(states["action_text"])
            except ItemError as error:
                _log.warning("an episode failed: %s", error)
                return _step(tensor(0.0), "", done=True)
            done = session.ended is not None
            shown = "" if done or not answer.messages else write(answer.messages)
            return _step(tensor(answer.reward or 0.0), shown, done=done)

    class AgentExecutor(MultiTurnAgentExecutor):  # type: ignore[misc]
        """OpenRLHF's own loop, with a world for each episode."""

        def __init__(self) -> None:
            super().__init__(AgentInstance)

        async def execute(self, *arguments: Any, **options: Any) -> dict[str, Any]:
            """Play one episode, judge it and close its world."""
            episode = worlds.fresh()
            session, before = episode.session, _playing.set(episode)
            try:
                response: dict[str, Any] = await super().execute(*arguments, **options)
                verdict = await asyncio.to_thread(episode.earned)
                steps = session.rewards if session.failure is None else []
            finally:
                _playing.reset(before)
                await session.close_async()
            by_steps = sum(steps) if worlds.judge is not None else 0.0
            earned = failed_score if verdict is None else verdict + by_steps
            cut_off = session.failure is None and session.ended is None
            logs = {"judged": float(verdict is not None), "steps": float(len(steps))}  # OpenRLHF takes only numbers
            return {
                **response, "reward": earned, "scores": earned, "extra_logs": logs,
                "truncated": bool(response["truncated"] or cut_off),
            }  # fmt: skip

    return AgentExecutor


def _plain(messages: Sequence[Message]) -> str:
    return "".join(f"\n{message.text}" for message in messages)


def _step(reward: Any, shown: str, *, done: bool) -> dict[str, Any]:
    return {"rewards": reward, "environment_feedback": shown, "done": done}
