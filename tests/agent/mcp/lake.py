# SPDX-License-Identifier: Apache-2.0
"""A server of the older public package, written as its users wrote theirs: a lake that is walked over."""

from typing import Any, ClassVar

from reward_kit.mcp.adapter import EnvironmentAdapter
from reward_kit.mcp.mcpgym import McpGym, control_plane_endpoint
from reward_kit.models import Message
from tests.agent.worlds import call, calls


def walks(messages: list[Message], draw: int) -> Message:
    """A model that always walks to the right."""
    return calls(call("lake_move", {"action": "right"}, f"c{len(messages)}"))


class Context:
    """Stands for the class of the package `mcp`."""


class Lake:
    """Five places in a row. The last one is the shore, and the first step off the first one is a hole."""

    closed: ClassVar[list[int]] = []

    def __init__(self, length: int = 5) -> None:
        self.length, self.place = length, 0

    def reset(self, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        self.place = (seed or 0) % (self.length - 1)
        return self.place, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.place += action
        over = self.place < 0 or self.place == self.length - 1
        return self.place, float(self.place == self.length - 1), over, False, {"moved": action}


class LakeAdapter(EnvironmentAdapter):
    ACTION_NAMES: ClassVar[dict[str, int]] = {"LEFT": -1, "RIGHT": 1}

    def create_environment(self, config: dict[str, Any] | None = None) -> Lake:
        return Lake(**(config or {}))

    def reset_environment(self, env: Lake, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        return env.reset(seed=seed)

    def step_environment(self, env: Lake, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return env.step(action)

    def close_environment(self, env: Lake) -> None:
        Lake.closed.append(env.place)

    def parse_action(self, action_str: str) -> int:
        if action_str not in self.ACTION_NAMES:
            raise ValueError(f"Invalid action '{action_str}'. Valid actions: {list(self.ACTION_NAMES)}")
        return self.ACTION_NAMES[action_str]

    def format_observation(self, observation: int) -> dict[str, Any]:
        return {"position": observation}

    def get_action_space_description(self) -> dict[str, Any]:
        return {"type": "discrete", "actions": list(self.ACTION_NAMES)}

    def get_default_config(self) -> dict[str, Any]:
        return {"length": 5}


class LakeMcp(McpGym):
    def __init__(self, seed: int | None = None):
        super().__init__("Lake-v1", LakeAdapter(), seed)

    def _register_tools(self) -> None:
        @self.mcp.tool(name="lake_move", description="Move on the lake. Actions: LEFT, RIGHT.")
        def lake_move(action: str, ctx: Context) -> dict[str, Any]:
            action_int = self.adapter.parse_action(action.strip().upper())
            session_id = self._get_session_id(ctx)
            self._get_or_create_session(ctx)
            observation = self._execute_session_environment_step(session_id, action_int)
            observation["action"] = action
            return observation

    @control_plane_endpoint("/control/place")
    def get_place_endpoint(self, session_data: dict[str, Any]) -> dict[str, Any]:
        return {"place": session_data["obs"]}

    @staticmethod
    def format_observation(obs: int, env: Lake) -> dict[str, Any]:
        return {"position": int(obs), "of": env.length}
