# SPDX-License-Identifier: Apache-2.0
"""The tools that were offered to the model, from OpenAI's shape, a bare function's, or BFCL's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reward_kit.answers.bounded_json import read_json
from reward_kit.answers.tool_calls.calls import CallError

__all__ = ["Tool", "Tools", "as_json_schema", "read_tools"]

_TYPE_NAMES = {"dict": "object", "float": "number", "tuple": "array", "int": "integer", "bool": "boolean"}
"""Python's names for types, which BFCL and many datasets use, as JSON Schema has them. (`any` and others: any type.)"""
_TYPES = frozenset({"object", "number", "array", "integer", "boolean", "string", "null"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that hold schemas under names of the author's choice."""
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its name, and the JSON Schema of its arguments."""

    name: str
    raw: Mapping[str, Any]
    """As it was given."""

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the arguments, with the types as JSON Schema names them."""
        found: dict[str, Any] = as_json_schema(self.raw)
        return found

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What was given for each parameter, in order."""
        found = self.raw.get("properties")
        return found if isinstance(found, Mapping) else {}

    def declared_type(self, parameter: str) -> str | None:
        """The type a parameter is declared to have, where there is one."""
        declared = self.parameters.get(parameter)
        kind = declared.get("type") if isinstance(declared, Mapping) else None
        return _TYPE_NAMES.get(kind.lower(), kind.lower()) if isinstance(kind, str) else None


Tools = Mapping[str, Tool]
"""Tools by name."""


def read_tools(value: object) -> Tools:
    """The tools that were offered: a list of them, one alone, or the JSON text of either; a `CallError` if none is."""
    if isinstance(value, str):
        try:
            value = read_json(value)
        except ValueError as error:
            raise CallError(f"the tools are not JSON: {error}") from None
    tools = [_tool(entry) for entry in (value if isinstance(value, (list, tuple)) else [value])]
    return {tool.name: tool for tool in tools}


def _tool(entry: object) -> Tool:
    inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise CallError(f"a tool has no name: {str(entry)[:80]!r}")
    parameters = inner.get("parameters") or inner.get("input_schema") or {}
    if not isinstance(parameters, Mapping):
        raise CallError(f"the parameters of the tool {inner['name']!r} are not a JSON Schema")
    return Tool(inner["name"], parameters)


def as_json_schema(schema: Any, depth: int = 0) -> Any:
    """`schema` with Python's names for types replaced by JSON Schema's, at every depth."""
    if depth > _DEEPEST:
        raise CallError(f"a tool's schema is nested more than {_DEEPEST} deep")
    if isinstance(schema, list):
        return [as_json_schema(item, depth + 1) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            found[key] = {name: as_json_schema(inner, depth + 2) for name, inner in value.items()}
        elif key == "type" and isinstance(value, str):
            name = _TYPE_NAMES.get(value.lower(), value.lower())
            if name in _TYPES:
                found[key] = name
        elif key in {"enum", "const", "default", "required", "examples"}:
            found[key] = value
        else:
            found[key] = as_json_schema(value, depth + 1)
    return found
