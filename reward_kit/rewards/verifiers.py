"""Which reward verifies the answers of a split: the built-in verifiers by name, and any other reward by its path.

Nothing is guessed from a split's name beyond the name itself: a split that no verifier is known for is an error that
says how to name one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from reward_kit.config_models import RewardConfig
from reward_kit.errors import ConfigError
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._support.verdicts import no_verdict
from reward_kit.typed_interface import reward_function

__all__ = ["VERIFIERS", "Verifier", "unverified", "verifier_for"]

VERIFIERS: dict[str, RewardConfig] = {
    "math": RewardConfig(function_path="reward_kit.rewards.math:math_reward"),
    "code": RewardConfig(
        function_path="reward_kit.rewards.code_execution:fractional_code_reward", params={"language": "python"}
    ),
    "tool_calling": RewardConfig(function_path="reward_kit.rewards.function_calling:exact_tool_match_reward"),
}
"""The built-in verifiers. Each is also the verifier of the split of its name."""


class Verifier(NamedTuple):
    """Who verifies the answers of a split."""

    name: str
    """A built-in's name, or the path of a reward."""
    reward: RewardConfig


def verifier_for(split: str, chosen: Mapping[str, str | RewardConfig]) -> Verifier:
    """The verifier of `split`: the one chosen for it, else the built-in of its name."""
    given = chosen.get(split, split if split in VERIFIERS else None)
    if given is None:
        raise ConfigError(
            f"Split {split!r} has no verifier. Name one: `verifiers: {{{split}: …}}` in the experiment, or "
            f"--verifier {split}=…; it may be {_named(VERIFIERS)}, or the path of a reward (pkg.mod:fn, file.py:fn)."
        )
    if isinstance(given, RewardConfig):
        return Verifier(given.function_path, given)
    if given in VERIFIERS:
        return Verifier(given, VERIFIERS[given])
    if not set(":./") & set(given):
        raise ConfigError(
            f"There is no verifier {given!r}, which split {split!r} asks for. Use {_named(VERIFIERS)}, or the path of "
            "a reward (pkg.mod:fn, file.py:fn)."
        )
    return Verifier(given, RewardConfig(function_path=given))


def _named(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


@reward_function
async def unverified(messages: list[Message], *, split: str | None = None, **kwargs: Any) -> EvaluateResult:
    """No verdict, ever: it stands where a sample has no verifier."""
    return no_verdict(f"The split {split!r} has no verifier. Name one in `verifiers`.")
