# SPDX-License-Identifier: Apache-2.0
"""Rewards by name: a name stands for an import path, in the library or in an installed package's entry points.

    math_reward, math       →  reward_kit.rewards.math:math_reward
    NAME of an entry point in the group `reward_kit.rewards`  →  what it points at
    https://host/evaluate   →  the reward that is served there

Nothing registers itself: the library's names are those its modules list in `__all__`, and a package's are in its
metadata. A name is looked up when it is used; the library comes first, so that it means the same everywhere.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from reward_kit.utils.module_loader import load_function
from reward_kit.utils.near_names import did_you_mean

__all__ = ["GROUP", "is_address", "library_rewards", "load_reward", "plugin_rewards", "reward_path"]

GROUP = "reward_kit.rewards"
"""The entry-point group in which a package names its rewards."""
_LIBRARY = "reward_kit.rewards"
_REMOTE = "reward_kit.remote.reward:open_remote"
_SUFFIX = "_reward"
_PATH = re.compile(r"[.:/\\]")


def reward_path(name: str) -> str:
    """The import path that `name` stands for; what is an import path already comes back as it is.

    The ending `_reward` may be left out. An unknown name is an ImportError that offers the nearest.
    """
    if not name or _PATH.search(name):
        return name
    return _in_library(name) or _in_plugins(name) or _unknown(name)


def is_address(path: str) -> bool:
    """Whether a reward's path is the address of a server, and not an import path."""
    return path.startswith(("http://", "https://"))


def load_reward(path: str) -> Any:
    """The reward at an import path or an address, which is asked what it is."""
    if is_address(path):
        return load_function(_REMOTE)(path)
    return load_function(path)


def library_rewards() -> dict[str, str]:
    """Every reward of the library: name → import path, a module after the other, as `__all__` lists them."""
    return {name: path for module in _module_names() for name, path in _rewards_of(module).items()}


def plugin_rewards() -> dict[str, str]:
    """Every reward that installed packages name: name → import path. Two that share a name are an ImportError."""
    found: dict[str, str] = {}
    for point in entry_points(group=GROUP):
        if found.setdefault(point.name, point.value) != point.value:
            raise ImportError(
                f"Two installed packages name a reward {point.name!r}: {found[point.name]!r} and {point.value!r}. "
                "Use their import paths, or uninstall one of them."
            )
    return found


# ── the library ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _in_library(name: str) -> str | None:
    for module in _likely_first(name):
        rewards = _rewards_of(module)
        if path := rewards.get(name) or rewards.get(name + _SUFFIX):
            return path
    return None


def _likely_first(name: str) -> list[str]:
    """The library's modules, those that `name` speaks of first: most names are found in the first that is imported."""
    return sorted(_module_names(), key=lambda module: (module not in name, -len(module)))


def _module_names() -> Iterator[str]:
    package = importlib.import_module(_LIBRARY)
    return (module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))


def _rewards_of(module_name: str) -> dict[str, str]:
    module = importlib.import_module(f"{_LIBRARY}.{module_name}")
    return {name: f"{module.__name__}:{name}" for name in _public(module) if _is_reward(vars(module)[name])}


def _public(module: ModuleType) -> list[str]:
    names: list[str] = vars(module).get("__all__", [])
    return names


def _is_reward(value: Any) -> bool:
    return callable(value) and hasattr(value, "_reward_function_mode")


# ── plugins ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _in_plugins(name: str) -> str | None:
    found = plugin_rewards()
    return found.get(name) or found.get(name + _SUFFIX)


def _unknown(name: str) -> str:
    names = [*library_rewards(), *plugin_rewards()]
    hint = did_you_mean(name, [*names, *(each.removesuffix(_SUFFIX) for each in names)])
    raise ImportError(
        f"Cannot load {name!r}: there is no reward of that name{hint}. "
        f"`reward-kit rewards list` shows them; write your own as 'pkg.mod:{name}' or 'file.py:{name}'."
    )
