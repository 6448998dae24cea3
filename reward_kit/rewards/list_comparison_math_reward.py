# SPDX-License-Identifier: Apache-2.0
r"""Judge an answer that is a list of numbers: roots, divisors, a sequence."""

from __future__ import annotations

import re
from typing import Any, Final

from reward_kit.answers.final_answer import marked_answers, spoken_end, stated_answer
from reward_kit.mathematics.equivalence import value_of
from reward_kit.mathematics.form import left_undone
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards._support.verdicts import check, no_verdict, quoted, reply_of, wrong
from reward_kit.rewards.math import answers_match, right_answer
from reward_kit.typed_interface import reward_function

__all__ = ["extract_number_list", "list_comparison_math_reward", "parse_number_list_from_string"]

_MATH: Final = re.compile(r"\$\$([^$]{1,2000})\$\$|\$([^$\n]{1,2000})\$")
_BRACKETS: Final = {"[": "]", "(": ")", "{": "}"}
_LABEL: Final = re.compile(r"[A-Za-z]\w{0,8}\s{0,4}(?:=|:|\\in)\s{0,4}")
_AND: Final = re.compile(r"\s*(?:[,;]\s*(?:and|or)\b|[,;]|\b(?:and|or)\b)\s*", re.IGNORECASE)
_LONGEST: Final = 20_000


def parse_number_list_from_string(s: str) -> list[float] | None:
    r"""The numbers of a list, with or without brackets; `None` if `s` is not a list of numbers.

    >>> parse_number_list_from_string("1, 2, 3.5"), parse_number_list_from_string(r"\{-2, \frac{1}{2}\}")
    ([1.0, 2.0, 3.5], [-2.0, 0.5])
    >>> parse_number_list_from_string("1, x") is None
    True
    """
    items = _items(s)
    if items is None:
        return None
    values = [value_of(item) for item in items]
    return [value for value in values if value is not None] if None not in values else None


def extract_number_list(text: str) -> list[list[float]]:
    r"""The lists of numbers in `text`: in its marked answers, else in `$…$`, else the text itself.

    >>> extract_number_list(r"So \boxed{1, 2, 3} and \boxed{4,5}."), extract_number_list("3, 4")
    ([[1.0, 2.0, 3.0], [4.0, 5.0]], [[3.0, 4.0]])
    """
    spoken = spoken_end(text)
    candidates = [answer.text for answer in marked_answers(text)]
    candidates = candidates or [match[1] or match[2] for match in _MATH.finditer(spoken)]
    if not candidates:
        stated = stated_answer(text)
        candidates = [spoken] if stated is None or parse_number_list_from_string(spoken) else [stated.text]
    parsed = (parse_number_list_from_string(candidate) for candidate in candidates)
    return [numbers for numbers in parsed if numbers]


@reward_function
def list_comparison_math_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    order_matters: bool = False,
    accept_unevaluated: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    r"""1.0 if the last message's list has the items of the ground truth, 0.0 if not.

    Items are compared exactly, as mathematics: `\sqrt{4}` is 2 and 0.5 is `1/2`. Without `order_matters` neither the
    order nor repetitions count. Items that are not worked out (`2 \cdot 3` for 6) do not count, unless the ground truth
    is written in the same way or `accept_unevaluated` is set. The last marked list of the reply is its answer. A ground
    truth without a list gives no verdict.

    Metrics: `extracted_original_lists`, `extracted_generated_lists`, `list_comparison`; `error`.
    Cost: linear in the reply; about 10 µs an item, more where items are not plain numbers and have to be paired.
    Does not detect: whether an ordered list was asked for, unless `order_matters` says so; lists of lists.

    >>> reply = [{"role": "assistant", "content": r"The divisors are \boxed{6, 3, 2, 1}."}]
    >>> list_comparison_math_reward(reply, ground_truth="1, 2, 3, 6").score
    1.0
    >>> list_comparison_math_reward(reply, ground_truth="1, 2, 3, 6", order_matters=True).score
    0.0
    """
    reply = reply_of(messages, "list_comparison")
    gold_text = right_answer(ground_truth)
    gold = _items(gold_text) if gold_text is not None else None
    if not gold:
        return no_verdict(f"The ground truth {quoted(ground_truth)} holds no list. Give one, such as '1, 2, 3'.")
    answer = stated_answer(reply.text)
    given = _items(answer.text) if answer is not None else None
    whole = _items(spoken_end(reply.text))
    if answer is None or (answer.source == "last line" and whole and len(whole) > len(given or ())):
        given = whole
    found = {
        "extracted_original_lists": check(True, quoted(gold)),
        "extracted_generated_lists": check(bool(given), quoted(given)),
    }
    if not given:
        return wrong("The text states no list.", {**found, "list_comparison": check(False, "There is no list.")})
    undone = None if accept_unevaluated else left_undone(_list(gold, order_matters), _list(given, order_matters))
    if undone is not None:
        reason = f"{quoted(given)} is not worked out: it still holds a calculation ({undone})."
        return wrong(reason, {**found, "list_comparison": check(False, reason)})
    return _compared(gold, given, order_matters, found)


def _list(items: list[str], order_matters: bool) -> str:
    """The items as one answer: a tuple where their order counts, a set where not."""
    return ("({})" if order_matters else r"\{{{}\}}").format(", ".join(items))


def _compared(gold: list[str], given: list[str], order_matters: bool, found: dict[str, Any]) -> EvaluateResult:
    matched = answers_match(_list(gold, order_matters), _list(given, order_matters))
    same = bool(matched) and (not order_matters or len(gold) == len(given))
    relation = "has the items of" if same else "differs from" if matched is not None else "cannot be compared with"
    reason = f"{quoted(given)} {relation} {quoted(gold)}{' in order' if order_matters else ''}."
    metrics = {**found, "list_comparison": check(same, reason)}
    return EvaluateResult(score=1.0, reason=reason, metrics=metrics) if same else wrong(reason, metrics)


def _items(text: str) -> list[str] | None:
    """The items of a list as written; `None` if `text` is too long, or empty."""
    bare = text.strip().strip("$").strip().rstrip(".").strip("$ ")
    label = _LABEL.match(bare)
    bare = bare[label.end() :] if label else bare
    bare = bare.replace("\\{", "{").replace("\\}", "}").replace("\\left", "").replace("\\right", "").strip()
    if _BRACKETS.get(bare[:1]) == bare[-1:] and len(bare) > 1:
        bare = bare[1:-1]
    if not bare or len(bare) > _LONGEST:
        return None
    return [item for item in _split(bare) if item] or None


def _split(text: str) -> list[str]:
    """`text` at the commas that are not inside brackets."""
    items: list[str] = []
    depth = start = 0
    position = 0
    while position < len(text):
        character = text[position]
        depth += (character in "([{") - (character in ")]}")
        separator = _AND.match(text, position) if depth == 0 else None
        if separator is not None and separator.group().strip():
            items.append(text[start:position].strip())
            start = position = separator.end()
        else:
            position += 1
    return [*items, text[start:].strip()]
