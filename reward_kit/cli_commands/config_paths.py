# SPDX-License-Identifier: Apache-2.0
"""Paths in a config file mean what their author sees: relative to where the command runs, else to the config file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reward_kit.stores.addresses import is_stored

__all__ = ["resolve_paths"]


def resolve_paths(values: Mapping[str, Any], config_directory: Path) -> dict[str, Any]:
    """The config with the files it names found: as given where they exist there, else beside the config.

    The directory above the config counts too, so that `conf/run.yaml` may name a `dataset.jsonl` next to `conf`.
    """
    places = [config_directory, config_directory.parent]
    resolved = dict(values)
    if isinstance(resolved.get("dataset"), Mapping):
        resolved["dataset"] = _dataset(resolved["dataset"], places)
    if isinstance(resolved.get("reward"), Mapping):
        resolved["reward"] = _reward(resolved["reward"], places)
    if isinstance(resolved.get("agent"), Mapping):
        resolved["agent"] = _agent(resolved["agent"], places)
    for model in ("generation", "judge"):
        mock = (resolved.get(model) or {}).get("mock") if isinstance(resolved.get(model), Mapping) else None
        if isinstance(mock, Mapping):
            found = _with(_with(mock, "function_path", places, _object_path), "script", places, _file)
            resolved[model] = {**resolved[model], "mock": found}
    return _with(_with(resolved, "rollouts_file", places, _file), "prices", places, _file)


def _reward(reward: Mapping[str, Any], places: list[Path]) -> dict[str, Any]:
    """The reward, the parts that a composite one names, and those of its splits."""
    found = _with(reward, "function_path", places, _object_path)
    if isinstance(found.get("by_split"), Mapping):
        found["by_split"] = {
            split: _reward(who, places) if isinstance(who, Mapping) else _part(who, places)
            for split, who in found["by_split"].items()
        }
    params = found.get("params")
    parts = params.get("parts") if isinstance(params, Mapping) else None
    if isinstance(params, Mapping) and isinstance(parts, Mapping):
        found["params"] = {**params, "parts": {name: _part(part, places) for name, part in parts.items()}}
    elif isinstance(params, Mapping) and isinstance(parts, list):
        found["params"] = {**params, "parts": [_part(part, places) for part in parts]}
    return found


def _agent(agent: Mapping[str, Any], places: list[Path]) -> dict[str, Any]:
    """The environment, the tools, and whoever approves of calls."""
    found = _with(_with(agent, "environment", places, _object_path), "approve", places, _object_path)
    if isinstance(found.get("tools"), list):
        found["tools"] = [_object_path(path, places) if isinstance(path, str) else path for path in found["tools"]]
    return found


def _part(part: Any, places: list[Path]) -> Any:
    if isinstance(part, Mapping):
        return _with(part, "reward", places, _object_path)
    return _object_path(part, places) if isinstance(part, str) else part


def _dataset(dataset: Mapping[str, Any], places: list[Path]) -> dict[str, Any]:
    found = _with(dataset, "path_or_name", places, _source)
    if isinstance(found.get("few_shot"), Mapping):
        found["few_shot"] = _with(found["few_shot"], "path_or_name", places, _source)
    if isinstance(found.get("base_dataset"), Mapping):
        found["base_dataset"] = _dataset(found["base_dataset"], places)
    if isinstance(found.get("preprocess"), list):
        found["preprocess"] = [_object_path(path, places) for path in found["preprocess"]]
    return found


def _with(part: Mapping[str, Any], key: str, places: list[Path], resolve: Any) -> dict[str, Any]:
    changed = dict(part)
    if isinstance(changed.get(key), str):
        changed[key] = resolve(changed[key], places)
    return changed


def _file(name: str, places: list[Path]) -> str:
    if is_stored(name) or Path(name).is_absolute() or _matches(Path(), name):
        return name
    return next((str(place / name) for place in places if _matches(place, name)), name)


def _source(name: str, places: list[Path]) -> str:
    """A file, or a function in one that returns rows."""
    return _object_path(name, places) if ".py:" in name else _file(name, places)


def _matches(place: Path, name: str) -> bool:
    return (place / name).exists() or ("*" in name and any(place.glob(name)))


def _object_path(path: str, places: list[Path]) -> str:
    file, colon, attribute = path.rpartition(":")
    return f"{_file(file, places)}:{attribute}" if colon and file.endswith(".py") else path
