# SPDX-License-Identifier: Apache-2.0
"""Tools of a resource as models are told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["tool_spec", "unknown_action"]


def tool_spec(
    name: str, description: str, properties: Mapping[str, Any], required: Sequence[str] | None = None
) -> dict[str, Any]:
    """One tool, in the shape of OpenAI's `tools`; all `properties` are required unless `required` names some."""
    needed = list(properties) if required is None else list(required)
    parameters = {"type": "object", "properties": dict(properties), "required": needed, "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def unknown_action(resource: object, name: str, known: Sequence[str]) -> NotImplementedError:
    """The error for an action that a resource does not have."""
    return NotImplementedError(f"{type(resource).__name__} has no action {name!r}; it has {', '.join(sorted(known))}.")
