"""The reward: is the answer right, and is the way to it shown?"""

from reward_kit import EvaluateResult, Message, MetricResult, reward_function
from reward_kit.rewards.math import math_reward

WITHOUT_STEPS = 0.5
"""What a right answer is worth that shows no way to it."""


@reward_function
def evaluate(messages: list[Message], ground_truth: str, **kwargs: object) -> EvaluateResult:
    """1.0 for a right answer with its steps, half of that without them, 0.0 for a wrong one."""
    right = math_reward(
        messages, ground_truth=ground_truth
    )  # reads \\boxed{}, ####, "the answer is", and compares values
    shown = "=" in messages[-1].text
    score = (1.0 if shown else WITHOUT_STEPS) if right.score == 1.0 else 0.0
    return EvaluateResult(
        score=score,
        reason=f"{right.reason}; the steps are {'shown' if shown else 'missing'}",
        metrics={
            **right.metrics,
            "steps_shown": MetricResult(score=float(shown), is_score_valid=shown, reason="is there an equation?"),
        },
    )
