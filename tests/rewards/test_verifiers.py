# SPDX-License-Identifier: Apache-2.0
"""Which reward verifies a split."""

from __future__ import annotations

import pytest

from reward_kit.config_models import RewardConfig
from reward_kit.errors import ConfigError
from reward_kit.rewards.verifiers import VERIFIERS, verifier_for


@pytest.mark.parametrize("name", VERIFIERS)
def test_a_split_called_like_a_verifier_has_it(name: str) -> None:
    assert verifier_for(name, {}) == (name, VERIFIERS[name])


def test_another_verifier_may_be_chosen_by_name_path_or_config() -> None:
    assert verifier_for("aime", {"aime": "math"}).reward.function_path.endswith(":math_reward")
    assert verifier_for("math", {"math": "mine.py:judge"}) == (
        "mine.py:judge",
        RewardConfig(function_path="mine.py:judge"),
    )
    assert verifier_for("short", {"short": "length"}).reward.function_path == "reward_kit.rewards.length:length_reward"
    config = RewardConfig(function_path="a.b:c", pass_threshold=0.5)
    assert verifier_for("math", {"math": config}) == ("a.b:c", config)


@pytest.mark.parametrize("split", ["stem", "maths", "tool", "code_python"])
def test_nothing_is_guessed_from_a_name(split: str) -> None:
    with pytest.raises(ConfigError, match=rf"Split '{split}' has no verifier.*--verifier {split}=.*'math', 'code'"):
        verifier_for(split, {})


def test_an_unknown_verifier_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no verifier 'mathz', which split 'x' asks for.*'tool_calling'"):
        verifier_for("x", {"x": "mathz"})
