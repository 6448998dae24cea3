# SPDX-License-Identifier: Apache-2.0
"""Small Python files for trainers that load a reward from a file rather than by import path."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_kit.errors import ConfigError
from reward_kit.storage.files import write_whole

__all__ = ["literal", "write_shim"]


def write_shim(
    file: str | Path, title: str, maker: str, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Path:
    """Write a file in which `name` is what `maker` (`pkg.mod:function`) makes of the arguments: plain values only."""
    module, _, function = maker.partition(":")
    given = [*map(literal, arguments), *(f"{key}={literal(value)}" for key, value in keywords.items())]
    text = f'"""{title}. Written by reward-kit."""\n\nfrom {module} import {function}\n\n'
    path = Path(file)
    write_whole(path, f"{text}{name} = {function}({', '.join(given)})\n")
    return path


def literal(value: Any) -> str:
    """The value as Python source, checked to be one: what is written must be what is read."""
    text = repr(value)
    try:
        same = ast.literal_eval(text) == value
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise ConfigError(f"{value!r} cannot be written into a file as it is. Give text, numbers, lists or dicts.")
    return text
