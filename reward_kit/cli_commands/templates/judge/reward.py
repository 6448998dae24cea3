"""The reward: a model's grade by a rubric, and a rule for what needs no model."""

from typing import Any

from reward_kit import EvaluateResult, Message, MetricResult, reward_function
from reward_kit.rewards.judge import grade

RUBRIC = """10: friendly, answers what was asked, and promises nothing that a shop cannot keep.
5: answers what was asked, but is cold or vague.
0: rude, wrong, or about something else."""
MOST_WORDS = 60


@reward_function(timeout=600)
async def evaluate(messages: list[Message], judge: Any, **kwargs: object) -> EvaluateResult:
    """The judge's grade from 0.0 to 1.0; a letter that is too long is not read, and gets 0.0."""
    letter = messages[-1].text
    brief = len(letter.split()) <= MOST_WORDS
    length = MetricResult(score=float(brief), is_score_valid=brief, reason=f"at most {MOST_WORDS} words")
    if not brief:
        return EvaluateResult(score=0.0, reason="The letter is too long.", metrics={"brief": length})
    given = await grade(
        judge, messages[-2].text, letter, rubric=RUBRIC
    )  # the config's `judge` section says who is asked
    judged = MetricResult(score=given.score, is_score_valid=given.score >= 0.5, reason=given.reply[:200])
    return EvaluateResult(score=given.score, reason=judged.reason, metrics={"brief": length, "judge": judged})
