# SPDX-License-Identifier: Apache-2.0
"""The reward of this example: does the code pass all tests, in the sandbox?"""

from typing import Any

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.code_execution import fractional_code_reward
from reward_kit.typed_interface import reward_function


@reward_function(timeout=120)
def evaluate(
    messages: list[Message],
    ground_truth: str,
    entry_point: str | None = None,
    sandbox: Any = None,
    isolated_python: Any = None,
    **kwargs: Any,
) -> EvaluateResult:
    """1.0 if all tests pass, else 0.0. The share that passes is the metric `pass_rate`, and earns nothing by itself.

    A share would pay for code that prints the same thing always, where that is right for a test or two. `sandbox` and
    `isolated_python` are what the run's settings name; without a run, this process has its own.
    """
    result = fractional_code_reward(
        messages, ground_truth=ground_truth, entry_point=entry_point, timeout=5,
        sandbox=sandbox, isolated_python=isolated_python,
    )  # fmt: skip
    if result.is_score_valid:
        result.score = float(result.score == 1.0)
    return result
