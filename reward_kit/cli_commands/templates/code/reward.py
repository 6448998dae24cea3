"""The reward: which share of the tests does the function pass, and does it say what it does?"""

from typing import Any

from reward_kit import EvaluateResult, Message, MetricResult, reward_function
from reward_kit.rewards.code_execution import extract_code_blocks, fractional_code_reward

UNDOCUMENTED = 0.9
"""What the score is multiplied with where the function has no docstring."""


@reward_function(timeout=60)
def evaluate(
    messages: list[Message],
    ground_truth: list[dict[str, str]],
    function_to_call: str,
    isolated_python: Any = None,
    **kwargs: object,
) -> EvaluateResult:
    """The share of tests that pass; a tenth less where the function has no docstring.

    `isolated_python` is the run's sandbox for Python: a reward that names it is handed it.
    """
    tested = fractional_code_reward(
        messages, ground_truth, function_to_call=function_to_call, timeout=5, isolated_python=isolated_python
    )
    documented = any('"""' in block["code"] for block in extract_code_blocks(messages[-1].text))
    metric = MetricResult(score=float(documented), is_score_valid=documented, reason="is there a docstring?")
    return tested.model_copy(
        update={
            "score": tested.score * (1.0 if documented else UNDOCUMENTED),
            "metrics": {**tested.metrics, "documented": metric},
        }
    )
