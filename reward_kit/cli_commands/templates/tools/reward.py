"""The reward: were the right tools called, with the right arguments?"""

from typing import Any

from reward_kit import EvaluateResult, Message, reward_function
from reward_kit.rewards.function_calling import exact_tool_match_reward

RIGHT_TOOL = 0.3
"""What calling the right tools with other arguments is worth."""


@reward_function
def evaluate(messages: list[Message], ground_truth: Any, tools: Any = None, **kwargs: object) -> EvaluateResult:
    """1.0 for exactly the expected calls, a part of that for the right tools with other arguments, else 0.0."""
    matched = exact_tool_match_reward(messages, ground_truth, tools=tools, ordered=False)
    named = matched.metrics.get("function_name_match")
    if matched.score == 1.0 or named is None or named.score < 1.0:
        return matched
    return matched.model_copy(update={"score": RIGHT_TOOL, "reason": f"{matched.reason}; the tools are right"})
