# SPDX-License-Identifier: Apache-2.0
r"""Judge the answer to a mathematics problem: find it, read it, compare it with the right one.

    text ──find──▶ answer ──compare──▶ 1.0 or 0.0
         answers/            mathematics/

`answers_match` is the one equivalence that rewards, majority votes and verifiers share. It is exact: 2021 is not 2022,
and 1.41 is not √2, at any size. Where it cannot tell, there is no verdict rather than a wrong one.
"""

from __future__ import annotations

from typing import Any, Final

from reward_kit.answers.final_answer import Answer, marked_answers, spoken_end, stated_answer
from reward_kit.answers.statements import all_stated
from reward_kit.mathematics.equivalence import equivalent, is_right, readable
from reward_kit.mathematics.form import left_undone, unit_of
from reward_kit.mathematics.numeric import Tolerance
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards._support.numbers_in_text import numbers_in
from reward_kit.rewards._support.verdicts import check, no_verdict, quoted, reply_of, wrong
from reward_kit.typed_interface import Operator, reward_function

__all__ = ["answers_match", "compare_numbers", "extract_numbers", "final_answer", "math_reward", "right_answer"]

_LONGEST_REPLY: Final = 500
"""A reply up to this long may be an answer as a whole."""


def answers_match(gold: str, answer: str) -> bool | None:
    r"""Whether `answer` means the same as `gold`; `None` where that cannot be judged.

    Exact: a decimal equals another number only if it is that number, or its correct rounding to seven digits or more.
    Costs some 20 µs for plain numbers and 100 µs for formulas; the few that need math-verify cost a process and up to
    a second of processor time.

    >>> answers_match("72", "72 apples"), answers_match(r"\frac{3}{4}", "0.75"), answers_match("2021", "2022")
    (True, True, False)
    >>> answers_match(r"\frac{\pi}{2}", "pi/2"), answers_match("(0, 1)", "0 < x < 1"), answers_match("2x + 1", "2x - 1")
    (True, True, False)
    """
    return equivalent(gold, answer)


def final_answer(text: str) -> str | None:
    r"""The answer that `text` gives in the end, as written; `None` if it gives none.

    What it marks as its answer (`<answer>`, `\boxed`, `####`, "the answer is"), else what its last line says.

    >>> final_answer(r"First \boxed{24}, then \boxed{72}."), final_answer("So x = 5, and the answer is 10.")
    ('72', '10')
    """
    found = stated_answer(text)
    return found.text if found is not None and found.text else None


def right_answer(ground_truth: Any) -> str | None:
    r"""The right answer that a ground truth holds; `None` if it holds none.

    It is the answer itself, a worked solution that ends in one, or a conversation whose last turn is one.

    >>> right_answer("She sells 48/2 = 24 clips, 72 in all.\n#### 72"), right_answer(7.5), right_answer([])
    ('72', '7.5', None)
    """
    if isinstance(ground_truth, list | tuple):
        ground_truth = _last_turn(ground_truth)
    if not isinstance(ground_truth, str | int | float):
        return None
    text = str(ground_truth).strip()
    if text.lower() in ("nan", "-nan", "+nan"):
        return None
    stated = stated_answer(text)
    if stated is not None and (stated.source != "last line" or "\n" in text):
        return stated.text or None
    return text or None


def extract_numbers(text: str) -> list[tuple[str, float | str]]:
    r"""Pairs of (text, value) for the numbers `text` answers with.

    Marked answers count before plain numbers: `<answer>` tags, then `\boxed`, then `####`; their text includes the
    mark. A box that holds no number gives its content as the value. The text of a plain number includes its unit, and
    what multiplies something else, as in `2x`, is none.

    >>> extract_numbers(r"First 48/2 = 24, so \boxed{72}.")
    [('\\boxed{72}', 72.0)]
    >>> extract_numbers("3 pens cost $4.50, and 2x + 1 = 42 km.")
    [('3', 3.0), ('$4.50', 4.5), ('1', 1.0), ('42 km', 42.0)]
    """
    return numbers_in(text)


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


