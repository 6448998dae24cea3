# SPDX-License-Identifier: Apache-2.0
"""A world of ours in OpenEnv's harness: sessions that list tools, have them called, and have the end judged.

    sessions = openenv_sessions("my_worlds:Dial", "my_rewards:opened")     a `ResourceSessionFactory`
    session = sessions.create({"prompt": "Open it.", "answer": 7})          one episode: a `ResourceSession`

    build_harness_rollout_func(session_factory=openenv_sessions(…, failed_score=0.0), …)       as TRL's `rollout_func`

OpenEnv is imported by the function here only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reward_kit.config_models import AgentConfig
from reward_kit.errors import ConfigError, ItemError
from reward_kit.integrations.judged_world import JudgedWorld, JudgedWorlds
from reward_kit.integrations.turns import prompt_turns
from reward_kit.integrations.world_session import sample_from_row
from reward_kit.models import Message, Sample

__all__ = ["openenv_sessions"]

_log = logging.getLogger(__name__)


def openenv_sessions(
    environment: Any,
    reward: Callable[..., Any] | str | None = None,
    *,
    failed_score: float | None = None,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
) -> Any:
    """OpenEnv's `ResourceSessionFactory` over worlds of ours. A task is a row of the dataset, or only its prompt.

    An episode that cannot be judged is worth `failed_score`. The default, None, is OpenEnv's word for "not scored";
    `build_harness_rollout_func` cannot take it and needs a number.
    """
    try:
        from openenv.core.env_server.mcp_types import Tool
        from openenv.core.harness import (
            RESERVED_TOOL_NAMES,
            ResourceSession,
            ResourceSessionFactory,
            ToolResult,
            VerifyResult,
        )
    except ImportError as error:
        raise ImportError("openenv_sessions needs OpenEnv. Install it with: pip install openenv") from error
    worlds = JudgedWorlds(environment, reward, params, reward_params, config)

    class WorldSession(ResourceSession):  # type: ignore[misc]  # known only here
        """One episode in a world of ours."""

        def __init__(self, sample: Sample) -> None:
            self._episode = _Episode(worlds.fresh(), sample)

        def initial_messages(self) -> list[dict[str, Any]]:
            """The prompt, and what the world shows first."""
            return [message.as_request() for message in self._episode.opening]

        def list_tools(self) -> list[Any]:
            """The tools as they are now."""
            return [Tool(**fields) for fields in self._episode.tools(RESERVED_TOOL_NAMES)]

        def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
            """What calling the tool shows, and whether the episode is over."""
            return ToolResult(**self._episode.called(name, arguments))

        def verify(self, transcript: list[dict[str, Any]], final_state: Any = None) -> Any:
            """What the episode was worth."""
            return VerifyResult(**self._episode.verified(transcript, failed_score))

        def close(self) -> None:
            """Close the world."""
            self._episode.session.close()

    class WorldSessions(ResourceSessionFactory):  # type: ignore[misc]
        """A fresh world for every episode."""

        def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> WorldSession:
            """Begin an episode. A world finds a seed among the columns of its sample."""
            named = {"seed": seed, "id": episode_id}
            row = dict(task) if isinstance(task, Mapping) else {"prompt": task}
            row = {**{name: value for name, value in named.items() if value is not None}, **row}
            return WorldSession(sample_from_row(row))

    return WorldSessions()


class _Episode:
    """What a session of OpenEnv does, in values that are not OpenEnv's."""

    def __init__(self, judged: JudgedWorld, sample: Sample) -> None:
        self._judged, self.session = judged, judged.session
        self.opening = list(sample.messages)
        try:
            self.opening += self.session.reset(sample)
        except ItemError as error:  # raised here it would end the training; so this one episode fails
            _log.warning("an episode could not begin: %s", error)

    def tools(self, reserved: frozenset[str]) -> list[dict[str, Any]]:
        tools = [] if self.session.failure is not None else self.session.tools
        taken = next((tool.name for tool in tools if tool.name in reserved), None)
        if taken is not None:
            raise ConfigError(f"OpenEnv keeps the name {taken!r} for itself. Give the tool another name.")
        return [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
            for tool in tools
        ]

    def called(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        session = self.session
        if session.failure is not None or session.ended is not None:
            return {"data": "The episode is over.", "done": True}
        try:
            shown = session.call(name, arguments)
        except ItemError as error:
            return {"data": str(error), "done": True, "error": str(error)}
        return {
            "data": shown,
            "done": session.ended is not None,
            "error": shown if session.last_call_failed else None,
            # Not named `reward`: OpenEnv would take it for that of the whole episode.
            "metadata": {"step_reward": session.rewards[-1]},
        }

    def verified(self, transcript: Sequence[Any], failed_score: float | None) -> dict[str, Any]:
        last = Message.model_validate(prompt_turns(transcript[-1])[0]) if transcript else None
        if last is not None and last.role == "assistant" and not last.tool_calls:
            self.session.last_words(last)
        earned = self._judged.earned()
        return {
            "env_reward": failed_score if earned is None else earned,
            "done": self.session.ended is not None,
            "metrics": {"judged": float(earned is not None), "ended": self.session.ended},
        }
