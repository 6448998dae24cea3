# SPDX-License-Identifier: Apache-2.0
"""The extras of reward-kit that rewards use: part of what a reward requires, and, where they decide, of what it is.

Without math-verify, `math` says "wrong" of answers that it takes with it; without sacrebleu, `bleu` says nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

from reward_kit.utils.project_files import Project

__all__ = ["EXTRAS", "USED_BY", "extras_of", "versions_of"]


class Extra(NamedTuple):
    """An extra that rewards use."""

    packages: tuple[str, ...]
    decides: bool = True
    """Whether another version may judge another way."""
    systems: tuple[str, ...] = ()
    """Where it is used, if not everywhere."""


EXTRAS = {
    "e2b": Extra(("e2b",), decides=False),
    "language": Extra(("py3langid",)),
    "math": Extra(("math-verify",), systems=("linux",)),
    "regex": Extra(("google-re2",)),
    "schema": Extra(("jsonschema",)),
    "text": Extra(("rouge-score", "sacrebleu")),
}

USED_BY = {
    "reward_kit.mathematics": "math",
    "reward_kit.rewards.accuracy": "math",
    "reward_kit.rewards.accuracy_length": "math",
    "reward_kit.rewards.apps_coding_reward": "e2b",
    "reward_kit.rewards.code_execution": "e2b",
    "reward_kit.rewards.cpp_code": "e2b",
    "reward_kit.rewards.deepcoder_reward": "e2b",
    "reward_kit.rewards.function_calling": "schema",
    "reward_kit.rewards.group": "math",
    "reward_kit.rewards.ifeval": "language",
    "reward_kit.rewards.json_schema": "schema",
    "reward_kit.rewards.language_consistency": "language",
    "reward_kit.rewards.list_comparison_math_reward": "math",
    "reward_kit.rewards.math": "math",
    "reward_kit.rewards.multiple_choice_math_reward": "math",
    "reward_kit.rewards.overlap": "text",
    "reward_kit.rewards.text_match": "regex",
}
"""The extra that each module of the library uses, itself or through others. A test follows their imports."""


def extras_of(project: Project) -> list[str]:
    """The extras that a reward of this project uses, as far as they are installed here."""
    return [name for name in _used(project.library) if any(map(_installed, EXTRAS[name].packages))]


def versions_of(project: Project) -> dict[str, str | None]:
    """The packages that decide verdicts of a reward of this project, with their versions; None where one is missing."""
    deciding = [extra for name in _used(project.library) if (extra := EXTRAS[name]).decides]
    return {
        package: _installed(package) if sys.platform in (extra.systems or (sys.platform,)) else None
        for extra in deciding
        for package in extra.packages
    }


def _used(modules: Iterable[str]) -> list[str]:
    found = {extra for name in modules for module, extra in USED_BY.items() if f"{name}.".startswith(f"{module}.")}
    return sorted(found)


def _installed(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # here: most rewards use no extra

    try:
        return version(package)
    except PackageNotFoundError:
        return None
