# SPDX-License-Identifier: Apache-2.0
"""The reward of this example: three parts in one. Each is a metric of its own.

both_given (gate) ── no ──▶ 0.0, and nothing is run
      │ yes
      ▼
answer × 1 + program × 2, over 3
"""

import re
from typing import Any

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.code_execution import fractional_code_reward
from reward_kit.rewards.composite import composite_reward
from reward_kit.rewards.math import math_reward
from reward_kit.typed_interface import reward_function

_CODE = re.compile(r"```.*?```", re.DOTALL)


def both_given(messages: list[Message], **kwargs: Any) -> float:
    """1.0 if the answer has a number in a box and a code block."""
    text = messages[-1].text
    return float("\\boxed{" in text and _CODE.search(text) is not None)


def answer(messages: list[Message], ground_truth: str, **kwargs: Any) -> EvaluateResult:
    """1.0 if the number is right. The code block is not looked at."""
    prose = messages[-1].model_copy(update={"content": _CODE.sub("", messages[-1].text)})
    return math_reward([*messages[:-1], prose], ground_truth=ground_truth)


def program(messages: list[Message], tests: str, **kwargs: Any) -> EvaluateResult:
    """The share of tests that the program passes, in the sandbox."""
    return fractional_code_reward(messages, **{**kwargs, "ground_truth": tests, "timeout": 5})


@reward_function(timeout=120)
def evaluate(
    messages: list[Message],
    ground_truth: str,
    tests: str,
    answer_weight: float = 1.0,
    program_weight: float = 2.0,
    sandbox: Any = None,
    isolated_python: Any = None,
    **kwargs: Any,
) -> EvaluateResult:
    """The weighted mean of `answer` and `program`, if both are given; else 0.0."""
    parts = {
        "both_given": {"reward": both_given, "gate": True},
        "answer": {"reward": answer, "weight": answer_weight},
        "program": {"reward": program, "weight": program_weight},
    }
    handed = {**kwargs, "tests": tests, "sandbox": sandbox, "isolated_python": isolated_python}
    result: EvaluateResult = composite_reward(messages, ground_truth, parts=parts, **handed)
    return result
