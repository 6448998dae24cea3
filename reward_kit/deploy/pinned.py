# SPDX-License-Identifier: Apache-2.0
"""The packages that a deployed reward needs, at the versions that are installed here: what was tried is what runs.

requirements   what is asked for: reward-kit at this version, and the reward's own requirements
constraints    the version of each package that these lead to, as far as it is installed here
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from typing import NamedTuple

from reward_kit._version import __version__
from reward_kit.errors import DeployError
from reward_kit.utils.project_imports import Outside

__all__ = ["Pinned", "extra_of", "extras_in", "own_requirement", "pin", "unmet"]

_NAME = re.compile(
    r"\s*(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[(?P<extras>[^\]]*)\])?(?P<rest>.*)", re.DOTALL
)
_FOR_EXTRA = re.compile(r"extra\s*==\s*['\"](?P<extra>[^'\"]+)['\"]")
_EXACT = re.compile(r"\s*(?:===?|@)")


class Pinned(NamedTuple):
    """What is installed beside the reward."""

    requirements: tuple[str, ...]
    constraints: tuple[str, ...]
    names: frozenset[str]
    """Every package among them, as indexes spell it."""


def own_requirement(*extras: str) -> str:
    """This version of reward-kit, as a requirement."""
    return f"reward-kit{'[' + ','.join(extras) + ']' if extras else ''}=={__version__}"


def pin(requirements: Iterable[str], *, extras: Sequence[str] = ()) -> Pinned:
    """The requirements with reward-kit first, and the installed version of all that they lead to."""
    asked = [own_requirement(*extras), *(line for line in map(str.strip, requirements) if line)]
    for line in asked:
        _check(line)
    closure: dict[str, Distribution | None] = {}
    for line in asked:
        _follow(line, closure, set())
    own = canonical("reward-kit")
    constraints = [f"{name}=={found.version}" for name, found in closure.items() if found is not None and name != own]
    return Pinned(tuple(dict.fromkeys(asked)), tuple(sorted(constraints)), frozenset(closure))


def _check(line: str) -> None:
    found = _NAME.fullmatch(line)
    if found is None or line.startswith("-") or "://" in line:
        raise DeployError(
            f"The requirement {line[:80]!r} names no package of an index. Write it as 'name' or 'name>=1.2'; what is "
            "elsewhere goes as a wheel into --wheelhouse."
        )


def _follow(line: str, closure: dict[str, Distribution | None], seen: set[tuple[str, str]]) -> None:
    """Note the package of a requirement, and those that it declares, with or without a marker that holds elsewhere."""
    found = _NAME.match(line)
    if found is None:
        return
    name = canonical(found["name"])
    if name not in closure:
        closure[name] = _installed(name)
    there = closure[name]
    for extra in sorted({"", *extras_in(line)}):
        if there is None or (name, extra) in seen:
            continue
        seen.add((name, extra))
        for needed in there.requires or ():
            if (extra_of(needed) or "") == extra:
                _follow(needed, closure, seen)


def extras_in(line: str) -> set[str]:
    """The extras that a requirement asks for."""
    found = _NAME.match(line)
    named = (found["extras"] or "") if found is not None else ""
    return {extra.strip() for extra in named.split(",") if extra.strip()}


def extra_of(line: str) -> str | None:
    """The extra that a package declares a dependency for; None for one that it always has."""
    marked = _FOR_EXTRA.search(line)
    return marked["extra"] if marked else None


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def canonical(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def unmet(outside: Iterable[Outside], pinned: Pinned) -> list[tuple[Outside, str]]:
    """Imports that no requirement covers, each with the package to require for it."""
    owners = packages_distributions()
    found: list[tuple[Outside, str]] = []
    for one in outside:
        packages = {canonical(name): name for name in owners.get(one.module, [one.module])}
        if one.module != "reward_kit" and pinned.names.isdisjoint(packages):
            found.append((one, min(packages)))
    return found
