# SPDX-License-Identifier: Apache-2.0
"""Tools made of a resource's actions, of a `ToolRegistry`, and of a module with either."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.tool_registry import ToolRegistry, call_tool
from reward_kit.agent.tools import SECONDS, Tool, ToolError
from reward_kit.errors import ConfigError
from reward_kit.utils.module_loader import load_object

__all__ = ["load_registry", "registry_tools", "resource_tools"]

_ACTION_SECONDS = 120.0
"""Resources bound their actions themselves, and say more of what happened; this is for those that do not."""
_RESOURCE_PARAMETERS = ("resource", "db_resource")
_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


async def resource_tools(resource: ForkableResource) -> list[Tool]:
    """A resource's actions as tools, by its `get_tools_spec`, nested as OpenAI has it or flat."""
    specs = [_flat(spec) for spec in await resource.get_tools_spec()]
    return [_own_tool(resource, spec) for spec in specs]


def _own_tool(resource: ForkableResource, spec: Mapping[str, Any]) -> Tool:
    name = spec["name"]
    return _tool(spec, _action(resource, name), reads=name in resource.reading, timeout=_ACTION_SECONDS)


def registry_tools(registry: ToolRegistry, resource: Any) -> list[Tool]:
    """The tools of a registry, called with `resource`."""
    return [_tool(spec, _function(registry.tools[spec["name"]], resource)) for spec in registry.get_openai_tools()]


def load_registry(path: str) -> ToolRegistry:
    """The registry that a path names: `module:name`, `file.py:name`, or a module that has one under any name.

    A module without a registry is read as the inherited package does: its functions that ask for `resource`.
    """
    try:
        found = load_object(path if ":" in path else f"{path}:__dict__")
    except ImportError as error:
        raise ConfigError(f"The tools {path!r} cannot be loaded: {error}") from error
    if isinstance(found, ToolRegistry):
        return found
    if not isinstance(found, dict):
        raise ConfigError(f"{path!r} is a {type(found).__name__}. Name a ToolRegistry, or a module that has one.")
    registries = [value for value in found.values() if isinstance(value, ToolRegistry)]
    return registries[0] if registries else _registry_of_functions(path, found)


def _registry_of_functions(path: str, module: Mapping[str, Any]) -> ToolRegistry:
    registry = ToolRegistry(path)
    for name, function in module.items():
        if not inspect.isfunction(function) or name.startswith("_"):
            continue
        parameters = inspect.signature(function).parameters
        if any(known in parameters for known in _RESOURCE_PARAMETERS):
            schema: dict[str, Any] = {one: {} for one in parameters if one not in _RESOURCE_PARAMETERS}
            registry.tool(inspect.getdoc(function) or "", schema)(function)
    if not registry.tools:
        raise ConfigError(f"The module {path!r} has no tools: no ToolRegistry, and no function that takes 'resource'.")
    return registry


def _tool(
    spec: Mapping[str, Any],
    call: Callable[[dict[str, Any]], Awaitable[Any]],
    *,
    reads: bool = False,
    timeout: float = SECONDS,
) -> Tool:
    schema = spec.get("parameters") or {"type": "object", "properties": {}}
    description = str(spec.get("description") or "")
    return Tool(spec["name"], description, schema, call, reads=reads, timeout=timeout, check=_checker(schema))


def _flat(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    inner: Any = spec.get("function", spec)
    if not isinstance(inner, Mapping) or not inner.get("name"):
        raise ConfigError(f"A tool of the resource has no name: {dict(spec)!r}. Give it one in get_tools_spec().")
    return inner


def _action(resource: ForkableResource, name: str) -> Callable[[dict[str, Any]], Awaitable[Any]]:
    async def act(arguments: dict[str, Any]) -> Any:
        return _plain(await resource.step(name, arguments))

    return act


def _function(function: Callable[..., Any], resource: Any) -> Callable[[dict[str, Any]], Awaitable[Any]]:
    async def act(arguments: dict[str, Any]) -> Any:
        return _plain(await call_tool(function, arguments, resource=resource))

    return act


def _plain(value: Any) -> Any:
    """A value as JSON can hold it, where only its bytes are in the way: a database has such values."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return value


def _checker(schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A check of arguments: those that are required are there, none is unknown, each has its type."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required: Sequence[str] = schema.get("required") or ()
    closed = schema.get("additionalProperties", False) is False

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        problems = [f"{name}: it is missing" for name in required if name not in arguments]
        if closed:
            problems += [f"{name}: there is no such parameter" for name in arguments if name not in properties]
        for name, value in arguments.items():
            problems += _problems(name, value, properties.get(name) or {})
        if problems:
            raise ToolError("; ".join(problems[:5]), "schema")
        return arguments

    return check


def _problems(name: str, value: Any, schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type")
    named = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    known = [kind for kind in named if kind in _JSON_TYPES]
    if known and len(known) == len(named) and not any(_is(value, kind) for kind in known):
        return [f"{name}: it should be of type {' or '.join(known)}"]
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return [f"{name}: it should be one of {', '.join(map(repr, choices[:20]))}"]
    return []


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _JSON_TYPES[kind])
