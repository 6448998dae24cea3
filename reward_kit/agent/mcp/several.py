# SPDX-License-Identifier: Apache-2.0
"""A world of several MCP servers, named in the JSON file that desktop programs and other toolkits read.

    {"mcpServers": {"files": {"command": "npx", "args": ["…"], "env": {"ROOT": "${HOME}/x"}},
                    "search": {"url": "https://…/mcp", "headers": {"Authorization": "Bearer ${KEY}"}}}}

    agent:
      environment: reward_kit.agent:McpServers
      params: {file: mcp.json}

Each server is a world as `McpEnvironment` opens it; the model is offered the tools of all.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reward_kit.agent.environment import Answer, Durability, Environment, World
from reward_kit.agent.mcp.environment import McpEnvironment, McpWorld
from reward_kit.agent.tools import Tool
from reward_kit.errors import ConfigError
from reward_kit.models import Message, Sample
from reward_kit.utils import exact_json

__all__ = ["McpServers"]

_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<otherwise>[^}]*))?\}")
_OF_A_PROGRAM = re.compile(r"\$\{\w+:[^}]*\}")
"""What a desktop program asks its user for, such as `${input:key}`."""
_OURS = {"cwd": "directory", "url": "url", "serverUrl": "url", "headers": "headers", "env": "env"}
"""Keys of a server in the file, and what we call them."""
_READ = frozenset({*_OURS, "command", "args"})


class McpServers(Environment):
    """Opens worlds with a server of each kind that a file names."""

    def __init__(self, file: str, *, only: Sequence[str] | None = None, **settings: Any) -> None:
        """Read `file`, or of it `only` the servers of these names. `settings` of `McpEnvironment` hold for each."""
        self._servers = {
            name: McpEnvironment(**{**_settings_of(name, fields, file), **_fitting(settings, fields)})
            for name, fields in _wanted(file, only).items()
        }

    @classmethod
    def settings_elsewhere(cls, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the file says of the servers that are used."""
        return {
            name: {key: held for key, held in fields.items() if key in _READ}
            for name, fields in _wanted(params["file"], params.get("only")).items()
        }

    async def open(self, sample: Sample) -> World:
        """A world of its own at each server."""
        worlds: dict[str, McpWorld] = {}
        async with contextlib.AsyncExitStack() as held:
            for name, server in self._servers.items():
                worlds[name] = await server.open(sample)
                held.push_async_callback(worlds[name].close_all)
            return _SeveralServers(worlds, held.pop_all())

    async def close(self) -> None:
        """Close every server that is still there."""
        for server in self._servers.values():
            await server.close()


class _SeveralServers(World):
    """One rollout's servers."""

    def __init__(self, worlds: Mapping[str, McpWorld], held: contextlib.AsyncExitStack) -> None:
        self._worlds, self._held = worlds, held

    @property
    def durability(self) -> Durability:  # type: ignore[override]  # that of the server which is hardest to have again
        return "replay" if all(world.durability == "replay" for world in self._worlds.values()) else "restart"

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools of all; those of one name have the server's before it."""
        known = Counter(tool.name for world in self._worlds.values() for tool in world.tools)
        return [
            replace(tool, name=f"{server}__{tool.name}") if known[tool.name] > 1 else tool
            for server, world in self._worlds.items()
            for tool in world.tools
        ]

    def start(self) -> list[Message]:
        return [message for world in self._worlds.values() for message in world.start()]

    async def answer(self, message: Message) -> Answer:
        for world in self._worlds.values():
            world.begin_turn()
        told = await self.use_tools(message)
        answers = [await world.outcome(told, message) for world in self._worlds.values()]
        rewards = [answer.reward for answer in answers if answer.reward is not None]
        return Answer(told, reward=sum(rewards) if rewards else None, done=any(answer.done for answer in answers))

    async def facts(self) -> dict[str, Any]:
        return {name: facts for name, world in self._worlds.items() if (facts := await world.facts())}

    async def close(self) -> None:
        await self._held.aclose()


def _wanted(file: str, only: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """The servers of the file that are used."""
    named = _servers_in(file)
    if missing := sorted({*(only or ())} - named.keys()):
        raise ConfigError(f"{file!r} names no server {missing[0]!r}. It names: {', '.join(named) or 'none'}.")
    return {name: fields for name, fields in named.items() if only is None or name in only}


def _servers_in(file: str) -> dict[str, dict[str, Any]]:
    try:
        read = exact_json.loads(Path(file).read_bytes())
    except OSError as error:
        raise ConfigError(
            f"`agent.params.file`: {file!r} cannot be read ({error.strerror}). Correct the path."
        ) from error
    except exact_json.JSONDecodeError as error:
        raise ConfigError(f"`agent.params.file`: {file!r} is no valid JSON: {error}. Correct the file.") from error
    held = next((read[key] for key in ("mcpServers", "servers") if isinstance(read, dict) and key in read), None)
    if not isinstance(held, dict) or not all(isinstance(fields, dict) for fields in held.values()):
        raise ConfigError(f"{file!r} has no object `mcpServers` with the settings of each server by its name. Add it.")
    return {name: fields for name, fields in held.items() if not fields.get("disabled")}


def _settings_of(name: str, fields: Mapping[str, Any], file: str) -> dict[str, Any]:
    """A server of the file, as `McpEnvironment` takes it."""
    where = f"the server {name!r} of {file!r}"
    found = {ours: _filled(fields[theirs], where) for theirs, ours in _OURS.items() if theirs in fields}
    if fields.get("type") == "sse" and "command" not in fields:
        raise ConfigError(f"`type: sse` in {where} is the transport of 2024, which is not spoken. Use `type: http`.")
    if "command" in fields:
        found["command"] = _filled([fields["command"], *fields.get("args", ())], where)
    elif "url" not in found:
        raise ConfigError(f"There is neither `command` nor `url` in {where}. Add one of them.")
    return found


def _filled(value: Any, where: str) -> Any:
    """A value of the file in which `${NAME}` is what the variable of that name holds, `${NAME:-x}` else x."""
    if isinstance(value, dict):
        return {name: _filled(inner, where) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, where) for inner in value]
    if not isinstance(value, str):
        return value
    if (asked := _OF_A_PROGRAM.search(_VARIABLE.sub("", value))) is not None:
        raise ConfigError(f"{asked[0]!r} in {where} is for a program with windows. Write `${{NAME}}`, and set NAME.")
    return _VARIABLE.sub(lambda found: _variable(found["name"], found["otherwise"], where), value)


def _variable(name: str, otherwise: str | None, where: str) -> str:
    if name not in os.environ and otherwise is not None:
        return otherwise
    if name not in os.environ:
        raise ConfigError(f"The variable {name!r}, which {where} uses, is not set. Set it, or correct the file.")
    return os.environ[name]


def _fitting(settings: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that make sense for a server of this kind: a sandbox is for one that is started."""
    is_started = "command" in fields
    unfit = {"stateless", "rollout_header", "handle"} if is_started else {"sandbox", "files", "setup"}
    return {name: value for name, value in settings.items() if name not in unfit}
