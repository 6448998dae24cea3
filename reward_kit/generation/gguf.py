# SPDX-License-Identifier: Apache-2.0
"""GGUF files, as far as they matter before a model is loaded: where one lies, and how it wants its prompts written."""

from __future__ import annotations

import mmap
import os
import re
import struct
from pathlib import Path

from reward_kit.errors import ConfigError

__all__ = ["find_weights", "shows_tools"]

_OF_A_REPOSITORY = re.compile(r"([\w.-]+/[\w.-]+)/((?:[\w.-]+/)*[\w.-]+\.gguf)")
_TEMPLATE = b"tokenizer.chat_template"
"""Also the start of the names of further templates, such as one for tools only."""
_MENTIONS_TOOLS = re.compile(rb"\btools\b")

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""The format's numbers for its types of fixed size, and their bytes."""
_STRING, _ARRAY = 8, 9
_FIRST_ENTRY = 24
"""Behind the magic word, the version, and the counts of tensors and of entries."""


def find_weights(given: str | Path) -> Path:
    """The model file that is meant: a path, or `OWNER/REPOSITORY/FILE.gguf` of what Hugging Face's cache holds."""
    path = Path(given).expanduser()
    if path.is_file():
        return path
    named = _OF_A_REPOSITORY.fullmatch(str(given))
    if named is None or {".", ".."}.intersection(str(given).split("/")):
        raise ConfigError(f"There is no model file {str(path)!r}. Correct the path after 'local:'.")
    repository, file = named.groups()
    found = _in_cache(repository, file)
    if found is None:
        raise ConfigError(
            f"There is no model file {str(path)!r}, and Hugging Face's cache has none of that name. "
            f"Fetch it: hf download {repository} {file}; or correct the path after 'local:'."
        )
    return found


def _in_cache(repository: str, file: str) -> Path | None:
    """The file in the cache that Hugging Face's tools share: of the branch `main`, else of the newest snapshot."""
    folder = _cache() / f"models--{repository.replace('/', '--')}"
    snapshots = folder / "snapshots"
    try:
        main = snapshots / (folder / "refs" / "main").read_text(encoding="utf-8").strip() / file
    except (OSError, UnicodeDecodeError):
        main = None
    if main is not None and main.is_file():
        return main
    others = [path for path in snapshots.glob("*") if (path / file).is_file()]
    return max(others, key=lambda path: path.stat().st_mtime) / file if others else None


def _cache() -> Path:
    hub, home = os.environ.get("HF_HUB_CACHE"), os.environ.get("HF_HOME")
    if hub:
        return Path(hub).expanduser()
    return (Path(home).expanduser() if home else Path.home() / ".cache" / "huggingface") / "hub"


def shows_tools(path: Path) -> bool:
    """Whether the model's own template has a place for tools. A prompt of any other is written without them."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return any(_MENTIONS_TOOLS.search(template) for template in _templates(data))
        except (
            struct.error,
            IndexError,
            KeyError,
            OverflowError,
            RecursionError,
        ):  # cut off, or of another version: loading it will tell
            return False


def _templates(data: mmap.mmap) -> list[bytes]:
    (entries,) = struct.unpack_from("<Q", data, 16)
    place, found = _FIRST_ENTRY, []
    for _ in range(entries):
        name, place = _text(data, place)
        (kind,) = struct.unpack_from("<I", data, place)
        if kind == _STRING and name.startswith(_TEMPLATE):
            text, place = _text(data, place + 4)
            found.append(text)
        else:
            place = _behind(data, place + 4, kind)
    return found


def _text(data: mmap.mmap, place: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from("<Q", data, place)
    end = place + 8 + length
    if end > len(data):
        raise IndexError(end)
    return data[place + 8 : end], end


def _behind(data: mmap.mmap, place: int, kind: int) -> int:
    """Where a value of this kind that begins at `place` ends."""
    if kind == _STRING:
        (length,) = struct.unpack_from("<Q", data, place)
        return int(place + 8 + length)
    if kind != _ARRAY:
        return place + _SIZES[kind]
    inner, count = struct.unpack_from("<IQ", data, place)
    place += 12
    if inner in _SIZES:
        return int(place + _SIZES[inner] * count)
    for _ in range(count):
        place = _behind(data, place, inner)
    return place
