# SPDX-License-Identifier: Apache-2.0
"""What was changed in a container, as its engine tells, and whether a check of a condition can be trusted after it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

from reward_kit.sandbox.containers.engine import Change, Engine
from reward_kit.sandbox.trust import (
    LIBRARIES,
    NEEDED,
    SEARCHED,
    has_packages,
    is_in,
    is_library,
    is_loaded_unasked,
    is_loaders,
    is_read_first,
    names,
    only_asked_for,
)

__all__ = ["DANGLE", "Changes"]

DANGLE = r"""
while IFS= read -r -d '' path; do
  [[ -L $path ]] || continue
  end=$(readlink -f -- "$path")
  case $end in
    /dev/null | /dev/zero | /dev/full) ;;
    /proc | /proc/* | /dev/*) ln -sfn -- "/dev/null/$end" "$path" ;;
  esac
done
"""
"""Has those links lead nowhere, of those that it is told of, that lead to what is no file of the container's."""
_INTERPRETERS = ("python", "perl", "awk", "git")
"""What loads more than libraries of the loader."""
_LIBRARY_FOLDERS = tuple(
    f"{place}{triple}"
    for place in ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
    for triple in ("", "/x86_64-linux-gnu", "/aarch64-linux-gnu")
)
_PROGRAMS = (*SEARCHED, "/etc/alternatives")
_TOP = frozenset({"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives"})
"""Links mostly, or what is exchanged whole, and not directories that are told of because of what is in them."""


class Changes:
    """What was changed in one container since it was made, and how much of it the setup did."""

    def __init__(self, engine: Engine, key: str) -> None:
        self._engine = engine
        self._key = key
        self._mark: dict[str, str] = {}

    async def mark(self) -> None:
        """What the setup wrote is what the task is about; what a package manager installed is a part of the image."""
        found = await self._engine.changes(self._key)
        self._mark = dict.fromkeys(found, "")
        if any(has_packages(path) for path in found):
            paths = [path for path in found if is_in(path, (*SEARCHED, *LIBRARIES))]
            digests = await asyncio.gather(*(self._engine.digest(self._key, path) for path in paths))
            self._mark.update(zip(paths, digests, strict=True))

    async def look(self, condition: str) -> tuple[str, list[str]]:
        """What was changed that the condition needs, or nothing; and what is new, and may be a link."""
        found = await self._engine.changes(self._key)
        leaves = [path for path, kind in _leaves(found) if kind != Change.REMOVED]
        for path, kind in _leaves(found):
            if path not in self._mark and await self._spoils(path, kind, found, condition):
                return path, []
        for path, digest in self._mark.items():
            is_needed = is_library(path) or _is_named(path, condition)
            if digest and is_needed and await self._engine.digest(self._key, path) != digest:
                return path, []
        return "", [path for path in leaves if path not in self._mark]

    async def _spoils(self, path: str, kind: Change, found: dict[str, Change], condition: str) -> bool:
        if kind == Change.ADDED:
            is_program = is_in(path, SEARCHED) and _is_named(path, condition)
            is_known = is_in(path, LIBRARIES) and is_library(path)
            return (
                is_loaders(path)
                or is_loaded_unasked(path)
                or is_read_first(path, condition)
                or (is_program and await self._shadows(path, found, SEARCHED))
                or (is_known and await self._shadows(path, found, _LIBRARY_FOLDERS))
            )
        return (
            is_loaders(path)
            or path in _TOP
            or (is_in(path, LIBRARIES) and _is_loaded(path, condition))
            or (is_in(path, _PROGRAMS) and _is_named(path, condition))
            or (kind == Change.REMOVED and any(place.startswith(path) for place in (*SEARCHED, *LIBRARIES)))
            or is_read_first(path, condition)
        )

    async def _shadows(self, path: str, found: dict[str, Change], places: tuple[str, ...]) -> bool:
        """Whether the image has a program or library of that name in another place."""
        others = [f"{place}/{path.rpartition('/')[2]}" for place in places]
        others = [other for other in others if all(found.get(same) != Change.ADDED for same in _spellings(other))]
        return any(await asyncio.gather(*(self._engine.digest(self._key, other) for other in others)))


def _spellings(path: str) -> tuple[str, ...]:
    """What a path is called, with and without links from /bin and /lib to those below /usr."""
    return path, f"/usr{path}", path.removeprefix("/usr")


def _leaves(found: dict[str, Change]) -> Iterable[tuple[str, Change]]:
    """Those of which nothing below is told: a directory is told of because of what is in it."""
    parents = {path.rpartition("/")[0] for path in found}
    return [(path, kind) for path, kind in sorted(found.items()) if path not in parents]


def _is_loaded(path: str, condition: str) -> bool:
    return is_library(path) or any(name in path and names(condition, name, exactly=False) for name in _INTERPRETERS)


def _is_named(path: str, condition: str) -> bool:
    """Whether a condition names a program: also by a shorter name, which mostly is a link to it."""
    name = path.rpartition("/")[2]
    short = re.sub(r"[\d.]+$", "", name)
    kind = "awk" if name.endswith("awk") else name
    if name in only_asked_for(condition):
        return False
    return (
        name in NEEDED
        or any(names(condition, one) for one in {name, kind})
        or (short != name and names(condition, short, exactly=False))
    )
