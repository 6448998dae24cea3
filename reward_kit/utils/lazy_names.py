# SPDX-License-Identifier: Apache-2.0
"""Public names of a package that are imported when they are first used, so that importing the package is cheap.

    __getattr__, __dir__ = lazy_names(globals(), {"Rollout": "reward_kit.models", ...})

Nothing is imported here but when a name is asked for: this module is part of importing anything at all.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""Type checkers take this to be true; `typing`, which has it too, is not imported for it."""

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["home_of", "lazy_names"]

_homes: dict[str, Mapping[str, str]] = {}
"""Of each package that is imported, the modules in which its names live."""


def lazy_names(
    package: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package with these globals, whose names live in the modules of `homes`."""

    _homes[package["__name__"]] = homes

    def __getattr__(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(homes[name]), name)
        package[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*package, *package["__all__"]})

    return __getattr__, __dir__


def home_of(name: str, package: str | None = None) -> str | None:
    """The module in which a name of a package lives, without importing it; without `package`, of any of them."""
    known = _homes.values() if package is None else [_homes.get(package, {})]
    return next((homes[name] for homes in known if name in homes), None)
