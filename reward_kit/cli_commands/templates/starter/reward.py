"""The reward: was the right number given, and without rambling?"""

import re

from reward_kit import EvaluateResult, Message, MetricResult, reward_function

NUMBER = re.compile(r"(?<!\d)[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d+)?")
"""A number with its sign, its decimals and its thousands separators: -3, 0.5, 1,250.75."""
WORDY = 30
"""An answer of more words than this loses a fifth of its score."""


@reward_function
def evaluate(messages: list[Message], ground_truth: str, **kwargs: object) -> EvaluateResult:
    """1 for the right number, 0.8 if it is buried in words, 0 otherwise."""
    answer = messages[-1].text
    numbers = NUMBER.findall(answer)
    correct = bool(numbers) and value(numbers[-1]) == value(ground_truth)
    brief = len(answer.split()) <= WORDY
    return EvaluateResult(
        score=(1.0 if brief else 0.8) if correct else 0.0,
        reason=f"the last number is {numbers[-1] if numbers else 'missing'}, {ground_truth} was expected",
        metrics={
            "correct": MetricResult(score=float(correct), is_score_valid=correct, reason="last number compared"),
            "brief": MetricResult(score=float(brief), is_score_valid=brief, reason=f"at most {WORDY} words"),
        },
    )


def value(number: str) -> float:
    """What the text stands for: `1,000.0` is `1000`."""
    return float(number.replace(",", "").replace("−", "-"))
