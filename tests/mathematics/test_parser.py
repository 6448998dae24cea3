# SPDX-License-Identifier: Apache-2.0
"""The grammar: every text is read or refused, in time that grows with its length and no faster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.mathematics import equivalence
from reward_kit.mathematics.equivalence import equivalent
from reward_kit.mathematics.nodes import (
    Builder,
    Call,
    Degrees,
    Interval,
    Matrix,
    Measure,
    Node,
    Percent,
    PlusMinus,
    Power,
    Product,
    Quotient,
    Ratio,
    Relation,
    Sequence,
    SetOperation,
    Sum,
)
from reward_kit.mathematics.parser import read_answer
from reward_kit.mathematics.tokens import Unreadable
from tests.growth import growth_of_calls

KINDS: list[tuple[str, type[Node]]] = [
    ("1, 2", Sequence), ("(1, 2)", Sequence), (r"\{1, 2\}", Sequence), ("(1, 2]", Interval), (r"(1, \infty)", Interval),
    (r"\{x \mid x > 1\}", Builder), ("x < 3", Relation), ("Maximum: x = 3", Relation),
    (r"(1, 2) \cup (3, 4]", SetOperation),
    ("1 : 2", Ratio), ("a + b", Sum), (r"1\frac{4}{5}", Sum), ("1 4/5", Sum), ("a b", Product), ("a / b", Quotient),
    (r"{a \over b}", Quotient), ("a^2", Power), ("5!", Call), (r"\sqrt[3]{2}", Call), ("|x|", Call), ("5%", Percent),
    ("30°", Degrees), ("5 m", Measure), ("2 hours 30 minutes", Measure), (r"9.8\,\mathrm{m/s^2}", Measure),
    (r"2 \pm 1", PlusMinus), (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", Matrix),
]  # fmt: skip

MATRIX = r"\begin{pmatrix} x & 2 \\ 3 & 4 \end{pmatrix}"
DETERMINANT = r"\begin{vmatrix} a & b & c & d \\ e & f & g & h \\ p & q & r & s \\ t & u & v & "
NESTED: dict[str, tuple[int, Callable[[int], str]]] = {
    "letters and brackets": (6, lambda n: "a(" * n + "1" + ")" * n),
    "functions": (6, lambda n: "f(" * n + "1" + ")" * n),
    "products of matrices": (10, lambda n: MATRIX * n),
    "powers of matrices": (14, lambda n: "(" * n + MATRIX + "^T)" * n + MATRIX * n),
    "determinants": (2, lambda n: DETERMINANT * n + "1" + r"\end{vmatrix}" * n),
    "times": (100, lambda n: ", ".join(f"{i} hours" for i in range(n))),
    "fractions of TeX": (400, lambda n: r"1 \over " * n + "1"),
    "units in units": (300, lambda n: "5 " + r"\frac{m}{" * n + "s" + "}" * n),
    "sets without others": (300, lambda n: r"\mathbb{R}" + r"\setminus [1,2]" * n),
    "words": (200, lambda n: "one hundred " * n),
    "dots": (2000, lambda n: "0." + "12" * n + "..."),
    "half-open brackets": (200, lambda n: "]1,1[" * n),
}  # fmt: skip
"""A size to begin with, and a text of a size."""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without math-verify, whose bounds are its own, and without verdicts from before."""
    monkeypatch.setattr(equivalence, "ask", lambda gold, answer: None)
    equivalence.forget()
    yield
    equivalence.forget()


@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_each_form_is_read_as_what_it_is(text: str, kind: type[Node]) -> None:
    assert isinstance(read_answer(text).node, kind)


def test_what_an_answer_holds_for_is_kept_apart() -> None:
    assert read_answer("x^2 for x > 0").condition == "forx>0"
    assert read_answer("x^2 for x > 0").node == read_answer("x^2").node


@given(st.text(alphabet=st.one_of(st.sampled_from(r"x12+-*/^_={}()[]|\,.;:<>%!°' "), st.characters()), max_size=60))
def test_every_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(Unreadable):
        read_answer(text)


@pytest.mark.parametrize("name", NESTED)
def test_nesting_does_not_double_the_work(name: str) -> None:
    """Four times the text takes some four times the work; what doubles at each level would never be done."""
    size, text = NESTED[name]

    def work(count: int) -> None:
        equivalence.forget()
        for gold in ("1", r"\{1, 2\}", MATRIX, text(count) + "+1"):
            assert equivalent(gold, text(count)) is not True

    work(size)  # what is worked out once, and kept, is no work of either
    assert growth_of_calls(work, size) < 9


def test_brackets_behind_a_letter_are_read_once() -> None:
    """A letter may be a function or a factor: trying both anew at each level would take 2^n readings."""

    def work(depth: int) -> None:
        text = "a(" * depth + "1" + ")" * depth
        try:
            read_answer(text)
        except Unreadable:
            assert depth > 20

    assert growth_of_calls(work, 5, times=3) < 6
