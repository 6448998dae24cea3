# SPDX-License-Identifier: Apache-2.0
"""Format: does the answer have the shape that was asked for?"""

from __future__ import annotations

import re
from typing import Any

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._support.parameters import compiled
from reward_kit.rewards._support.verdicts import check, reply_of
from reward_kit.typed_interface import reward_function

__all__ = ["THINK_THEN_ANSWER", "format_reward"]

_TAG = "</?(?:think|answer)>"
_INSIDE = rf"\s*+(?!{_TAG})(?:[^<]|(?!{_TAG})<)*+"
THINK_THEN_ANSWER = rf"^<think>\n{_INSIDE}</think>\n<answer>\n{_INSIDE}</answer>$"
"""The default: one `<think>` block, one `<answer>` block, each on lines of its own, neither empty, nothing around."""


@reward_function
def format_reward(
    messages: list[Message],
    ground_truth: Any = None,
    format_regex: str = THINK_THEN_ANSWER,
    require_exact_match: bool = True,
    **kwargs: Any,
) -> EvaluateResult:
    r"""1.0 if the answer has the format, 0.0 if not.

    By default: `<think>` and a newline, thoughts, `</think>`, a newline, `<answer>` and a newline, the answer,
    `</answer>`, and nothing before or after. Each tag occurs once, and neither block is empty. `format_regex` is
    another format; `.` matches newlines too. With `require_exact_match` the whole answer must match (one newline at its
    end is forgiven), else some part of it. A pattern that does not compile is an error.

    Metrics: `format_check`.
    Cost: linear with the default format, about 10 µs per kB; a pattern of your own costs what it costs.
    Does not detect: thoughts that are no thoughts, an answer that is wrong, reasoning that the endpoint hands over
    apart from the content (`reasoning_content`).

    >>> answer = "<think>\n2 + 2 is 4.\n</think>\n<answer>\n4\n</answer>"
    >>> format_reward(messages=[{"role": "assistant", "content": answer}]).score
    1.0
    >>> format_reward(messages=[{"role": "assistant", "content": answer + " I hope this helps!"}]).score
    0.0
    """
    reply = reply_of(messages, "format_check")
    pattern = compiled("format_regex", format_regex, re.DOTALL)
    matches = _whole(pattern, reply.text) if require_exact_match else pattern.search(reply.text) is not None
    reason = "The answer has the format." if matches else f"The answer does not match {format_regex!r}."
    return EvaluateResult(score=float(matches), reason=reason, metrics={"format_check": check(matches, reason)})


def _whole(pattern: re.Pattern[str], text: str) -> bool:
    return any(pattern.fullmatch(form) is not None for form in {text, text.removesuffix("\n")})
