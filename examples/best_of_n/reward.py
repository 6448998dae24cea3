# SPDX-License-Identifier: Apache-2.0
"""The verifiers of all three splits as one reward: for a run, a preview and a training over mixed data."""

from typing import Any

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.code_execution import fractional_code_reward
from reward_kit.rewards.function_calling import exact_tool_match_reward
from reward_kit.rewards.math import math_reward
from reward_kit.typed_interface import reward_function


@reward_function(timeout=120)
def evaluate(
    messages: list[Message],
    ground_truth: Any,
    category: str,
    tools: Any = None,
    sandbox: Any = None,
    isolated_python: Any = None,
    **kwargs: Any,
) -> EvaluateResult:
    """What the verifier of the row's category says: the right number, the share of tests passed, the right calls."""
    if category == "math":
        return math_reward(messages, ground_truth=ground_truth)
    if category == "code":
        return fractional_code_reward(
            messages, ground_truth=ground_truth, sandbox=sandbox, isolated_python=isolated_python
        )
    if category == "tool_calling":
        return exact_tool_match_reward(messages, ground_truth=ground_truth, tools=tools, ordered=False)
    raise ValueError(f"There is no verifier for the category {category!r}. Add one here.")
