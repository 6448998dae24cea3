"""Bounds on work: a step budget that holds, and nothing that doubles with each level of nesting."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from reward_kit.mathematics import equivalence, evaluation
from reward_kit.mathematics.equivalence import equivalent

MATRIX = r"\begin{pmatrix} x & 2 \\ 3 & 4 \end{pmatrix}"
DETERMINANT = r"\begin{vmatrix} a & b & c & d \\ e & f & g & h \\ p & q & r & s \\ t & u & v & "

NESTED = {
    "letters and brackets": "a(" * 18 + "1" + ")" * 18,
    "functions": "f(" * 18 + "1" + ")" * 18,
    "products of matrices": MATRIX * 60,
    "powers of matrices": "(" * 12 + MATRIX + "^T)" * 12 + MATRIX * 40,
    "determinants": DETERMINANT * 8 + "1" + r"\end{vmatrix}" * 8,
    "sets of sets": r"\{" + ",".join([r"\{" + ",".join(f"a_{n}" for n in range(40)) + r"\}"] * 40) + r"\}",
    "sets of sets of equations": r"\{" + ",".join([r"\{" + ",".join(f"x={n}" for n in range(40)) + r"\}"] * 40) + r"\}",
    "times": ", ".join(f"{n} hours" for n in range(600)),
    "fractions of TeX": r"1 \over " * 2000 + "1",
    "units in units": "5 " + r"\frac{m}{" * 1500 + "s" + "}" * 1500,
    "sets without others": r"\mathbb{R}" + r"\setminus [1,2]" * 1500,
    "words": "one hundred " * 1000,
    "dots": "0." + "12" * 9000 + "...",
    "half-open brackets": "]1,1[" * 1000,
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without the last resort, whose bounds are its own, and without verdicts from before."""
    monkeypatch.setattr(equivalence, "ask", lambda gold, answer: None)
    equivalence.forget()
    yield
    equivalence.forget()


def processor_time() -> float:
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


@pytest.mark.parametrize("name", NESTED)
def test_nesting_does_not_double_the_work(name: str) -> None:
    """Twenty seconds is no goal: what doubles at each level would not be done in a year."""
    started = processor_time()
    for gold in ("1", "x^2 + y", r"\{1, 2\}", "(0, 1)", MATRIX, NESTED[name] + "+1"):
        assert equivalent(gold, NESTED[name]) is not True
        assert equivalent(NESTED[name], gold) is not True
    assert processor_time() - started < 20


def test_a_comparison_has_a_budget_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget is a fixed number, is given anew to each comparison, and stops one that would go beyond it."""
    assert evaluation.MAX_STEPS == 60_000
    spent = 0
    real = evaluation.spend

    def counted(cost: int) -> None:
        nonlocal spent
        spent += cost
        real(cost)

    monkeypatch.setattr(evaluation, "spend", counted)
    costly = "+".join(rf"\arctan(x_{{{index}}})" for index in range(1000))
    assert equivalent(costly, costly + "+ 0") is None
    assert evaluation.MAX_STEPS - 20 < spent <= evaluation.MAX_STEPS + 20
    assert equivalent("(x+1)^2", "x^2+2x+1") is True


def test_what_fits_the_budget_is_decided_and_what_does_not_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = [rf"\sin(x + {index})" for index in range(30)]
    forth, back = "+".join(terms), "+".join(reversed(terms))
    assert equivalent(forth, back) is True
    equivalence.forget()
    monkeypatch.setattr(evaluation, "MAX_STEPS", 500)
    assert equivalent(forth, back) is None


def test_work_grows_with_the_length_of_the_answer_and_no_faster() -> None:
    """Counted in steps, which are the same on every machine."""
    used = []
    for count in (20, 40, 80):
        terms = "+".join(f"{index + 2}x^{index}" for index in range(count))
        evaluation.allow_steps()
        assert equivalent(terms, terms + "+ 0") is True
        used.append(evaluation.MAX_STEPS - evaluation._steps.left)
    assert used[1] < 2.2 * used[0] and used[2] < 2.2 * used[1]
