# SPDX-License-Identifier: Apache-2.0
"""A policy acts in many MCP environments. Policies that ask a model do so in each environment at its own pace."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reward_kit.agent.mcp.vector.environments import GeneralMCPVectorEnv, StepResult, make
from reward_kit.agent.mcp.vector.playback import ENVIRONMENT, PlaybackPolicyBase, playback_file
from reward_kit.agent.mcp.vector.policy import LLMBasePolicy
from reward_kit.agent.mcp.vector.types import DatasetRow, MCPSession, MCPToolCall, Trajectory
from reward_kit.errors import ItemError
from reward_kit.storage.files import Draft

__all__ = ["ExecutionManager", "rollout", "test_mcp"]

Policy = Callable[..., Any]


async def rollout(
    envs: GeneralMCPVectorEnv, policy: Policy, steps: int = 512, openai_format_log_file: str | None = None
) -> list[Trajectory]:
    """Let a policy act in each environment until it ends, for at most `steps` steps.

    An environment or a model that fails has a trajectory with an `error`, and a total reward that is no number.
    """
    return await ExecutionManager().execute_rollout(envs, policy, steps, openai_format_log_file)


async def test_mcp(base_url: str, seeds: list[int]) -> dict[str, Any]:
    """Try a server: an environment for each seed is begun, its tools are listed, and it is ended."""
    results: dict[str, Any] = {"total_tests": len(seeds), "successful": 0, "results": []}
    for seed in seeds:
        envs = make(base_url, seeds=[seed])
        try:
            observations, tools, _ = await envs.reset()
            told = {"seed": seed, "status": "success", "tools": [tool["name"] for tool in tools[0]]}
            results["results"].append({**told, "initial_observation": observations[0]})
            results["successful"] += 1
        except ItemError as error:
            results["results"].append({"seed": seed, "status": "failed", "error": str(error)})
        finally:
            await envs.close()
    return results


test_mcp.__test__ = False  # type: ignore[attr-defined]  # an inherited name, and no test


class ExecutionManager:
    """Begins sessions, acts in them, and ends them."""

    async def initialize_sessions(self, sessions: list[MCPSession]) -> None:
        """Begin all sessions."""
        rows = [session.dataset_row or DatasetRow(session.session_id, session.seed, "", "", {}) for session in sessions]
        envs = GeneralMCPVectorEnv(sessions, rows)
        for session in sessions:
            session._exit_stack = envs
        await envs.reset()

    async def close_sessions(self, sessions: list[MCPSession]) -> None:
        """End all sessions."""
        for envs in {session._exit_stack for session in sessions if session._exit_stack is not None}:
            await envs.close()
        for session in sessions:
            session._exit_stack = None

    async def execute_rollout(
        self, envs: GeneralMCPVectorEnv, policy: Policy, steps: int = 512, openai_format_log_file: str | None = None
    ) -> list[Trajectory]:
        """As `rollout` does."""
        began = time.monotonic()
        trajectories = [Trajectory(session, [], [], [], False, 0.0, 0, 0.0) for session in envs.sessions]
        file = playback_file()
        acting = _Acting(envs, policy, steps, trajectories, records=file is not None and not file.exists())
        try:
            observations, _, _ = await envs.reset()
            for trajectory, observation in zip(trajectories, observations, strict=True):
                trajectory.observations.append(observation)
            if isinstance(policy, PlaybackPolicyBase):
                await asyncio.gather(*(acting.alone(index) for index in range(envs.n)))
            else:
                await acting.together()
        finally:
            await envs.close()
            if isinstance(policy, LLMBasePolicy):
                await policy.close()
        for trajectory in trajectories:
            trajectory.duration = time.monotonic() - began
        if openai_format_log_file is not None:
            _write_log(openai_format_log_file, policy, trajectories)
        return trajectories


class _Acting:
    """One rollout under way."""

    def __init__(
        self, envs: GeneralMCPVectorEnv, policy: Policy, steps: int, trajectories: list[Trajectory], *, records: bool
    ) -> None:
        self._envs = envs
        self._policy = policy
        self._steps = steps
        self._trajectories = trajectories
        self._records = records

    async def alone(self, index: int) -> None:
        """Act in one environment, waiting for no other."""
        ENVIRONMENT.set(index)  # a task has a context of its own
        trajectory = self._trajectories[index]
        try:
            for step in range(self._steps):
                (call,) = await self._decide([index])
                self._note(index, step, call, await self._envs.step_one(index, call))
                if trajectory.terminated:
                    return
        except ItemError as error:
            trajectory.error, trajectory.total_reward = str(error), math.nan

    async def together(self) -> None:
        """Act in all environments step by step: the policy is asked for all that have not ended at once."""
        for step in range(self._steps):
            active = [index for index, trajectory in enumerate(self._trajectories) if not _is_over(trajectory)]
            if not active:
                return
            calls = await self._decide(active)
            stepped = await asyncio.gather(
                *(self._envs.step_one(index, call) for index, call in zip(active, calls, strict=True)),
                return_exceptions=True,
            )
            for index, call, result in zip(active, calls, stepped, strict=True):
                if isinstance(result, ItemError):
                    trajectory = self._trajectories[index]
                    trajectory.error, trajectory.total_reward = str(result), math.nan
                elif isinstance(result, BaseException):
                    raise result
                else:
                    self._note(index, step, call, result)

    async def _decide(self, indices: list[int]) -> list[MCPToolCall]:
        envs = self._envs
        seen = [trajectory.observations[-1] for trajectory in self._trajectories]
        prompts = envs.format_user_prompts(seen)
        decided = self._policy(
            [envs.tool_schemas[index] for index in indices],
            [seen[index] for index in indices],
            [envs.dataset_rows[index].system_prompt for index in indices],
            [prompts[index] for index in indices],
        )
        calls: list[MCPToolCall] = await decided if inspect.isawaitable(decided) else decided
        return calls

    def _note(self, index: int, step: int, call: MCPToolCall, result: StepResult) -> None:
        trajectory = self._trajectories[index]
        action = f"{call.tool_name}({call.arguments})"
        if call.tool_name not in ("_no_tool_call", "_playback_terminate"):
            self._tell_policy(index, step, call, result)
        trajectory.observations.append(result.observation)
        trajectory.actions.append(action)
        trajectory.rewards.append(result.reward)
        trajectory.total_reward += result.reward
        trajectory.steps += 1
        plane = result.info.get("control_plane", {})
        trajectory.control_plane_steps.append(
            {"step": step, "reward": result.reward, "terminated": result.done, "info": plane, "tool_call": action}
        )
        if result.done:
            trajectory.terminated = True
            trajectory.control_plane_summary = {
                "total_reward": trajectory.total_reward,
                "termination_reason": next(iter(result.info), "control_plane_signal"),
                "final_step": step,
                "control_plane_source": plane,
            }

    def _tell_policy(self, index: int, step: int, call: MCPToolCall, result: StepResult) -> None:
        tell = getattr(self._policy, "add_tool_response", None)
        if tell is None:
            return
        seen = result.observation
        text = json.dumps(seen) if isinstance(seen, dict) else str(seen)
        tell(index, call, text, result.reward, result.done, result.info)
        if self._records and hasattr(self._policy, "log_conversation_state_for_playback"):
            self._policy.log_conversation_state_for_playback(index, step)


def _is_over(trajectory: Trajectory) -> bool:
    return trajectory.terminated or trajectory.error is not None


def _write_log(path: str, policy: Policy, trajectories: list[Trajectory]) -> None:
    """The conversations of the environments that ended, as chat messages with what they were worth."""
    histories = getattr(policy, "conversation_histories", {})
    with Draft(Path(path)) as draft:
        for index, trajectory in enumerate(trajectories):
            if not trajectory.terminated or not histories.get(index):
                continue
            metadata = {
                "session_id": trajectory.session.session_id,
                "seed": trajectory.session.seed,
                "total_steps": trajectory.steps,
                "total_reward": trajectory.total_reward,
                "terminated": True,
                "success": trajectory.total_reward > 0,
                "control_plane_summary": trajectory.control_plane_summary,
            }
            draft.write(json.dumps({"messages": histories[index], "metadata": metadata}).encode() + b"\n")
