r"""Judge the answer to a mathematics problem: find it, read it, compare it with the right one.

    text ──find──▶ answer ──read──▶ quantity ──compare──▶ 1.0 or 0.0
         _support/answers    _support/quantities

Numbers are compared exactly, as fractions: 2021 is not 2022 at any tolerance. Anything else is compared as written,
after typography is taken away; where that cannot decide, there is no verdict rather than a wrong one.
"""

from __future__ import annotations

import re
from typing import Any

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.answers import Answer, after_thinking, marked_answers, stated_answer
from reward_kit.rewards._support.quantities import (
    DEFAULT_ABSOLUTE_TOLERANCE,
    DEFAULT_TOLERANCE,
    Quantity,
    find_quantities,
    plain_markup,
    read_quantity,
    same_quantity,
)
from reward_kit.typed_interface import reward_function

__all__ = ["answers_match", "compare_numbers", "extract_numbers", "math_reward"]

_SPACE = re.compile(r"\s+")
_NEAR = 12
"""Characters after an answer in which "or" offers another one."""
_ALTERNATIVES = re.compile(r"\bor\b", re.IGNORECASE)
_MATHEMATICS = re.compile(r"[\d\\+*/^=<>()\[\]{}|√π∞]|\s-\s?\w|\b(?:pi|sqrt|sin|cos|tan|log|ln|exp)\b")
_VARIABLE_ALONE = re.compile(r"(?<![^\W\d_])[b-hj-zB-HJ-Z](?![^\W\d_'’])")
_VARIABLE = re.compile(r"\s*\\?[A-Za-z]\w{0,12}\s*=\s*(?=\S)")


def extract_numbers(text: str) -> list[tuple[str, float | str]]:
    r"""Pairs of (text, value) for the numbers `text` answers with.

    Marked answers count before plain numbers: `<answer>` tags, then `\boxed`, then `####`; their text includes the
    mark. A box that holds no number gives its content as the value.

    >>> extract_numbers(r"First 48/2 = 24, so \boxed{72}.")
    [('\\boxed{72}', 72.0)]
    >>> extract_numbers("3 pens cost $4.50")
    [('3', 3.0), ('$4.50', 4.5)]
    """
    marked = marked_answers(text)
    if not marked:
        return [(quantity.text, quantity.number) for quantity in find_quantities(text)]
    found: list[tuple[str, float | str]] = []
    for answer in marked:
        quantity = _quantity(answer.text)
        if quantity is not None:
            found.append((answer.whole, quantity.number))
        elif answer.source == "boxed":
            found.append((answer.whole, answer.text))
    return found


def compare_numbers(
    expected: float, actual: float, relative_tolerance: float = 1e-5, absolute_tolerance: float = 1e-8
) -> tuple[bool, float]:
    """Whether two floats are close, and how similar they are in [0, 1]. Whole numbers must be equal to match.

    >>> compare_numbers(3.14159, 3.14, relative_tolerance=0.01)
    (True, 1.0)
    >>> compare_numbers(2021.0, 2022.0, relative_tolerance=0.01)[0]
    False
    """
    if expected == actual:
        return True, 1.0
    difference = abs(expected - actual)
    both_whole = float(expected).is_integer() and float(actual).is_integer()
    if not both_whole and difference <= max(relative_tolerance * abs(expected), absolute_tolerance):
        return True, 1.0
    similarity = 1.0 - difference / abs(expected) if expected else 0.0
    return False, max(0.0, similarity) if similarity == similarity else 0.0  # noqa: PLR0124 - NaN is not itself


def answers_match(gold: str, answer: str) -> bool | None:
    r"""Whether `answer` says the same as `gold`; `None` where that cannot be judged.

    >>> answers_match("72", "72 apples"), answers_match(r"\frac{3}{4}", "0.75"), answers_match("2021", "2022")
    (True, True, False)
    >>> answers_match(r"\frac{\pi}{2}", r"\pi/2") is None
    True
    """
    return _match(gold, answer, DEFAULT_TOLERANCE, DEFAULT_ABSOLUTE_TOLERANCE)


@reward_function
def math_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    tolerance: float = DEFAULT_TOLERANCE,
    absolute_tolerance: float = DEFAULT_ABSOLUTE_TOLERANCE,
    require_units: bool = False,
    **kwargs: Any,
) -> EvaluateResult:
    r"""1.0 if the last message's final answer equals the ground truth, 0.0 if not.

    The final answer is what the text marks as such (`<answer>`, `\boxed`, `####`, "the answer is …"), else the last
    number it states. `tolerance` (relative) bounds what rounding may have changed in a number that is not whole;
    `absolute_tolerance` is floating-point noise; neither makes two whole numbers equal. With `require_units` the answer
    must name the unit that the ground truth names. An answer that cannot be read earns nothing; a ground truth that
    is missing, or that the answer cannot be compared with, gives no verdict (`is_score_valid=False`).

    Metrics: `extracted_original_answers`, `extracted_generated_answers`, `answer_comparison`,
    `strictness_penalty_unboxed_or`, `strictness_penalty_ambiguity`, `strictness_penalty_conflicting_answers`.
    Cost: linear in the answer, about 0.1 ms and 2 ms a kB of prose.
    Does not detect: whether the way to the answer is right; that two expressions written differently are equal.

    >>> math_reward(messages=[{"role": "assistant", "content": r"So it is \boxed{72}."}], ground_truth="72").score
    1.0
    """
    if not messages or messages[-1].role != "assistant":
        return _wrong("The last message is not the assistant's, so there is no answer to judge.", {}, key="error")
    gold = _right_answer(ground_truth)
    if gold is None:
        return _no_verdict(
            f"The ground truth {ground_truth!r} holds no answer. Give the right one as text or number.", {}
        )
    text = messages[-1].text
    answer = stated_answer(text)
    if _canonical(text) == _canonical(gold):
        answer = Answer(text.strip(), "last line", text, 0)
    found = _found(gold, answer)
    if answer is None:
        return _wrong("The text states no answer.", found)
    hedge = _hedge(gold, answer, text)
    if hedge is not None:
        return _wrong(f"The text leaves it open: {answer.whole!r}.", found, key=hedge)
    matched = _match(gold, answer.text, tolerance, absolute_tolerance)
    if matched and require_units:
        matched = _same_unit(gold, answer.text)
    return _verdict(gold, answer, matched, found)


