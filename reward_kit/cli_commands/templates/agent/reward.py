"""The reward: is everything where it belongs, and how many moves did it take?"""

from typing import Any

from reward_kit import EvaluateResult, Message, MetricResult, reward_function


@reward_function
def evaluate(
    messages: list[Message], facts: dict[str, Any], ground_truth: dict[str, list[str]], fewest: int, **kwargs: object
) -> EvaluateResult:
    """1.0 for a tidy world by the fewest moves, less for each move more, 0.0 where something is in a wrong box."""
    tidy = {name: sorted(held) for name, held in facts["boxes"].items()} == ground_truth
    score = fewest / max(facts["moves"], fewest) if tidy else 0.0
    reason = f"{'tidy' if tidy else 'untidy'} after {facts['moves']} moves; {fewest} are enough"
    metrics = {"tidy": MetricResult(score=float(tidy), is_score_valid=tidy, reason=reason)}
    return EvaluateResult(score=score, reason=reason, metrics=metrics)
