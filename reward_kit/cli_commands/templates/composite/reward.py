"""A part of the composite reward in conf/run.yaml: is the answer brief?"""

from reward_kit import EvaluateResult, Message, reward_function

MOST_WORDS = 20


@reward_function
def brief(messages: list[Message], **kwargs: object) -> EvaluateResult:
    """1.0 up to 20 words; beyond, the less the longer."""
    words = len(messages[-1].text.split())
    return EvaluateResult(score=min(1.0, MOST_WORDS / max(words, 1)), reason=f"{words} words")
