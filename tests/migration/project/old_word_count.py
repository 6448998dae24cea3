# SPDX-License-Identifier: Apache-2.0
"""An older reward: not annotated, and its result is a dict."""


def evaluate(messages, ground_truth=None, target=10, **kwargs):
    """As many words as `target` are right."""
    words = len(messages[-1]["content"].split())
    score = min(words, target) / target
    metrics = {"word_count": {"score": score, "reason": f"{words} words", "is_score_valid": True}}
    return {"score": score, "reason": f"{words} of {target} words", "metrics": metrics}
