# SPDX-License-Identifier: Apache-2.0
"""One environment, every trainer: an environment of ours in the shape that each trainer's own loop steps through.

    trl_environment(…)        GRPOTrainer(environment_factory=…): a class whose methods are the tools
    skyrl_text_env(…)         a `BaseTextEnv` of SkyRL: text in, text out, rewards by step
    openrlhf_agent(…)         an `AgentInstanceBase` of OpenRLHF: the same, asynchronous
    openenv_session(…)        OpenEnv's `ResourceSession`: initial messages, tools, calls, verdict

No trainer is imported here but by the function that makes its class. A `reward` judges the whole episode in the end, as
it would in a run; without one, what the world gave for the steps counts. What cannot be judged is never a zero: TRL and
OpenEnv are told `None`, the others `failed_score`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from reward_kit.agent.environment import Environment, FunctionsWorld, World
from reward_kit.agent.tools import Tool, tools_of_class
from reward_kit.config_models import AgentConfig
from reward_kit.errors import ConfigError, ItemError
from reward_kit.integrations.trainer_reward import TrainerReward
from reward_kit.integrations.world_session import WorldSession, environment_from, sample_from_row
from reward_kit.models import Message
from reward_kit.utils.module_loader import load_object

__all__ = ["openenv_session", "openrlhf_agent", "skyrl_text_env", "trl_environment"]

_TYPES: dict[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip


class _Episode(NamedTuple):
    """What an adapter needs for one episode at a time: the world, and who judges it."""

    session: WorldSession
    judge: TrainerReward | None

    def earned(self) -> float | None:
        """What the episode is worth; None where it cannot be judged."""
        if self.judge is None:
            return sum(self.session.rewards)
        try:
            payload = self.judge.call.payload_of(self.session.rollout())
        except ItemError:
            return None
        (earned,) = self.judge.judge([payload])
        return None if earned.error is not None else earned.score


def _judge(reward: Callable[..., Any] | str | None, params: Mapping[str, Any] | None) -> TrainerReward | None:
    return None if reward is None else TrainerReward(reward, failed_score=0.0, params=params)


# ── TRL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def trl_environment(
    environment: Any,
    reward: Callable[..., Any] | str | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
    tools: Sequence[Tool] | None = None,
    ground_truth: str | None = None,
) -> type[Any]:
    """A class for TRL's `environment_factory`: its methods are the world's tools, and `get_reward` judges the episode.

    TRL wants to know the tools beforehand. They are taken from the class of worlds; where `environment` is something
    else, give `tools`. Tools that change during an episode are not shown by TRL.
    """
    known = _known_tools(environment) if tools is None else list(tools)
    shared, judge = environment_from(environment, params), _judge(reward, reward_params)

    def __init__(self: Any) -> None:
        self._episode = _Episode(WorldSession(shared, config), judge)

    def reset(self: Any, **row: Any) -> str | None:
        """Begin a new episode for a row of the dataset."""
        opening = self._episode.session.reset(sample_from_row(row, ground_truth))
        return "\n\n".join(message.text for message in opening) or None

    def get_reward(self: Any) -> float | None:
        """What the episode was worth; None where it cannot be judged, which TRL leaves out."""
        episode: _Episode = self._episode
        return episode.earned()

    members: dict[str, Any] = {"__init__": __init__, "reset": reset, "get_reward": get_reward}
    for tool in known:
        if tool.name in {"reset", "get_reward"}:
            raise ConfigError(f"TRL has a method {tool.name!r} of its own. Give the tool another name.")
        members[tool.name] = _method(tool)
    name = getattr(environment, "__name__", str(environment).rpartition(":")[2] or "Environment")
    return type(f"{name}ForTRL", (), members)


def _known_tools(environment: Any) -> list[Tool]:
    named = load_object(environment) if isinstance(environment, str) else environment
    if isinstance(named, type) and issubclass(named, World) and named is not FunctionsWorld:
        return tools_of_class(named)
    raise ConfigError(
        "Which tools there are can only be told of a class of worlds. Give `tools`, or name such a class."
    )


def _method(tool: Tool) -> Callable[..., str]:
    """A method that calls the tool, with the signature and the docstring that TRL makes its schema of."""
    properties = tool.parameters.get("properties", {})
    required = set(tool.parameters.get("required", ()))

    def method(self: Any, **arguments: Any) -> str:
        session: WorldSession = self._episode.session
        return session.call(tool.name, arguments)

    kinds = {name: _TYPES.get(str(schema.get("type")), str) for name, schema in properties.items()}
    parameters = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=kind,
            default=inspect.Parameter.empty if name in required else properties[name].get("default"),
        )
        for name, kind in kinds.items()
    ]  # fmt: skip
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    described = [f"    {name}: {schema.get('description') or name}" for name, schema in properties.items()]
    method.__name__ = method.__qualname__ = tool.name
    method.__annotations__ = {**kinds, "return": str}
    method.__doc__ = "\n".join([tool.description or tool.name, *(["", "Args:", *described] if described else [])])
    vars(method)["__signature__"] = inspect.Signature([own, *parameters], return_annotation=str)
    return method


# ── SkyRL and OpenRLHF: text in, text out ────────────────────────────────────────────────────────────────────────────


def skyrl_text_env(
    environment: Any,
    reward: Callable[..., Any] | str | None = None,
    *,
    failed_score: float,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
) -> type[Any]:
    """A `BaseTextEnv` class of SkyRL. Tool calls are read from the model's text, in any of the usual dialects.

    Each step earns what the world gave for it; the last one, what the reward says of the whole episode besides.
    """
    try:
        from skyrl_gym.envs.base_text_env import BaseTextEnv
    except ImportError as error:
        raise ImportError("skyrl_text_env needs skyrl-gym. Install it with: pip install skyrl-gym") from error
    shared, judge = environment_from(environment, params), _judge(reward, reward_params)

    class TextWorld(BaseTextEnv):  # type: ignore[misc]  # SkyRL has no types to check against
        """A world of ours, stepped through by SkyRL."""

        def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
            super().__init__()
            row = dict(extras or {})
            row.update(row.pop("reward_spec", None) or {})
            self._row = row
            self._episode = _Episode(WorldSession(shared, config), judge)

        def init(self, prompt: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
            """Begin the episode; what the world shows first comes after the prompt."""
            opening = self._episode.session.reset(sample_from_row({**self._row, "prompt": list(prompt)}))
            return [*prompt, *map(_as_dict, opening)], {}

        def step(self, action: str) -> dict[str, Any]:
            """Have the world answer the text."""
            session = self._episode.session
            try:
                answer = session.say(action)
            except ItemError as error:  # the world is gone, and with it the episode
                return _text_step([], failed_score, done=True, metadata={"error": str(error)})
            done = session.ended is not None
            earned = _last(self._episode, failed_score) if done and judge is not None else 0.0
            shown = [] if done else [_as_dict(message) for message in answer.messages]
            return _text_step(shown, (answer.reward or 0.0) + earned, done=done, metadata={"ended": session.ended})

        def get_metrics(self) -> dict[str, float]:
            """How many steps the episode had."""
            return {"steps": float(len(self._episode.session.rewards))}

        def close(self) -> None:
            """Close the world."""
            self._episode.session.close()

    return TextWorld


def _last(episode: _Episode, failed_score: float) -> float:
    earned = episode.earned()
    return failed_score if earned is None else earned


def _text_step(shown: list[Any], reward: float, *, done: bool, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "observations": shown, "reward": reward, "done": done, "metadata": metadata, "postprocessed_action": None,
    }  # fmt: skip


def _as_dict(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.text}


def openrlhf_agent(
    environment: Any,
    reward: Callable[..., Any] | str | None = None,
    *,
    failed_score: float,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
    base: type[Any] = object,
) -> type[Any]:
    """An `AgentInstance` class for OpenRLHF (give its `AgentInstanceBase` as `base`).

    Its rewards are summed by OpenRLHF: each step earns what the world gave for it, the last one the reward besides.
    """
    shared, judge = environment_from(environment, params), _judge(reward, reward_params)

    class AgentInstance(base):  # type: ignore[misc]  # known only when it is called
        """A world of ours, stepped through by OpenRLHF."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            if base is not object:
                super().__init__(*arguments, **options)
            self._episode = _Episode(WorldSession(shared, config), judge)

        async def reset(self, states: Mapping[str, Any], **_: Any) -> dict[str, Any]:
            """Begin an episode: `observation` is the prompt, `label` what a right answer looks like."""
            row = {"prompt": states.get("observation", ""), "ground_truth": states.get("label")}
            opening = await self._episode.session.reset_async(sample_from_row(row))
            shown = "".join(f"\n{message.text}" for message in opening)
            return {"observation": f"{states.get('observation', '')}{shown}"}

        async def step(self, states: Mapping[str, Any], **_: Any) -> dict[str, Any]:
            """Have the world answer `action_text`."""
            import asyncio

            session = self._episode.session
            try:
                answer = await session.say_async(str(states.get("action_text", "")))
            except ItemError as error:
                return _openrlhf_step(failed_score, "", done=True, logs={"error": str(error)})
            done = session.ended is not None
            earned = answer.reward or 0.0
            if done and judge is not None:
                earned += await asyncio.to_thread(_last, self._episode, failed_score)
            shown = "" if done else "\n".join(message.text for message in answer.messages)
            return _openrlhf_step(earned, shown, done=done, logs={"steps": len(session.rewards)})

    return AgentInstance


