# SPDX-License-Identifier: Apache-2.0
"""Which reward verifies the answers of a split: the built-in verifiers, or any reward by its name or path.

Nothing is guessed from a split's name beyond the name itself: a split that no verifier is known for is an error that
says how to name one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reward_kit.config_models import RewardConfig
from reward_kit.errors import ConfigError
from reward_kit.reward_names import reward_path

__all__ = ["VERIFIERS", "Verifier", "verifier_for"]

VERIFIERS: dict[str, RewardConfig] = {
    "math": RewardConfig(function_path="reward_kit.rewards.math:math_reward"),
    "code": RewardConfig(
        function_path="reward_kit.rewards.code_execution:fractional_code_reward", params={"language": "python"}
    ),
    # The calls of one turn are made side by side, so their order says nothing about the answer.
    "tool_calling": RewardConfig(
        function_path="reward_kit.rewards.function_calling:exact_tool_match_reward", params={"ordered": False}
    ),
}
"""The built-in verifiers. Each is also the verifier of the split of its name."""


class Verifier(NamedTuple):
    """Who verifies the answers of a split."""

    name: str
    """A built-in's name, or a reward's name or path."""
    reward: RewardConfig


def verifier_for(split: str, chosen: Mapping[str, str | RewardConfig]) -> Verifier:
    """The verifier of `split`: the one chosen for it, else the built-in of its name."""
    given = chosen.get(split, split if split in VERIFIERS else None)
    if given is None:
        raise ConfigError(
            f"Split {split!r} has no verifier. Name one: `verifiers: {{{split}: …}}` in the experiment, or "
            f"--verifier {split}=…; it may be {_named(VERIFIERS)}, or a reward by its name or its path "
            "(pkg.mod:fn, file.py:fn)."
        )
    if isinstance(given, RewardConfig):
        return Verifier(given.function_path, given)
    if given in VERIFIERS:
        return Verifier(given, VERIFIERS[given])
    try:
        return Verifier(given, RewardConfig(function_path=reward_path(given)))
    except ImportError as error:
        raise ConfigError(
            f"There is no verifier {given!r}, which split {split!r} asks for: use {_named(VERIFIERS)}, or a reward. "
            f"{error}"
        ) from error


def _named(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
