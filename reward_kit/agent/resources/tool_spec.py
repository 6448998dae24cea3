# SPDX-License-Identifier: Apache-2.0
"""What the resources have in common: how models are told of actions, and checkpoints that are files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["checkpoint_path", "tool_spec", "unknown_action"]


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


def checkpoint_path(checkpoint: Mapping[str, Any], kind: Mapping[str, str]) -> str:
    """The file of a checkpoint of that kind, as long as it is there."""
    path = checkpoint.get("checkpoint_path")
    if not path or not kind.items() <= checkpoint.items():
        raise ValueError(f"this checkpoint is of another kind: it should be {dict(kind)} with 'checkpoint_path'")
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no checkpoint {path!r}; it is removed when its resource is closed")
    return str(path)
