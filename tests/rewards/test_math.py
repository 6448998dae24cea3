# SPDX-License-Identifier: Apache-2.0
"""math_reward: right answers are found and accepted however they are written, wrong ones never."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.mathematics import equivalence
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.accuracy import accuracy_reward
from reward_kit.rewards.drop import drop_reward
from reward_kit.rewards.list_comparison_math_reward import list_comparison_math_reward
from reward_kit.rewards.math import answers_match, compare_numbers, extract_numbers, final_answer, math_reward
from reward_kit.rewards.multiple_choice_math_reward import multiple_choice_math_reward


def judge(text: str, ground_truth: Any, **settings: Any) -> EvaluateResult:
    messages = [Message(role="user", content="?"), Message(role="assistant", content=text)]
    return math_reward(messages, ground_truth=ground_truth, **settings)


RIGHT = [
    (r"\boxed{\pi/2}", r"\frac{\pi}{2}"),
    (r"So \boxed{3} and \boxed{-3}.", r"\pm 3"),
    ("Therefore $x^2 + 2x + 1$ is the square.", "(x+1)^2"),
    ("x = 5 or x = 6", "5, 6"),
    (r"The interval is \((0, 1]\).", "0 < x <= 1"),
    ("Final answer: 12.", "12"),
    ("The capital is Paris", "The capital is Paris."),
    ("48/2 = 24, so the final answer is 72", "72"),
    ("48/2 = 24 clips in May.\n48 + 24 = 72 altogether.\n#### 72", "He sold 48/2 = <<48/2=24>>24.\n#### 72"),
    ("First 24, later <answer> 72 </answer> not 99", 72),
    (r"We get \boxed{24} first and then \boxed{72}.", "72"),
    (r"Thus $\boxed{\frac{3}{4}}$", "0.75"),
    (r"\boxed{\dfrac{\pi}{2}}", r"\frac{\pi}{2}"),
    (r"\boxed{\sqrt{2}}", r"\sqrt{2}"),
    (r"\boxed{\left( 1, 2 \right)}", "(1,2)"),
    (r"\boxed{1{,}000 \text{ km}}", "1000"),
    (r"\boxed{45\%}", "45%"),
    ("The answer is **72**.", "72"),
    ("The answer is: $72$.", "72"),
    ("The answer is 20 - 8 = 12 dollars.", 12),
    ("The answer is 72 apples, since 48 + 24 is that.", "72"),
    ("She pays $1,234.50.", "1234.5"),
    ("It rose by 50%", "0.5"),
    ("x = 7", "7"),
    ("So 3 + 4 = 7 apples in total", "7"),
    ("The temperature is −3 degrees", "-3"),
    ("That makes 1 1/2 cups", "1.5"),
    (r"About $3.2 \times 10^5$", "320000"),
    ("Roughly 3.14", "3.14159"),
    ("The result is 0.333", "1/3"),
    ("<think>Is it 5? It is 5.</think>The answer is 6.", "6"),
    ("the answer is 10:30", "10:30"),
    (r"\boxed{A}", "A"),
    ("x+1", "x+1"),
    ("7", 7.0),
    ("It takes 5h", "5"),
    ("The answer is 5 of them", "5"),
    ("The answer is 12 cm^2.", "12"),
    ("It is 7.", "7"),
    ("So it is 7", 7),
    ("They drank 9 + 6 = 15 liters of the 24 liters.", "15"),
    ("Ben reads 10 * 5 = 50 pages in 5 days. So Ben reads a total", "50"),
    ("He sold 3 * 4 = 12 of them. That leaves 4.", "4"),
    ("That is 3 + 2 = 5 apples, which twice over makes 10.", "10"),
]

WRONG = [
    ("2022", "2021"),
    ("12.51", "12.50"),
    ("3.149999", "3.14159"),
    ("0.34", "1/3"),
    ("The answer is 24. I also considered 72.", "72"),
    (r"\boxed{24} although 72 was tempting", "72"),
    ("<answer>5</answer> 6", "6"),
    ("<think>It is 6", "6"),
    ("", "6"),
    ("I do not know.", "6"),
    (r"\boxed{B}", "A"),
    ("-3", "3"),
    ("7:30", "7"),
    (r"\boxed{5, 6}", "5"),
    ("<answer>5 6</answer>", "5"),
    ("1e99999999", "1"),
    (r"\boxed{2x}", "2"),
    (r"\boxed{2 x}", "2"),
    (r"\boxed{2\pi}", "2"),
    ("The answer is 2 pi", "2"),
    ("Therefore x = 2y", "2"),
]


@pytest.mark.parametrize(("text", "gold"), RIGHT)
def test_a_right_answer_is_accepted(text: str, gold: Any) -> None:
    result = judge(text, gold)
    assert (result.score, result.is_score_valid) == (1.0, True), result.reason
    assert result.metrics["answer_comparison"].is_score_valid


@pytest.mark.parametrize(("text", "gold"), WRONG)
def test_a_wrong_answer_earns_nothing(text: str, gold: Any) -> None:
    result = judge(text, gold)
    assert (result.score, result.is_score_valid) == (0.0, True), result.reason
    assert not result.metrics["answer_comparison"].is_score_valid


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("The answer is 5 or 6.", "strictness_penalty_unboxed_or"),
        (r"\boxed{5 \text{ or } 6}", "strictness_penalty_ambiguity"),
        (r"\boxed{5} or \boxed{6}", "strictness_penalty_conflicting_answers"),
    ],
)
@pytest.mark.parametrize("gold", ["5", "6"])
def test_offering_two_answers_earns_neither(text: str, metric: str, gold: str) -> None:
    result = judge(text, gold)
    assert result.score == 0.0 and metric in result.metrics


def test_two_answers_are_right_where_two_are_asked_for() -> None:
    assert judge(r"\boxed{x=5 \text{ or } x=6}", r"x = 5 \text{ or } x = 6").score == 1.0


@pytest.mark.parametrize("gold", [None, "", "  ", [], {"answer": 1}, [Message(role="user", content="2 + 2?")]])
def test_without_a_right_answer_there_is_no_verdict(gold: Any) -> None:
    result = judge("The answer is 4.", gold)
    assert not result.is_score_valid and "error" in result.metrics


def test_an_unreadable_answer_is_wrong_and_an_unreadable_ground_truth_gives_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(equivalence, "ask", lambda gold, answer: None)
    unreadable = r"\begin{tabular} 1 & x > 0 \\ 0 & x < 0 \end{tabular}"
    wrong = judge(rf"\boxed{{{unreadable}}}", "0.5")
    assert (wrong.score, wrong.is_score_valid) == (0.0, True)
    assert not judge(r"\boxed{1}", unreadable).is_score_valid
    assert judge(rf"\boxed{{{unreadable}}}", unreadable).score == 1.0
    talk = "f(1) may be larger than all of the others, of which f(2) and f(3) are known"
    assert judge(rf"\boxed{{{talk}}}", "0.5").is_score_valid
    assert not judge(r"\boxed{0.5}", talk).is_score_valid


def test_a_worked_reply_can_be_the_ground_truth() -> None:
    assert judge("4", [{"role": "assistant", "content": r"So \boxed{4}."}]).score == 1.0


def test_the_last_message_must_be_the_assistants() -> None:
    for messages in ([], [Message(role="user", content="4")]):
        result = math_reward(messages, ground_truth="4")
        assert result.score == 0.0 and "error" in result.metrics
        assert not result.is_score_valid, "nothing was answered, so nothing can be wrong"


FAMILY = (math_reward, accuracy_reward, list_comparison_math_reward, multiple_choice_math_reward)


@pytest.mark.parametrize("reward", [*FAMILY, drop_reward], ids=lambda reward: reward.__name__)
def test_a_ground_truth_that_is_no_number_gives_no_verdict(reward: Any) -> None:
    said = [Message(role="assistant", content="The answer is 4.")]
    assert not reward(said, ground_truth=float("nan")).is_score_valid
    assert not reward([], ground_truth="4").is_score_valid


@pytest.mark.parametrize(
    "odd", ["?????", "0^0", r"\frac{1}{0}", "{{{", "2^{2^{2^{2^{2^2}}}}", r"\infty - \infty", "\U0001f600", "<>"]
)
@pytest.mark.parametrize("reward", FAMILY[:3], ids=lambda reward: reward.__name__)
def test_an_odd_answer_is_wrong(reward: Any, odd: str) -> None:
    result = reward([Message(role="assistant", content=rf"\boxed{{{odd}}}")], ground_truth="4")
    assert (result.score, result.is_score_valid) == (0.0, True)


def test_units_count_only_when_asked_for() -> None:
    assert judge("The answer is 5 boxes", "5 crates").score == 0.0
    assert judge("The answer is 5 boxes", "5 crates", require_units=True).score == 0.0
    assert judge("The answer is 5", "5 m").score == 1.0
    assert judge("The answer is 5", "5 m", require_units=True).score == 0.0
    assert judge("The answer is 5 Kilometers.", "5 kilometer", require_units=True).score == 1.0
    assert judge("The answer is $5", "5 dollars", require_units=True).score == 1.0
    assert judge("The answer is 5 apples", "5", require_units=True).score == 1.0


def test_units_of_one_kind_are_converted() -> None:
    assert judge("The answer is 5 km", "5 m").score == 0.0
    assert judge("The answer is 5 km", "5000 m").score == 1.0
    assert judge("The answer is 90 minutes", "1.5 hours").score == 1.0


def test_tolerance_widens_rounding_and_nothing_else() -> None:
    assert judge("0.67", "2/3").score == 0.0
    assert judge("0.67", "2/3", tolerance=0.01).score == 1.0
    assert judge("12.51", "12.50", tolerance=0.5).score == 0.0
    assert judge("2022", "2021", tolerance=0.5, absolute_tolerance=10).score == 0.0


@given(gold=st.integers(-(10**9), 10**9), offset=st.integers(-3, 3), tolerance=st.floats(0, 1))
def test_whole_numbers_match_exactly_at_any_tolerance(gold: int, offset: int, tolerance: float) -> None:
    expected = float(offset == 0)
    for answer in (f"{gold + offset}", f"{gold + offset:,}", f"{gold + offset}.00", f"The answer is {gold + offset}."):
        assert judge(answer, str(gold), tolerance=tolerance).score == expected


@given(over=st.integers(-999, 999), under=st.integers(1, 999), frame=st.sampled_from(["{}", "<answer>{}</answer>"]))
def test_a_fraction_equals_itself_in_every_notation(over: int, under: int, frame: str) -> None:
    sign = "-" if over < 0 else ""
    for answer in (
        f"{over}/{under}",
        rf"{sign}\frac{{{abs(over)}}}{{{under}}}",
        rf"{sign}\dfrac {{{abs(over)}}} {{{under}}}",
    ):
        assert answers_match(f"{Fraction(over, under)}", answer) is True
        assert judge(frame.format(answer), f"{over}/{under}").score == 1.0


def test_final_answer_is_what_majority_votes_count() -> None:
    assert final_answer(r"<think>\boxed{1}</think> So \boxed{\frac{1}{2}}.") == r"\frac{1}{2}"
    assert final_answer("The answer is $x = 3$, as shown.") == "x = 3"
    assert final_answer("Hence it is 7") == "7"
    assert final_answer("<think>It is 6") is None
    assert final_answer("") is None


@given(text=st.text(alphabet="0123456789.,/-+=$%\\{}<>#boxedanswrifct \n", max_size=80), gold=st.text(max_size=12))
def test_any_text_gives_a_result(text: str, gold: str) -> None:
    result = judge(text, gold)
    assert result.score in (0.0, 1.0)
    assert answers_match(gold, gold) is True
    extract_numbers(text)


@pytest.mark.parametrize(
    "unit",
    [r"\boxed{", "{", "1,", "9", "the answer is ", "<answer>", "1/", "1 ", "$", r"\text{", "-", r"\frac{1}", "#### "],
)
def test_adversarial_repetition_is_judged(unit: str) -> None:
    """Long hostile answers come back with a verdict, and without deep recursion or the integer-digits limit."""
    assert judge(unit * (2 * sys.getrecursionlimit()), "7").score == 0.0
    assert judge(r"\boxed{" * 3000 + "7" + "}" * 3000, "7").score in (0.0, 1.0)


def test_extract_numbers_prefers_marked_answers_and_keeps_the_mark() -> None:
    assert extract_numbers(r"24, then \boxed{\frac{3}{4}}") == [(r"\boxed{\frac{3}{4}}", 0.75)]
    assert extract_numbers(r"\boxed{A}") == [(r"\boxed{A}", "A")]
    assert extract_numbers("<answer>1</answer> and <answer>2.5</answer>") == [
        ("<answer>1</answer>", 1.0),
        ("<answer>2.5</answer>", 2.5),
    ]
    assert extract_numbers("<answer>Not a number</answer>") == []
    assert extract_numbers("24\n#### 1,000") == [("#### 1,000", 1000.0)]
    assert extract_numbers("42. Another is -17, or 1.5e3; half is 1/2.") == [
        ("42", 42.0),
        ("-17", -17.0),
        ("1.5e3", 1500.0),
        ("1/2", 0.5),
    ]
    assert extract_numbers("no digits here") == []


def test_compare_numbers_is_closeness_except_between_whole_numbers() -> None:
    assert compare_numbers(42.0, 42.0) == (True, 1.0)
    assert compare_numbers(3.14159, 3.14, relative_tolerance=0.01) == (True, 1.0)
    assert compare_numbers(0.0, 0.00001, absolute_tolerance=0.0001) == (True, 1.0)
    assert compare_numbers(2021, 2022, relative_tolerance=0.01)[0] is False
    assert compare_numbers(100.0, 200.0, relative_tolerance=0.01) == (False, 0.0)
    matched, similarity = compare_numbers(10.0, 11.0, relative_tolerance=0.01)
    assert not matched and 0 < similarity < 1
    assert compare_numbers(float("nan"), 1.5) == (False, 0.0)
