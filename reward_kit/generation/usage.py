# SPDX-License-Identifier: Apache-2.0
"""What a reply says that it used. A reply that says nothing of use has used an unknown amount, and never none.

    told by                        tokens of the answer
    OpenAI, vLLM, most others      completion_tokens, reasoning among them
    xAI                            completion_tokens + completion_tokens_details.reasoning_tokens
    Gemini, OpenAI-compatible      total_tokens - prompt_tokens: its reasoning is nowhere else

So the answer has the larger of what is told and what the total leaves, and never less than its reasoning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import cache
from math import isfinite
from typing import Any

from reward_kit.models import Completion, Failure, Usage
from reward_kit.utils.trusted import trusted

__all__ = ["counted", "summed", "usage_of", "used_by"]

_log = logging.getLogger(__name__)
_plain_usage = trusted(Usage)

_MOST_TOKENS = 10**12
"""No request has more: what is told beyond it is not a count."""
_COUNTED = ("prompt_tokens", "completion_tokens")
_IN_RESPONSES = {
    "input_tokens": "prompt_tokens", "output_tokens": "completion_tokens",
    "input_tokens_details": "prompt_tokens_details", "output_tokens_details": "completion_tokens_details",
}  # fmt: skip
"""What OpenAI's Responses call the counts."""
_PLAIN = (*_COUNTED, "total_tokens")
"""All that most replies tell. Such a reply is read in a third of the time."""


def usage_of(told: Any) -> Usage | None:
    """What the field `usage` of a reply of OpenAI's APIs says; None where it says nothing that can be counted on.

    >>> usage_of({"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 2220}).completion_tokens
    1920
    >>> usage_of({"prompt_tokens": 0, "completion_tokens": 0})
    """
    if not isinstance(told, dict):
        return None
    prompt: Any = told.get("prompt_tokens")
    answer: Any = told.get("completion_tokens")
    total = told.get("total_tokens")
    is_plain = len(told) == len(_PLAIN) and type(prompt) is type(answer) is type(total) is int
    if is_plain and 0 < prompt <= _MOST_TOKENS and 0 <= answer <= _MOST_TOKENS and total <= prompt + answer:
        return _plain_usage(prompt_tokens=prompt, completion_tokens=answer)
    if prompt is None and "input_tokens" in told:
        return usage_of({_IN_RESPONSES.get(name, name): held for name, held in told.items()})
    total = _count(told, "total_tokens")
    if _is_no_count(prompt) or (_is_no_count(answer) and (answer is not None or total is None)):
        _remark_on(told)
        return None
    if total is not None:
        answer = max(answer or 0, total - prompt)
    thought = _count(told.get("completion_tokens_details"), "reasoning_tokens")
    if thought is not None and thought > answer:
        answer += thought
    cost = _money(told) if "cost" in told else None
    if prompt == 0 and not cost:
        return None  # there is no prompt without tokens
    return _with_details(told, prompt, answer, thought, cost)


def _with_details(told: dict[str, Any], prompt: int, answer: int, thought: int | None, cost: float | None) -> Usage:
    details = told.get("prompt_tokens_details")
    known, written = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    if known is None:  # DeepSeek's way, and Moonshot's
        known = _count(told, "prompt_cache_hit_tokens" if "prompt_cache_hit_tokens" in told else "cached_tokens")
    more: dict[str, Any] = {}
    if thought is not None or known is not None or written is not None:
        more = {"reasoning_tokens": thought, "cached_prompt_tokens": known}
    if written is not None:
        more["cache_write_tokens"] = written
    if cost is not None:
        more["cost"] = cost
    return Usage(prompt_tokens=prompt, completion_tokens=answer, **more)


def _money(told: dict[str, Any]) -> float | None:
    """What OpenRouter took; with a key of the user's own, also what the provider behind it takes."""
    cost = _amount(told, "cost")
    if cost is None or not told.get("is_byok"):
        return cost
    upstream = _amount(told.get("cost_details"), "upstream_inference_cost")
    return None if upstream is None else cost + upstream


def _amount(fields: Any, name: str) -> float | None:
    value = fields.get(name) if isinstance(fields, dict) else None
    good = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0
    return float(value) if good and value is not None else None


def _count(counts: Any, name: str) -> int | None:
    if not counts or not isinstance(counts, dict):
        return None
    value = counts.get(name)
    return None if _is_no_count(value) else value


def _is_no_count(value: Any) -> bool:
    return type(value) is not int or not 0 <= value <= _MOST_TOKENS


@cache
def _say_once(text: str) -> None:
    _log.warning("%s", text)


def _remark_on(told: dict[str, Any]) -> None:
    counts = {name: told.get(name) for name in _COUNTED}
    _log.debug("No token counts: %r", counts)
    if any(value is not None for value in counts.values()):
        _say_once("The endpoint reports impossible token counts. Such answers count with the most they may have used.")


def counted(answered: Completion, most: Usage) -> Completion:
    """The first answer of a reply that told nothing of what it used, or nothing of its answer, with the most of it."""
    usage, message = answered.usage, answered.message
    if usage is not None:
        if not (message.text or message.tool_calls or message.function_call):
            return answered  # an empty answer
        most = usage.model_copy(update={"completion_tokens": most.completion_tokens, "at_most": True})
    return answered.model_copy(update={"usage": most})


# ── several together ─────────────────────────────────────────────────────────────────────────────────────────────────


def used_by(outcome: Completion | Failure) -> Sequence[Usage]:
    """What the replies used that an outcome was made of; nothing where it came from the cache."""
    if isinstance(outcome, Failure):
        return outcome.spent or ()
    if outcome.cached:
        return ()
    own = () if outcome.usage is None else (outcome.usage,)
    return own if outcome.retried is None else (*outcome.retried, *own)


def summed(usages: Iterable[Usage]) -> Usage | None:
    """Several together; None of none. Details that only some tell are the sum of those."""
    used = [*usages]
    if len(used) <= 1:
        return used[0] if used else None
    fields = {name: [held for each in used if (held := getattr(each, name)) is not None] for name in Usage.model_fields}
    if len(fields["cost"]) < len(used):
        fields["cost"] = []
    flag = {"at_most": True} if any(fields.pop("at_most")) else {}
    return Usage(**{name: sum(counts) for name, counts in fields.items() if counts}, **flag)
