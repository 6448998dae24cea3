"""The reward: of the right answers to a question, the shorter ones get more."""

from reward_kit import EvaluateResult, Message, MetricResult, reward_function
from reward_kit.rewards.math import math_reward

LEAST = 0.5
"""What the longest of the right answers gets."""


@reward_function(mode="batch")
def evaluate(rollouts_messages: list[list[Message]], ground_truth: str, **kwargs: object) -> list[EvaluateResult]:
    """1.0 for the shortest right answer, 0.5 for the longest, in between by length; 0.0 for wrong ones."""
    right = [math_reward(messages, ground_truth=ground_truth).score == 1.0 for messages in rollouts_messages]
    lengths = [len(messages[-1].text) for messages in rollouts_messages]
    of_right = [length for length, ok in zip(lengths, right, strict=True) if ok] or [0]
    shortest, spread = min(of_right), max(of_right) - min(of_right)
    results = []
    for length, ok in zip(lengths, right, strict=True):
        longer = (length - shortest) / spread if ok and spread else 0.0
        reason = f"{'right' if ok else 'wrong'}, {length} characters; the right ones begin at {shortest}"
        metric = MetricResult(score=float(ok), is_score_valid=ok, reason=reason)
        score = 1.0 - (1.0 - LEAST) * longer if ok else 0.0
        results.append(EvaluateResult(score=score, reason=reason, metrics={"right": metric}))
    return results
