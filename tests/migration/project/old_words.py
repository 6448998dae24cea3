# SPDX-License-Identifier: Apache-2.0
"""A reward without annotations that returns a dict."""


def judge(messages, ground_truth=None, enough=5, **kwargs):
    """The share of `enough` words that the answer has, and 1 where it has more."""
    count = len(messages[-1]["content"].split())
    share = min(1.0, count / enough)
    return {
        "score": share,
        "reason": f"{count} words, and {enough} are enough",
        "metrics": {"words": {"is_score_valid": count >= enough, "score": share, "reason": str(count)}},
    }