@reward_function
def math_reward(
    messages: list[Message],
    *,
    ground_truth: Any = None,
    tolerance: float = 0.001,
    absolute_tolerance: float = 1e-8,
    require_units: bool = False,
    accept_unevaluated: bool = False,
    ends_at: Operator[str | None] = None,
    **kwargs: Any,
) -> EvaluateResult:
    r"""1.0 if the last message's final answer equals the ground truth, 0.0 if not.

    The final answer is what the text marks as such (`<answer>`, `\boxed`, `####`, "the answer is …"), else what its
    last line says. Formulas, sets, intervals, tuples, matrices and equations are compared as mathematics. `tolerance`
    is the relative error allowed for rounded decimals, `absolute_tolerance` that of floating-point noise; whole numbers
    must match exactly. With `require_units` the answer must name the unit that the ground truth names. An answer that
    is not worked out (`17 \cdot 23` for 391, a sum or an integral for its value) gets 0.0, unless the ground truth is
    written in the same way or `accept_unevaluated` is set; fractions, roots, powers, π, e and logarithms that have no
    simpler value are answers. An answer that cannot be read gets 0.0. If the ground truth is missing or cannot be read,
    there is no verdict (`is_score_valid=False`). `ends_at` is a regular expression: what follows the first line in
    which it is found is not read, as graders have it that take the first answer.

    Metrics: `extracted_original_answers`, `extracted_generated_answers`, `answer_comparison`,
    `strictness_penalty_unboxed_or`, `strictness_penalty_ambiguity`, `strictness_penalty_conflicting_answers`; `error`.
    Cost: as `answers_match`, plus one pass over the text. Linear in its length; of more than 200,000 characters, the
    end counts.
    Does not detect: whether the reasoning is sound, whether the answer was guessed, whether it is in the form that was
    asked for ("simplify", "as a fraction"), and significant digits.

    >>> reply = [{"role": "assistant", "content": r"48/2 = 24, so it is \boxed{\frac{144}{2}}."}]
    >>> math_reward(reply, ground_truth="72").score
    1.0
    >>> math_reward(reply, ground_truth="73").reason
    "Expected '73', the answer is '\\\\frac{144}{2}'."
    """
    reply = reply_of(messages, "answer_comparison", ends_at=ends_at)
    gold = right_answer(ground_truth)
    if gold is None:
        return no_verdict(
            f"The ground truth {quoted(ground_truth)} holds no answer. Give the right one as text or number."
        )
    policy = Tolerance(tolerance, absolute_tolerance)
    answer, matched = _judged(gold, reply.text, policy)
    found = _found(gold, answer)
    if answer is None:
        return _mistaken("The text states no answer.", found)
    if matched and require_units and not _same_unit(gold, answer.text):
        return _mistaken(f"The answer {quoted(answer.text)} does not name the unit of {quoted(gold)}.", found)
    if matched and not accept_unevaluated and (undone := left_undone(gold, answer.text)) is not None:
        return _mistaken(
            f"The answer {quoted(answer.text)} is not worked out: it still holds a calculation ({undone}).", found
        )
    return _accepted(gold, answer, found) if matched else _refused(gold, answer, matched, found)


def _judged(gold: str, text: str, policy: Tolerance) -> tuple[Answer | None, bool | None]:
    """The answer in a text, and whether it is right; a short text without a mark may be the answer as a whole."""
    answer = stated_answer(text)
    matched = is_right(gold, answer.text, policy) if answer is not None else False
    unmarked = (answer is None or answer.source == "last line") and not marked_answers(text)
    spoken = spoken_end(text).strip() if unmarked and not matched else ""
    if spoken and len(spoken) <= _LONGEST_REPLY and all_stated(spoken) and equivalent(gold, spoken, policy):
        return Answer(spoken, "last line", spoken, 0), True
    return answer, matched


def _last_turn(turns: list[Any] | tuple[Any, ...]) -> str | None:
    turn = turns[-1] if turns else None
    message = Message.model_validate(turn) if isinstance(turn, dict) and "role" in turn else turn
    return message.text if isinstance(message, Message) and message.role == "assistant" else None


def _same_unit(gold: str, answer: str) -> bool:
    wanted = unit_of(gold)
    return not wanted or wanted == unit_of(answer)


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _found(gold: str, answer: Answer | None) -> dict[str, MetricResult]:
    given = f"{quoted(answer.text)} ({answer.source})" if answer else "none"
    return {
        "extracted_original_answers": check(True, quoted(gold)),
        "extracted_generated_answers": check(answer is not None, given),
    }


def _accepted(gold: str, answer: Answer, found: dict[str, MetricResult]) -> EvaluateResult:
    reason = f"The answer {quoted(answer.text)} equals {quoted(gold)}."
    return EvaluateResult(score=1.0, reason=reason, metrics={**found, "answer_comparison": check(True, reason)})


def _refused(gold: str, answer: Answer, matched: bool | None, found: dict[str, MetricResult]) -> EvaluateResult:
    if matched is None and not readable(gold):
        return no_verdict(f"Cannot tell whether {quoted(answer.text)} equals {quoted(gold)}.", found)
    hedge = _hedge(answer)
    if hedge is not None:
        return _mistaken(f"The text leaves it open: {quoted(answer.whole)}.", found, hedge)
    unread = "" if matched is False else ", which cannot be read"
    return _mistaken(f"Expected {quoted(gold)}, the answer is {quoted(answer.text)}{unread}.", found)


def _hedge(answer: Answer) -> str | None:
    """The metric that names how a wrong answer offers more than one, if it does."""
    if " or " not in f" {answer.text.lower()} ":
        return None
    if answer.source == "phrase":
        return "strictness_penalty_unboxed_or"
    several = answer.source == "boxed" and answer.whole.count("\\boxed") > 1
    return "strictness_penalty_conflicting_answers" if several else "strictness_penalty_ambiguity"


def _mistaken(reason: str, found: dict[str, MetricResult], key: str = "answer_comparison") -> EvaluateResult:
    return wrong(reason, {**found, "answer_comparison": check(False, reason), key: check(False, reason)})
