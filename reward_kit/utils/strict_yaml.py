# SPDX-License-Identifier: Apache-2.0
"""YAML that people write, read with care: no alias bomb, no endless depth, no key given twice."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from reward_kit.errors import ConfigError
from reward_kit.redaction import mask

__all__ = ["check_yaml", "load_yaml", "read_yaml_text"]

_MOST_BYTES = 16 << 20
_MOST_NODES = 200_000
"""Values, each counted as often as aliases repeat it."""
_DEEPEST = 100

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_Loader):  # type: ignore[misc]  # libyaml's loader where there is one, else Python's
    """Refuses a key that is given twice: which of the values was meant is anybody's guess."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def load_yaml(text: str, name: str) -> Any:
    """The values in a YAML text; `name` is what a message calls it. Whatever is wrong with it is a `ConfigError`."""
    check_yaml(text, name)
    try:
        return yaml.load(text, _StrictLoader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, OverflowError) as error:
        raise ConfigError(f"{name} is not YAML: {_one_line(error)}. Correct it.") from error


def check_yaml(text: str, name: str) -> None:
    """Refuse, before anything is built of it, a text whose aliases or depth would make far more of it than it is."""
    if len(text) > _MOST_BYTES:
        raise ConfigError(f"{name} has {len(text):,} characters, too many for a configuration. Name another file.")
    try:
        _Weight().weigh(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not YAML: {_one_line(error)}. Correct it.") from error


def read_yaml_text(path: Path, name: str, advice: str) -> str:
    """The text of a YAML file, or a `ConfigError` that ends with `advice`."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is not YAML: it is not UTF-8 text. Save it as UTF-8.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"Cannot read {name} ({reason}). {advice}") from error


class _Weight:
    """Counts the values that a text stands for, without building them."""

    def __init__(self) -> None:
        self._of_anchor: dict[str, int] = {}
        self._open: list[tuple[str | None, int]] = []
        self._total = 0

    def weigh(self, text: str) -> None:
        for event in yaml.parse(text, _Loader):
            if isinstance(event, yaml.AliasEvent):
                if event.anchor not in self._of_anchor:
                    raise yaml.YAMLError(f"the alias *{event.anchor} stands inside what it names, or for nothing")
                self._add(self._of_anchor[event.anchor])
            elif isinstance(event, yaml.ScalarEvent):
                self._add(1)
                if event.anchor:
                    self._of_anchor[event.anchor] = 1
            elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
                self._add(1)
                self._open.append((event.anchor, self._total - 1))
                if len(self._open) > _DEEPEST:
                    raise yaml.YAMLError(f"it is more than {_DEEPEST} levels deep")
            elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
                anchor, before = self._open.pop()
                if anchor:
                    self._of_anchor[anchor] = self._total - before

    def _add(self, count: int) -> None:
        self._total += count
        if self._total > _MOST_NODES:
            raise yaml.YAMLError(f"its aliases make more than {_MOST_NODES:,} values of it")


def _one_line(error: Exception) -> str:
    return mask(" ".join(str(error).split())).rstrip(".")