# ── finding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _right_answer(ground_truth: Any) -> str | None:
    """The right answer that a ground truth holds: it is one, or a worked solution that ends in one, or such a turn."""
    if isinstance(ground_truth, list | tuple):
        ground_truth = _last_reply(ground_truth)
    if not isinstance(ground_truth, str | int | float):
        return None
    text = str(ground_truth).strip()
    stated = stated_answer(text)
    if stated is not None and (stated.source != "last line" or "\n" in text):
        return stated.text or None
    return text or None


def _last_reply(turns: list[Any] | tuple[Any, ...]) -> str | None:
    turn = turns[-1] if turns else None
    message = Message.model_validate(turn) if isinstance(turn, dict) and "role" in turn else turn
    return message.text if isinstance(message, Message) and message.role == "assistant" else None


def _hedge(gold: str, answer: Answer, text: str) -> str | None:
    """The metric that names how the text offers more than one answer, if it does and they are not all asked for."""
    if _ALTERNATIVES.search(answer.text) and _canonical(answer.text) != _canonical(gold):
        return "strictness_penalty_unboxed_or" if answer.source == "phrase" else "strictness_penalty_ambiguity"
    match marked_answers(text)[-2:]:
        case [first, second] if _match(first.text, second.text, 0.0, 0.0) is not True:
            between = after_thinking(text)[first.end : second.start]
            return "strictness_penalty_conflicting_answers" if _ALTERNATIVES.search(between[:_NEAR]) else None
    return None


# ── reading and comparing ────────────────────────────────────────────────────────────────────────────────────────────


def _match(gold: str, answer: str, tolerance: float, absolute_tolerance: float) -> bool | None:
    if _canonical(gold) == _canonical(answer):
        return True
    right, given = _quantity(gold), _quantity(answer)
    if right is not None and given is not None:
        return same_quantity(right, given, tolerance=tolerance, absolute_tolerance=absolute_tolerance)
    if _is_words(gold) and _is_words(answer):
        return _canonical(gold).casefold() == _canonical(answer).casefold()
    return False if _is_words(gold) or _is_words(answer) else None


def _quantity(text: str) -> Quantity | None:
    """The number `text` is, or the only one it mentions; an unknown set equal to it does no harm."""
    unknown = _VARIABLE.match(text)
    bare = text[unknown.end() :] if unknown else text
    whole = read_quantity(bare)
    if whole is not None:
        return whole
    mentioned = list(find_quantities(bare))
    if len(mentioned) != 1:
        return None
    rest = bare.replace(mentioned[0].text, "")
    return mentioned[0] if _is_words(rest) and not _VARIABLE_ALONE.search(rest) else None


def _is_words(text: str) -> bool:
    """Whether `text` is prose: no digit and no sign of mathematics that might turn out equal to something."""
    return not _MATHEMATICS.search(text)


def _canonical(text: str) -> str:
    return _SPACE.sub("", plain_markup(text)).strip("$*_`").rstrip(".,;:!?").strip("$*_`")


def _same_unit(gold: str, answer: str) -> bool:
    right, given = _quantity(gold), _quantity(answer)
    wanted, named = (_singular(quantity.unit) if quantity else "" for quantity in (right, given))
    return not wanted or wanted == named


def _singular(unit: str) -> str:
    return " ".join(word.removesuffix("s") for word in unit.split())


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _found(gold: str, answer: Answer | None) -> dict[str, MetricResult]:
    given = f"{answer.text!r} ({answer.source})" if answer else "none"
    return {
        "extracted_original_answers": _check(True, repr(gold)),
        "extracted_generated_answers": _check(answer is not None, given),
    }


def _verdict(gold: str, answer: Answer, matched: bool | None, found: dict[str, MetricResult]) -> EvaluateResult:
    if matched is None and _quantity(gold) is None:
        return _no_verdict(f"Cannot tell whether {answer.text!r} equals {gold!r}: they are compared as written.", found)
    if not matched:
        unread = "" if matched is False else ", which cannot be read as a number"
        return _wrong(f"Expected {gold!r}, the answer is {answer.text!r}{unread}.", found)
    reason = f"The answer {answer.text!r} equals {gold!r}."
    return EvaluateResult(score=1.0, reason=reason, metrics={**found, "answer_comparison": _check(True, reason)})


def _wrong(reason: str, found: dict[str, MetricResult], key: str = "answer_comparison") -> EvaluateResult:
    metrics = {**found, "answer_comparison": _check(False, reason), key: _check(False, reason)}
    return EvaluateResult(score=0.0, reason=reason, metrics=metrics)


def _no_verdict(reason: str, found: dict[str, MetricResult]) -> EvaluateResult:
    metrics = {**found, "error": _check(False, reason)}
    return EvaluateResult(score=0.0, is_score_valid=False, reason=reason, metrics=metrics)


def _check(passed: bool, reason: str) -> MetricResult:
    return MetricResult(score=float(passed), reason=reason, is_score_valid=passed)
