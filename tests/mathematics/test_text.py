# SPDX-License-Identifier: Apache-2.0
"""Notations of countries, subjects and programs: one meaning, many spellings, and never another meaning."""

from __future__ import annotations

import pytest

from reward_kit.mathematics.equivalence import equivalent

EQUAL = [
    # numbers
    ("-3.5", r"-3\frac{1}{2}"), ("-7/2", "-3 1/2"), ("2.5", r"2 \tfrac12"), ("25326", "**25 326**"),
    ("1234567", "1'234'567"), ("14.7", "14{,}7"), ("12.5%", r"12,5 \%"), ("3.5", "3,5 cm"), ("70000", "70k"),
    ("1/3", "0.333..."), ("1/6", r"0.1666\ldots"), ("4/33", "0.121212..."), ("602", "6.02x10^2"), ("5", r"\approx 5"),
    ("3.5", "3 and a half"), ("18", "US$18"), ("1/2", r"{1 \over 2}"), ("1/2", r"1 \over 2"),
    (r"\frac{9}{19}", r"\frac{9}{19} \approx 0.474"), (r"12\pi", r"37.7 \approx 12\pi"),
    ("x = 2/3", r"x = 2/3 \approx 0.67"),
    ("1011_2", "(1011)_2"), ("1011_2", r"1011_{\text{two}}"), ("1011_2", "1011 base 2"), ("1011_2", "1011_{(2)}"),
    # functions
    (r"\log_{10} 5", "log10(5)"), (r"\log_2 5", "log2(5)"), (r"\sqrt{2}", r"\surd 2"),
    (r"\binom{n}{2}", r"{n \choose 2}"),
    ("120", "C_{10}^{3}"), ("120", r"{}^{10}C_3"), ("120", "10 choose 3"), (r"\hbar\omega", "ħω"), ("60°", "60^o"),
    (r"f^{-1}(x) = \frac{x-1}{2}", "(x-1)/2"), ("3+4i", "3+4j"), ("3+4i", "3+4*I"), ("8-3j", "8-3*I"),
    ("3, -3", "+/- 3"),
    # intervals and sets
    ("(0, 1)", "]0, 1["), ("[2, 5)", "[2; 5["), ("(15, 21]", "]15, 21]"), ("(-oo, -1) U (1, oo)", "|x| > 1"),
    (r"(0,1) \bigcup (2,3)", r"(0,1) \cup (2,3)"), ("(29/10,109/10]", r"(\frac{29}{10},\frac{109}{10}]"),
    (r"(0,\infty)", r"\mathbb{R}^+"), (r"[0,\infty)", r"\mathbb{R}_{\ge 0}"), (r"\emptyset", "There is no solution."),
    # lists, tuples, matrices, systems
    ("(2, 5)", "A(2, 5)"), ("x = -2, y = 3", r"\begin{cases} x = -2 \\ y = 3 \end{cases}"), ("x = 5", "x: 5"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "Matrix([[1, 2], [3, 4]])"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", "[1, 2]^T"),
    (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "-2"), ("3:2", "3 to 2"),
    ("(1, 2), (3, 4)", "(3, 4), (1, 2), (3, 4)"), ("x = 1, x = 2", "x = 2, x = 1, x = 2"),
    # choices and times
    ("A, C", "AC"), ("A, C", "(C) and (A)"), (r"\text{C, D}", "C, D"), ("3:00 PM", "3 PM"), ("22:30", "10:30 p.m."),
    ("7:05 am", "7:05 in the morning"), ("12:30 AM", "0:30"),
]  # fmt: skip

DIFFERENT = [
    ("70", "70k"), ("1/3", "0.33..."), ("0.3", "0.3..."), ("3.5", "3,6 cm"), ("6-5i", "6+5i"), ("2, 3", "2, 3, 3"),
    ("2, 2, 3", "2, 3, 3"), ("f(3) = 5", "f(3) = 7"), ("f(2) = 1", "f(3) = 1"), ("T(1)=2, T(2)=4", "T(1)=2, T(2)=5"),
    ("x > 0", "y > 0"), ("A", "(A) or (B)"), ("A", "A or maybe B"), ("A, C", "A"), ("A, C", "A, B"), ("C_1^2", "C_1"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{vmatrix}1&2\\3&4\end{vmatrix}"), ("]0, 1[", "[0, 1]"),
    ("[2, 5[", "[2, 5]"), ("10:30 am", "10:30 pm"), ("10:30 am", "22:30"), ("1011_2", "1011_3"),
    ("-3.5", r"3\frac{1}{2}"),
    (r"\mathbb{R}^+", r"\mathbb{R}"), (r"[0,\infty)", r"\mathbb{R}^+"), ("3:2", "2 to 3"), ("(2, 5)", "A(2, 6)"),
    ("(0, 1)", "(0, 1000)"), ("1", "(1, 1)"), (r"12\pi", r"12\pi + 1 \approx 38.7"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_spellings_of_one_thing_are_equal(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is True
    assert equivalent(answer, gold) is True


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_things_that_look_alike_are_not(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is not True
    assert equivalent(answer, gold) is not True


def test_marks_without_meaning_are_not_the_same_answer() -> None:
    assert equivalent("?", "#") is not True
    assert equivalent("$", "$$") is not True
