# SPDX-License-Identifier: Apache-2.0
"""The equivalence: notation does not matter, meaning does, and nothing hostile matters either."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.mathematics import equivalence
from reward_kit.mathematics.equivalence import equivalent, readable, value_of
from reward_kit.mathematics.numeric import Tolerance

EQUAL = [
    # numbers
    ("1000", "1,000"), ("7425000", "7,425,000"), ("1000", "1 000"), ("0,111", "0.111"), ("1234.5", "1.234,5"),
    ("10000", "10{,}000"), ("10080", r"10,\!080"), ("0.5", ".5"), ("3", "3."), ("90", "90.0"), ("0", "-0"),
    ("1.5", "1 1/2"), ("137.5", r"137\frac{1}{2}"), ("1/3", r"\frac13"), ("1/3", r"\dfrac{1}{3}"), ("3/4", "75%"),
    ("320000", r"3.2 \times 10^5"), ("0.0012", "1.2e-3"), ("12", "12th"), ("12", r"12^{\text{th}}"), ("2", "two"),
    ("1e3", "1000"), ("5 million", "5000000"), (r"\$32,\!348", "32348"), ("-3", "−3"), ("½", "0.5"),
    ("1/3", r"0.\overline{3}"), ("1/6", r"0.1\overline{6}"), (r"\frac{12}{5,525}", "12/5525"), ("5", "£5"),
    ("25", "25°C"),
    # irrational and complex numbers
    (r"\frac{\pi}{2}", "pi/2"), (r"\frac{\sqrt{6}-\sqrt{2}}{2}", "sqrt(2 - sqrt(3))"), (r"5\sqrt[3]{4}", "5*2^{2/3}"),
    (r"\frac{1}{\sqrt{3}}", r"\frac{\sqrt3}{3}"), ("√3", r"\sqrt{3}"), (r"e^{16}-1", "-1 + exp(16)"),
    (r"-\sqrt[3]{8}", r"\sqrt[3]{-8}"), ("14 - i", "14.0 + -1.0i"), ("i", r"e^{i\pi/2}"), (r"\ln 4", r"2\ln(2)"),
    (r"\log_2 8", "3"), (r"\frac{\log 2}{\log 3}", r"\frac{\ln 2}{\ln 3}"), (r"\log_{10} 2", r"\log 2"),
    (r"\sin \frac{\pi}{6}", "0.5"), (r"\sin 30^\circ", "1/2"), (r"\binom{7}{4}", "C(7, 4)"), ("5!", "120"),
    (r"\tan^2 x + 1", r"\sec^2 x"), (r"2\arcsin\sqrt{a}", r"\arccos(1-2a)"), ("2^{10}", "1024"), (r"|{-3}|", "3"),
    (r"\lfloor 2.5 \rfloor", "2"), ("12\\pi", "37.69911184307752"), (r"\sqrt{65}", "8.062258"),
    # formulas
    ("x^2 + 2x + 1", "(x+1)^2"), ("h(a+1)", "ah + h"), ("an + b", "b + na"), ("n(n+1)/2", r"\frac{n^2+n}{2}"),
    (r"\frac{3n+m}{2}", r"\frac{3}{2}n + \frac{1}{2}m"), ("52*f", "52f"), ("ab", "b a"),
    ("(a+5)(b+2)", "ab+5b+2a+10"), ("N2^{-N}", "N*(1/2)^N"), (r"\cot x", r"\frac{\cos x}{\sin x}"),
    (r"\frac{d!}{2k(d-k)!}", r"\frac{\binom{d}{k}(k-1)!}{2}"), (r"2\sin b\cos a", r"\sin(a+b) - \sin(a-b)"),
    ("f(x) = x - 1", "x-1"), ("f(n) = 2n + 1007", "f(m) = 2m + 1007"), ("y = e^{-x}", "f(x) = e^{-x}"),
    ("2Cx + 1", "2cx+1"), ("a_1 + a_2", "a_{2} + a_{1}"), ("x**2", "x²"), (r"\ln\sqrt{3}", "0.5*ln(3)"),
    # equations and inequalities
    ("2x+4y-3=0", "y = -1/2*x + 3/4"), ("x^2/4 + y^2/3 = 1", "3x^2 + 4y^2 = 12"), ("y = 1/x", "xy = 1"),
    ("34x+45y-20z+100=0", "-34x-45y+20z-100=0"), ("x < 1", "-x > -1"), (r"x \leq 5", r"5 \geq x"),
    ("x + y > 1", "1 < y + x"), ("x=3", "3"), ("k = 1/3", "0.333333333333333333"), ("35+70=105", "105"),
    # sets and intervals
    ("(0, 1)", "0 < x < 1"), (r"x \in [-2,7]", r"-2 \le x \le 7"), (r"\{x \mid 2 < x < 3\}", "(2,3)"),
    (r"(4, 8] \cup [10, 12)", r"4 < m \leq 8 \text{ or } 10 \leq m < 12"), (r"[5, \infty)", "x >= 5"),
    (r"(-\infty, 0) \cup (0, \infty)", r"x \neq 0"), (r"\mathbb{R} \setminus \{3\}", r"x \ne 3"),
    (r"1 \leq |z| \leq 2", r"[-2,-1] \cup [1,2]"), (r"[1,2] \cup [2,3]", "[1,3]"), ("x > 1 and x < 5", "(1,5)"),
    (r"\{1, 2, 3\}", "3, 2, 1"), (r"\{-4\}", "-4"), ("{1/2, 2}", r"\{2, 0.5\}"),
    # lists, tuples, matrices
    ("1, -2", "-2, 1"), (r"1 \text{ and } 3", "3, 1"), ("x = 3 or x = -3", r"\pm 3"),
    (r"1 \pm \sqrt{19}", r"1-\sqrt{19}, 1+\sqrt{19}"),
    ("(1,2),(3,4)", "(3,4), (1,2)"), ("[2, 3]", "2,3"), ("(p, q) = (3, 2)", "(3,2)"), ("a=1/3, b=-2", r"\frac13, -2"),
    (r"(\pm 1, \pm 2)", "(1,2),(1,-2),(-1,2),(-1,-2)"), (r"x_1 = 2, x_2 = 3", "x = 3, x = 2"),
    ("(312,123)", "(312, 123)"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", "[[1, 2], [3, 4]]"), ("[1, 2; 3, 4]", "[[1,2],[3,4]]"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "(1, 2)"),
    (r"\frac13\begin{pmatrix} 3 \\ 6 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
    (r"\begin{pmatrix} 1 & 2 \end{pmatrix} + \begin{pmatrix} 3 & 4 \end{pmatrix}", r"(4, 6)"),
    (r"\begin{pmatrix} 1 & 1 \\ 0 & 1 \end{pmatrix} \begin{pmatrix} 1 \\ 2 \end{pmatrix}", "(3, 2)"),
    (r"\left[\begin{array}{cc}1&2\end{array}\right]", "(1,2)"),
    ('{"alpha": 1, "beta": 4}', r"\alpha = 1 \text{ and } \beta = 4"), ("(-32+3x, 64-5x)", "(-32 + 3t, 64 - 5t)"),
    # units, ratios, times, bases, words, choices
    (r"15\mbox{ cm}^2", "15"), ("4ft", "4.0"), ("12", "12{cm}"), (r"12\pi", r"12\pi \text{ inches per second}"),
    ("9.8", "9.8 m/s^2"),
    ("1 hour", "60 minutes"), ("2 km", "2000 m"), ("90", "The measure of the angle is 90 degrees."),
    (r"90^\circ", "90"),
    (r"\frac{\pi}{6}", r"30^\circ"), ("7:32", "7 : 32"), ("1:2", "2:4"), ("12:00", "12:00"), ("204_5", "204_{5}"),
    ("32.8\\%", "41/125"),
    ("3:30 p.m.", "3:30 PM"), ("May 5, 2020", "5 May 2020"), ("2020-05-05", "May 5th, 2020"),
    (r"\mathbb{R}", r"(-\infty, \infty)"), ("all real numbers", r"\mathbb{R}"), (r"\emptyset", "no solution"),
    ("Yes", "yes."), (r"\text{east}", "East"), (r"\text{(B)}", "B"), ("(B)", "(B) 3x = 7"), ("E", r"\textbf{(E)}"),
    ("f(x) = 1", r"f(x) = 1 \text{ for all } x \in \mathbb{Q}"), ("5", r"so it is \boxed{5}"),
    ("1, 2", r"\boxed{1} \text{ and } \boxed{2}"),
    (r"\frac{13}{18}", r"\frac{26}{36} or \frac{13}{18} when simplified."),
]  # fmt: skip

DIFFERENT = [
    (r"0.\overline{36}", "0.36"), ("3:30 AM", "3:30 PM"), ("May 5, 2020", "May 6, 2020"), ("0.3", r"0.\overline{3}"),
    ("2021", "2022"), ("0.5", "0.50001"), ("1/2^{99}", "1/2^{98}"), (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
    ("1", "10"),
    (r"\frac{2^{2005}+1}{3 \cdot 2^{2006}}", r"\frac{1}{3 \cdot 2^{2006}}"), ("1 - 1/e", "1 + 1/e"),
    ("4", r"4\sqrt(2)"),
    ("390", "3.9"), ("0.2", "20"), (r"\sqrt{2}", "1.414"), ("0.3333", "1/3"), (r"\pi", "22/7"), ("12.51", "12.50"),
    (r"\pm 2021", "2021"), ("5 m", "5 km"), ("12:00", "1:00"), ("1:30", "1:03"), ("204_5", "204_6"), ("100!", "101!"),
    ("x^2 + 1", "x^2 - 1"), ("|x|", "x"), ("2x+3", "2t+3"), ("x", "y"), (r"\sqrt{x^2}", "x"), ("2x", "2"),
    ("2x+1", "2x+1=0"),
    ("3x - y + 13 = 0", "3x + 4y + 14 = 0"), ("x^2+y^2=4", "x^2+y^2=9"), ("x = 2", "y = 2"), ("2x + z = 1", "1"),
    ("x > 5", "x < 5"), (r"x \geq 5", "x > 5"), ("(0,1)", "(0,1.5)"), ("(0,9)", "[0,9)"), ("[1, 3]", "(1, 3)"),
    (r"[0, \pi]", r"(0, \pi)"),
    (r"(-\infty, 1)", r"(-\infty, 1]"), (r"(0,1) \cup (2,3)", r"(0,1) \cup (2,4)"), ("1, 2", "1, 3"), ("1, 2", "1"),
    ("(1, 2)", "(2, 1)"), ("[1,2,3]", "[2,1,3]"), ("a = -2, b = -2", "a = -2, b = -1"), ("5", "5, 6"), ("5", "5 or 6"),
    (r"\begin{pmatrix}1 & 2\\3 & 4\end{pmatrix}", r"\begin{pmatrix}1 & 2\\3 & 5\end{pmatrix}"),
    (r"1,2,\ldots,n", r"1,3,\ldots,n"),
    ("Yes", "No"), ("even", "odd"), ("(A)", "(C)"), 
    ("383", "SyntaxError: invalid syntax (line 383)"), 
    ("5", "The value cannot be 5"), ("7", "x + 7 = y"), (r"\{1, 2\}", r"\{1, 2, 3\}"), ("32349", "32, 349"), 
    ("e^{\\pi\\sqrt{163}}", "262537412640768744"), (r"\tan x", r"\sin x"), ("x^{10}", "x^{11}"), ("10", "one"),
]  # fmt: skip

UNLIKE = [
    ("6", "I think it may be 6 or 7"), ("0", "> 0"), ("3", "at least 3"), ("1251", "1251Ihopeitiscorrect"),
    ("4", "40Ihopeitiscorrect"), ("2", "AZYUK2A"), ("2", r"2\sqrt{"), ("1", "<answer>"), ("5", "5 \\star 3"),
    (r"\forall x > 0, 3^x \geq x^2", r"\forall x > 0, 3^x \geq x"), ("(2n)!!", "((2n)!)!"),
]  # fmt: skip

HOSTILE = {
    "five megabytes": "9" * 5_000_000,
    "nested braces": "{" * 5000 + "7" + "}" * 5000,
    "nested fractions": r"\frac{1}{" * 3000 + "1" + "}" * 3000,
    "a tower": "9^{9^{9}}",
    "a higher tower": "9^{9^{9^{9}}}",
    "a factorial": "10000000!",
    "factorials": "(((((3!)!)!)!)!)!",
    "a large power": "2^{10^{10}}",
    "products of long fractions": "*".join(["(1234567890/9876543211)^{900}"] * 200),
    "many terms": "+".join(f"x_{{{index}}}" for index in range(2000)),
    "many functions": "+".join(f"\\arctan(x_{{{index}}}^2)" for index in range(1500)),
    "a set of surds": r"\{" + ",".join(f"\\sqrt{{{index}}}" for index in range(2000)) + r"\}",
    "many intervals": r"\cup ".join(["(0,1)"] * 3000),
    "many signs": "(" + ",".join([r"\pm 1"] * 50) + ")",
    "a row of divisions": "1/" * 9000 + "1",
    "a row of marks": "5" + "%" * 9000,
    "commas": "1," * 20_000,
    "text without end": r"\text{" * 6000,
    "digits and spaces": "1 " * 20_000,
    "minus signs": "-" * 30_000 + "1",
    "bars": "|" * 30_000,
}


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_what_means_the_same_is_equal_either_way_round(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is True
    assert equivalent(answer, gold) is True


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_what_differs_is_never_equal(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is False
    assert equivalent(answer, gold) in (False, None)


@pytest.mark.parametrize(("gold", "answer"), UNLIKE)
def test_what_cannot_be_read_is_not_taken_for_anything(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is not True


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("gold", ["1", "x^2 + y", r"\{1, 2\}"])
def test_nothing_hostile_is_equal_or_breaks_anything(name: str, gold: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalence, "ask", lambda gold, answer: None)
    assert equivalent(gold, HOSTILE[name]) in (False, None)
    assert equivalent(HOSTILE[name], gold) in (False, None)


def test_hostile_answers_are_judged_within_a_second_of_processor_time_and_flat_memory() -> None:
    """In a process that is killed at two seconds of processor time each, and may not hold more than 400 MB."""
    program = (
        "import resource, sys\n"
        "from reward_kit.mathematics.equivalence import equivalent\n"
        "resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))\n"
        "for line in sys.stdin:\n"
        "    used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))\n"
        "    resource.setrlimit(resource.RLIMIT_CPU, (used + 3, used + 3))\n"
        "    equivalent('1', line[:-1])\n"
        "most = next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "assert most < 400 << 10, most\n"
    )
    lines = "".join(f"{text}\n" for name, text in HOSTILE.items() if "five" not in name)
    done = subprocess.run([sys.executable, "-c", program], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_two_equal_sets_of_two_thousand_are_equal() -> None:
    forth = r"\{" + ", ".join(map(str, range(2000))) + r"\}"
    back = r"\{" + ", ".join(map(str, reversed(range(2000)))) + r"\}"
    assert equivalent(forth, back) is True
    assert equivalent(forth, back.replace("1999", "2999")) is False


def test_numbers_beyond_all_digits_are_not_taken_for_each_other() -> None:
    assert equivalent("9^{9^{9}}", "9^{9^{9}}+1") is None
    assert equivalent("2^{10^{10}}", "2^{10^{10}+1}") is False
    assert equivalent("10^{400}+1", "10^{400}") is False


def test_conditions_that_differ_leave_it_open() -> None:
    assert equivalent(r"x = 1 \text{ if } a > 0", r"x = 1 \text{ if } a < 0") is None
    assert equivalent(r"x = 1 \text{ if } a > 0", "x = 1") is True


def test_rounding_is_accepted_only_within_a_tolerance() -> None:
    loose = Tolerance(0.001, 1e-8)
    assert equivalent(r"\sqrt{2}", "1.414", loose) is True
    assert equivalent("(0.667, 1)", r"(\frac{2}{3}, 1)", loose) is True
    assert equivalent("2021", "2022", Tolerance(0.5, 10.0)) is False
    assert equivalent("12.50", "12.51", Tolerance(0.5)) is False
    assert equivalent("2.653", "2.65", loose) is False
    assert equivalent("1e-24", "2.0e-24", loose) is False
    assert equivalent("0", "1e-9", loose) is True


def test_the_caller_s_decimal_context_does_not_matter() -> None:
    import decimal

    with decimal.localcontext() as context:
        context.prec = 3
        assert equivalent(r"\frac{\sqrt{5}-1}{4}", r"\sin(\pi/10)") is True
        assert equivalent(r"\sqrt{2}", r"\sqrt{2.0001}") is False


def test_importing_the_rewards_loads_no_computer_algebra() -> None:
    program = (
        "import sys, reward_kit.rewards.math; "
        "assert not {'sympy', 'math_verify', 'mpmath'} & set(sys.modules), 'loaded'"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_readable_and_value_of() -> None:
    assert readable(r"\frac{1}{2}") and readable("Paris") and readable("(B)")
    assert not readable(r"\begin{cases} 1 \\ 2 \end{cases}") and not readable("9" * 1_000_000)
    assert value_of(r"x = \frac{3}{4}") == 0.75 and value_of("72 apples") == 72.0 and value_of("1e999") == float("inf")
    assert value_of("x") is None and value_of("i") is None


INTEGERS = st.integers(-50, 50)


@given(INTEGERS, INTEGERS, INTEGERS, INTEGERS)
def test_a_product_of_linear_factors_equals_its_expansion(a: int, b: int, c: int, d: int) -> None:
    factored = f"({a}x + {b})({c}x + {d})"
    assert equivalent(factored, f"{a * c}x^2 + {a * d + b * c}x + {b * d}") is True
    assert equivalent(factored, f"{a * c}x^2 + {a * d + b * c}x + {b * d + 1}") is False


@given(st.fractions(-9, 9, max_denominator=99), st.fractions(-9, 9, max_denominator=99))
def test_fractions_are_equal_exactly_when_they_are(left: object, right: object) -> None:
    assert equivalent(str(left), str(right)) is (left == right)


@given(st.integers(1, 400), st.integers(1, 20))
def test_surds_equal_their_simplification(radicand: int, factor: int) -> None:
    assert equivalent(rf"\sqrt{{{radicand * factor**2}}}", rf"{factor}\sqrt{{{radicand}}}") is True
    assert equivalent(rf"\sqrt{{{radicand * factor**2 + 1}}}", rf"{factor}\sqrt{{{radicand}}}") is False


@settings(max_examples=300)
@given(st.text(alphabet="0123456789xyabc+-*/^=<>(),[]{}|\\ .:;!%°πsqrtfcpmlndo\n", max_size=40), st.text(max_size=20))
def test_any_two_texts_have_a_verdict_and_every_text_equals_itself(text: str, other: str) -> None:
    assert equivalent(text, text) is True
    assert equivalent(text, other) in (True, False, None)