def _openrlhf_step(reward: float, shown: str, *, done: bool, logs: dict[str, Any]) -> dict[str, Any]:
    return {
        "rewards": reward, "scores": reward, "environment_feedback": shown, "done": done, "extra_logs": logs,
    }  # fmt: skip


# ── OpenEnv ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _OpenEnvSession:
    """OpenEnv's session: the trainer's harness asks for messages and tools, calls them, and has the end judged."""

    def __init__(self, episode: _Episode, opening: list[Message]) -> None:
        self._episode, self._opening = episode, opening

    def initial_messages(self) -> list[dict[str, Any]]:
        """The prompt, and what the world shows first."""
        return [message.as_request() for message in self._opening]

    def list_tools(self) -> list[dict[str, Any]]:
        """The tools as they are now."""
        return [dict(tool.spec["function"]) for tool in self._episode.session.tools]

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What calling the tool shows, and whether the episode is over."""
        session = self._episode.session
        shown = session.call(name, arguments)
        told = shown if session.last_call_failed else None
        return {"data": shown, "done": session.ended is not None, "metadata": {}, "error": told}

    def verify(self, transcript: Sequence[Any], final_state: Any = None) -> dict[str, Any]:
        """What the episode was worth; a reward of None is OpenEnv's word for "not judged"."""
        earned = self._episode.earned()
        return {"env_reward": earned, "done": True, "metrics": {}, "artifacts": {}}

    def close(self) -> None:
        """Close the world."""
        self._episode.session.close()


def openenv_session(
    environment: Any,
    task: Mapping[str, Any],
    reward: Callable[..., Any] | str | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
) -> _OpenEnvSession:
    """One episode as OpenEnv's `ResourceSession`; `task` is a row of the dataset."""
    shared: Environment = environment_from(environment, params)
    episode = _Episode(WorldSession(shared, config), _judge(reward, reward_params))
    sample = sample_from_row(task)
    opening = episode.session.reset(sample)
    return _OpenEnvSession(episode, [*sample.messages, *opening])
