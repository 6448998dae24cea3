"""The reward: does the command do its work in a fresh sandbox, and can a person read it?"""

from typing import Any

from reward_kit import EvaluateResult, Message, MetricResult, reward_function
from reward_kit.rewards.shell import shell_reward

LONGEST = 60
"""Characters of a command that is easy to read."""
HARD_TO_READ = 0.8


@reward_function(timeout=120)
async def evaluate(
    messages: list[Message], setup_commands: list[str], success_condition: str, sandbox: Any, **kwargs: object
) -> EvaluateResult:
    """1.0 for a command after which the condition holds, a fifth less for a long one, else 0.0.

    `sandbox` is the run's own: a reward that names it is handed it. Each answer gets a fresh one.
    """
    done = await shell_reward(
        messages, setup_commands=setup_commands, success_condition=success_condition, sandbox=sandbox
    )
    readable = len(messages[-1].text) <= LONGEST
    metric = MetricResult(score=float(readable), is_score_valid=readable, reason=f"at most {LONGEST} characters")
    factor = 1.0 if readable else HARD_TO_READ
    return done.model_copy(update={"score": done.score * factor, "metrics": {**done.metrics, "readable": metric}})
