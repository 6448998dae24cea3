# SPDX-License-Identifier: Apache-2.0
"""The file `.env` of the current directory: variables for the command, where the environment has none of that name.

Only the command line reads it, once, when it starts. Importing the library reads no file. Values are never printed.
"""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping
from pathlib import Path

__all__ = ["read_dotenv"]

_LARGEST = 1_000_000
"""Bytes; a larger file is no list of variables."""
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def read_dotenv(path: Path | None = None, environment: MutableMapping[str, str] | None = None) -> list[str]:
    """Set the variables of a `.env` that are not set yet, and return their names.

    A line is `NAME=value`, also with `export` before it. A value in single quotes is taken as it is; in double quotes
    `\\n` and the like mean what they do elsewhere; without quotes it ends at ` #`. Nothing is expanded. What is no such
    line is passed over, and so is a `.env` that is a directory or cannot be read.
    """
    variables = os.environ if environment is None else environment
    found = {name: value for name, value in _variables(path or Path(".env")) if name not in variables}
    variables.update(found)
    return list(found)


def _variables(path: Path) -> list[tuple[str, str]]:
    try:
        if path.stat().st_size > _LARGEST or not path.is_file():
            return []
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return []
    matches = [_LINE.fullmatch(line.strip()) for line in text.splitlines()]
    pairs = [(match[1], _value(match[2])) for match in matches if match is not None]
    return [(name, value) for name, value in pairs if "\0" not in value]


def _value(text: str) -> str:
    if text.startswith("'"):
        return text[1:].partition("'")[0]
    if text.startswith('"'):
        inside = re.match(r'"((?:[^"\\]|\\.)*)', text)
        return re.sub(r"\\(.)", _escaped, inside[1]) if inside is not None else ""
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()


def _escaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[0])
