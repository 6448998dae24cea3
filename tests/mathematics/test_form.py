# SPDX-License-Identifier: Apache-2.0
"""An answer that leaves the work undone is none, unless the right answer is written like that too."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.mathematics.form import left_undone
from reward_kit.models import Message
from reward_kit.rewards.accuracy import accuracy_reward
from reward_kit.rewards.list_comparison_math_reward import list_comparison_math_reward
from reward_kit.rewards.math import answers_match, math_reward

UNDONE = [
    ("391", "17*23"),
    ("391", r"17 \cdot 23"),
    ("391", r"17 \times 23"),
    ("391", "17(23)"),
    ("391", "x = 17*23"),
    ("40", "17 + 23"),
    ("7", "12 - 5"),
    ("40", "17 + 23 apples"),
    ("5/6", r"\frac{1}{2} + \frac{1}{3}"),
    ("6", r"1.5 \times 4"),
    ("2/3", r"\frac{1/2}{3/4} \cdot 1"),
    ("46", r"\frac{4 \cdot 23}{2}"),
    ("-\\sqrt{3}", r"\tan 100^\circ + 4\sin 100^\circ"),
    ("1/2", r"\sin 30^\circ"),
    ("1", r"\sin^2 20^\circ + \cos^2 20^\circ"),
    (r"\frac{\pi}{4}", r"\arctan 1"),
    ("120", "5!"),
    ("120", r"\binom{10}{3}"),
    ("120", "C(10,3)"),
    ("4", r"\gcd(12, 8)"),
    ("12", "lcm(4, 6)"),
    ("5", r"\max(3, 5)"),
    ("3", r"\lfloor 3.7 \rfloor"),
    ("5", "|-5|"),
    ("3", r"\log_2 8"),
    ("14", r"\sqrt{196}"),
    ("5", r"e^{\ln 5}"),
    ("2", r"\sqrt{2} \cdot \sqrt{2}"),
    ("3", r"27^{1/3}"),
]
UNSOLVED = [
    (r"(-\infty,-2)\cup(2,\infty)", "x^2>4"),
    ("x>2", "2x+1>5"),
    ("(1,2)", "(x-1)(x-2)<0"),
    ("x=2", "3x=6"),
    ("x=2", "2x-4=0"),
    (r"x = \pm 2", "x^2=4"),
    ("(-3,3)", r"\{x : x^2<9\}"),
    ("[2,5]", r"[0,5]\cap[2,7]"),
]
"""The question given back: an equation or an inequality that is still to be solved."""
DONE = [
    (r"(-\infty,-2)\cup(2,\infty)", "|x|>2"),
    ("y=2x+1", "y-3=2(x-1)"),
    ("3x", "f(x) = 3x"),
    (r"\frac{x-1}{2}", r"f^{-1}(x) = \frac{x-1}{2}"),
    (r"\frac{1}{3}", r"\int_0^1 x^2 dx = \frac{1}{3}"),
    ("(0,1)", "0<x<1"),
    ("72", r"\frac{144}{2}"),
    ("7/3", "2 1/3"),
    ("7/3", r"2\frac{1}{3}"),
    ("300000", r"3 \times 10^5"),
    ("1024", "2^{10}"),
    ("200", r"2^3 \cdot 5^2"),
    (r"2+\sqrt{3}", r"\sqrt{3} + 2"),
    (r"\frac{5\sqrt{2}}{2}", r"5\sqrt{2}/2"),
    (r"\frac{3\pi}{4}", r"0.75\pi"),
    (r"\ln 2", r"\ln(2)"),
    (r"\log_2 3", r"\frac{\ln 3}{\ln 2}"),
    ("e^2", r"\exp(2)"),
    ("1+i", "i + 1"),
    ("0.5", "50%"),
    ("5.5 hours", "5 hours 30 minutes"),
    ("391", "17*23 = 391"),
    ("391", "x = 17 * 23 = 391"),
    ("5050", r"\sum_{k=1}^{100} k = 5050"),
    ("10!", "90 * 8!"),
    (r"\sin 20^\circ", r"\cos 70^\circ"),
    (r"\binom{10}{3}", "C(10, 7)"),
    ("2x + 1", "x + x + 1"),
    (r"1 - \frac{1}{e}", r"\frac{e - 1}{e}"),
    ("[1, 3)", r"1 \le x < 3"),
]


def judged(answer: str, gold: str, **settings: Any) -> float:
    return math_reward([Message(role="assistant", content=rf"\boxed{{{answer}}}")], ground_truth=gold, **settings).score


@pytest.mark.parametrize(("gold", "answer"), UNDONE + UNSOLVED)
def test_undone_work_earns_nothing_and_is_equal_all_the_same(gold: str, answer: str) -> None:
    assert left_undone(gold, answer) is not None
    assert judged(answer, gold) == 0.0
    assert judged(answer, gold, accept_unevaluated=True) == 1.0
    assert answers_match(gold, answer) is True and answers_match(answer, gold) is True


@pytest.mark.parametrize(("gold", "answer"), DONE)
def test_a_value_in_a_usual_form_is_an_answer(gold: str, answer: str) -> None:
    assert left_undone(gold, answer) is None
    assert judged(answer, gold) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        r"\sum_{k=1}^{100} k",
        r"\prod_{k=1}^{5} k",
        r"\int_0^1 x\,dx",
        r"\lim_{x \to 0} \frac{\sin x}{x}",
        r"\begin{vmatrix}1&2\\3&4\end{vmatrix}",
        r"17 \bmod 5",
    ],
)
def test_large_operators_are_undone_as_written(answer: str) -> None:
    assert left_undone("7", answer) is not None
    assert left_undone(answer, answer) is None


def test_the_other_rewards_of_final_answers_do_the_same() -> None:
    said = [Message(role="assistant", content=r"\boxed{17 \cdot 23}")]
    assert accuracy_reward(said, ground_truth="391").score == 0.0
    assert accuracy_reward(said, ground_truth="391", accept_unevaluated=True).score == 1.0
    listed = [Message(role="assistant", content=r"\boxed{1, 2 \cdot 3}")]
    assert list_comparison_math_reward(listed, ground_truth="1, 6").score == 0.0
    assert list_comparison_math_reward(listed, ground_truth="1, 6", accept_unevaluated=True).score == 1.0
