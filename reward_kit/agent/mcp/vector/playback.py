# SPDX-License-Identifier: Apache-2.0
"""Policies that say again what was recorded: `REWARD_KIT_PLAYBACK_FILE` names the file.

    not set                     the policy acts
    set, and no such file       the policy acts, and what it did is written there
    set, and there is a file    what the file says is done again; no model is asked

One line per environment and step: `{"env_index": 0, "step": 0, "messages": [...]}`.
"""

from __future__ import annotations

import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from reward_kit.agent.mcp.vector.types import MCPToolCall
from reward_kit.errors import ConfigError

_log = logging.getLogger(__name__)

__all__ = ["ENVIRONMENT", "PlaybackPolicyBase", "playback_file"]

ENVIRONMENT: ContextVar[int | None] = ContextVar("reward_kit_mcp_environment", default=None)
"""Which environment a policy is asked for, where it is asked for one alone."""


def playback_file() -> Path | None:
    """The file that is recorded to, or played."""
    name = os.environ.get("REWARD_KIT_PLAYBACK_FILE")
    return Path(name) if name else None


class PlaybackPolicyBase(ABC):
    """A policy that plays a recording where there is one, and acts by itself where there is none."""

    def __init__(self, _playback_actions: dict[str, list[dict[str, Any]]] | None = None, **kwargs: Any) -> None:
        """`_playback_actions` has the recorded steps by environment; default: those of REWARD_KIT_PLAYBACK_FILE."""
        file = playback_file()
        if _playback_actions is None and file is not None and file.exists():
            _playback_actions = self._load_trajectory_file(str(file))
        self._playback_actions = _playback_actions
        self._played: dict[str, int] = {}

    @staticmethod
    def _load_trajectory_file(filepath: str) -> dict[str, list[dict[str, Any]]]:
        """The recorded steps by environment, in order. A line that was cut off by a crash is left out."""
        actions: dict[str, list[dict[str, Any]]] = {}
        for number, line in enumerate(Path(filepath).read_text(encoding="utf-8").splitlines(), 1):
            try:
                entry = json.loads(line)
                step = {"step": int(entry["step"]), "messages": list(entry["messages"])}
                actions.setdefault(str(entry["env_index"]), []).append(step)
            except (ValueError, KeyError, TypeError):
                if line.strip():
                    _log.warning("Line %d of the recording %r is not a step, and is left out.", number, filepath)
        if not actions:
            raise ConfigError(
                f"The recording {filepath!r} holds no steps. Remove the file to record again, or name another file in "
                "REWARD_KIT_PLAYBACK_FILE."
            )
        for steps in actions.values():
            steps.sort(key=lambda step: int(step["step"]))
        return actions

    def is_playback_mode(self) -> bool:
        """Whether a recording is played."""
        return self._playback_actions is not None

    def has_more_playback_data(self, env_index: int) -> bool:
        """Whether the recording has another step of this environment."""
        return self._played.get(str(env_index), 0) < len((self._playback_actions or {}).get(str(env_index), ()))

    def get_playback_progress(self) -> dict[str, Any]:
        """How far the recording has been played."""
        if self._playback_actions is None:
            return {"playback_mode": False}
        environments = {
            int(key): {
                "current_step": self._played.get(key, 0),
                "total_steps": len(steps),
                "completed": self._played.get(key, 0) >= len(steps),
            }
            for key, steps in self._playback_actions.items()
        }
        return {"playback_mode": True, "environments": environments, "total_environments": len(environments)}

    async def __call__(
        self,
        tool_schemas: list[list[dict[str, Any]]],
        observations: list[Any],
        system_prompts: list[str],
        user_prompts: list[Any],
    ) -> list[MCPToolCall]:
        """A call for each environment: what was recorded, or what the policy decides."""
        if self.is_playback_mode():
            return [self._recorded_call(index) for index in self._indices(len(tool_schemas))]
        return await self._generate_live_tool_calls(tool_schemas, observations, system_prompts, user_prompts)

    @abstractmethod
    async def _generate_live_tool_calls(
        self,
        tool_schemas: list[list[dict[str, Any]]],
        observations: list[Any],
        system_prompts: list[str],
        user_prompts: list[Any],
    ) -> list[MCPToolCall]:
        """A call for each environment, decided by the policy itself."""

    @staticmethod
    def _indices(count: int) -> Sequence[int]:
        """Which environments the lists of a call are about."""
        alone = ENVIRONMENT.get()
        return [alone] if count == 1 and alone is not None else range(count)

    def _recorded_call(self, env_index: int) -> MCPToolCall:
        if not self.has_more_playback_data(env_index):
            return MCPToolCall("_playback_terminate", {"reason": "no_more_recorded_actions"})
        key = str(env_index)
        place = self._played.get(key, 0)
        self._played[key] = place + 1
        messages = (self._playback_actions or {})[key][place]["messages"]
        self._note_recorded(env_index, messages)
        return _last_call(messages)

    def _note_recorded(self, env_index: int, messages: list[dict[str, Any]]) -> None:  # noqa: B027 - may be left out
        """Called with what was recorded of a step, for policies that keep conversations."""


def _last_call(messages: Sequence[dict[str, Any]]) -> MCPToolCall:
    for message in reversed(messages):
        if message.get("role") == "assistant" and message.get("tool_calls"):
            function = message["tool_calls"][0].get("function", {})
            arguments = function.get("arguments") or {}
            return MCPToolCall(function["name"], json.loads(arguments) if isinstance(arguments, str) else arguments)
    return MCPToolCall("_no_tool_call", {"reason": "no_tool_call_recorded"})
