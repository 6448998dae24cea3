# SPDX-License-Identifier: Apache-2.0
"""An environment of ours in the shape that TRL's and SkyRL's own loops step through.

    trl_environment(…)        GRPOTrainer(environment_factory=…): a class whose methods are the tools
    skyrl_text_env(…)         a `BaseTextEnv` of SkyRL: text in, text out, rewards by step

For others: `verl_agent`, `openrlhf_agent`, `openenv_agent`, `verifiers_agent`. No trainer is imported here but by the
function that makes its class. A `reward` judges the whole episode in the end, as it would in a run; without one, what
the world gave for the steps counts. What cannot be judged is never a zero: TRL is told `None`, SkyRL `failed_score`.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reward_kit.agent.tools import Tool
from reward_kit.config_models import AgentConfig
from reward_kit.errors import ConfigError, ItemError
from reward_kit.integrations.attempts import skyrl_row
from reward_kit.integrations.judged_world import JudgedWorld, JudgedWorlds, known_tools
from reward_kit.integrations.world_session import WorldSession, sample_from_row
from reward_kit.models import Message

__all__ = ["skyrl_text_env", "trl_environment"]

_log = logging.getLogger(__name__)

_TYPES: dict[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict, "null": type(None),
}  # fmt: skip


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
    known = known_tools(environment) if tools is None else list(tools)
    worlds = JudgedWorlds(environment, reward, params, reward_params, config)

    def __init__(self: Any) -> None:
        self._episode = worlds.fresh()

    def reset(self: Any, **row: Any) -> str | None:
        """Begin a new episode for a row of the dataset."""
        try:
            opening = self._episode.session.reset(sample_from_row(row, ground_truth))
        except ItemError as error:  # raised here it would end the training; so this one episode goes unjudged
            _log.warning("an episode could not begin, and is left out: %s", error)
            return None
        shown = "\n\n".join(message.text for message in opening)
        return f"\n\n{shown}" if shown and row.get("prompt") else shown or None  # TRL adds it to the prompt as it is

    def get_reward(self: Any) -> float | None:
        """What the episode was worth; None where it cannot be judged, which TRL leaves out."""
        episode: JudgedWorld = self._episode
        return episode.earned()

    members: dict[str, Any] = {"__init__": __init__, "reset": reset, "get_reward": get_reward}
    for tool in known:
        if tool.name in {"reset", "get_reward"}:
            raise ConfigError(f"TRL has a method {tool.name!r} of its own. Give the tool another name.")
        members[tool.name] = _method(tool)
    name = getattr(environment, "__name__", str(environment).rpartition(":")[2] or "Environment")
    return type(f"{name}ForTRL", (), members)


def _method(tool: Tool) -> Callable[..., str]:
    """A method that calls the tool, with the signature and the docstring that TRL makes its schema of."""
    properties = tool.parameters.get("properties", {})
    required = set(tool.parameters.get("required", ()))

    def method(self: Any, **arguments: Any) -> str:
        session: WorldSession = self._episode.session
        if session.ended is not None:  # TRL lets the model go on calling
            return "The episode is over."
        return session.call(tool.name, arguments)

    kinds = {name: _type(schema) for name, schema in properties.items()}
    parameters = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=kind,
            default=inspect.Parameter.empty if name in required else properties[name].get("default"),
        )
        for name, kind in kinds.items()
    ]  # fmt: skip
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    described = [f"    {name}: {_described(name, schema)}" for name, schema in properties.items()]
    method.__name__ = method.__qualname__ = tool.name
    method.__annotations__ = {**kinds, "return": str}
    method.__doc__ = "\n".join([tool.description or tool.name, *(["", "Args:", *described] if described else [])])
    vars(method)["__signature__"] = inspect.Signature([own, *parameters], return_annotation=str)
    return method


def _type(schema: Mapping[str, Any]) -> Any:
    """The Python type of which TRL makes this schema again, as near as it comes."""
    kinds = [each.get("type") for each in schema.get("anyOf", [schema])]
    found: Any = functools.reduce(operator.or_, dict.fromkeys(_TYPES.get(str(kind), str) for kind in kinds))
    return found


def _described(name: str, schema: Mapping[str, Any]) -> str:
    told = schema.get("description") or name
    return f"{told} (choices: {json.dumps(schema['enum'])})" if schema.get("enum") else told


# ── SkyRL: text in, text out ─────────────────────────────────────────────────────────────────────────────────────────


def skyrl_text_env(
    environment: Any,
    reward: Callable[..., Any] | str | None = None,
    *,
    failed_score: float,
    params: Mapping[str, Any] | None = None,
    reward_params: Mapping[str, Any] | None = None,
    config: AgentConfig | None = None,
) -> type[Any]:
    """A `BaseTextEnv` class of SkyRL. Tool calls are read from the model's text, in any of the usual formats.

    Each step earns what the world gave for it; the last one, what the reward says of the whole episode besides.
    """
    try:
        from skyrl_gym.envs.base_text_env import BaseTextEnv
    except ImportError as error:
        raise ImportError("skyrl_text_env needs skyrl-gym. Install it with: pip install skyrl-gym") from error
    worlds = JudgedWorlds(environment, reward, params, reward_params, config)

    class TextWorld(BaseTextEnv):  # type: ignore[misc]  # SkyRL has no types to check against
        """A world of ours, stepped through by SkyRL."""

        def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
            super().__init__()
            self._row = skyrl_row(extras or {})
            self._episode = worlds.fresh()

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
            earned = self._episode.earned_or(failed_score) if done and worlds.judge is not None else 0.0
            shown = [] if done else [_as_dict(message) for message in answer.messages]
            return _text_step(shown, (answer.reward or 0.0) + earned, done=done, metadata={"ended": session.ended})

        def get_metrics(self) -> dict[str, float]:
            """How many steps the episode had."""
            return {"steps": float(len(self._episode.session.rewards))}

        def close(self) -> None:
            """Close the world."""
            self._episode.session.close()

    return TextWorld


def _text_step(shown: list[Any], reward: float, *, done: bool, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "observations": shown, "reward": reward, "done": done, "metadata": metadata, "postprocessed_action": None,
    }  # fmt: skip


def _as_dict(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.text}
