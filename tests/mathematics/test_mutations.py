# SPDX-License-Identifier: Apache-2.0
"""The operators that make answers of right answers: they are pure, cover each class, and are judged as they say."""

from __future__ import annotations

from collections import defaultdict

import pytest

from reward_kit.mathematics.equivalence import equivalent
from tests.mathematics.mutations import OPERATORS, Operator, is_right, made

GOLDS = ("7", "23", "48", r"\frac{3}{4}", "x^2+1", "(1, 2)", r"(-\infty, 3) \cup (4, 5]", r"\frac{\sqrt{5}}{2}\pi")
"""Two of them fill in all templates, and the others those that take any right answer."""


def pairs_of(operator: Operator) -> list[tuple[str, str]]:
    return sorted({pair for gold in GOLDS for pair in made(operator, gold)})


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: f"{operator.kind}: {operator.name}")
def test_an_operator_is_judged_as_it_says(operator: Operator) -> None:
    pairs = pairs_of(operator)
    assert pairs
    assert [pair for pair in pairs if not is_right(operator, *pair)] == []


def test_each_class_has_operators_that_keep_the_meaning_and_operators_that_change_it() -> None:
    kinds: dict[str, set[bool]] = defaultdict(set)
    for operator in OPERATORS:
        kinds[operator.kind].add(operator.keeps)
    assert [kind for kind, found in kinds.items() if found != {True, False} and kind != "no value"] == []
    assert len(kinds) > 25


def test_an_operator_is_a_pure_function_and_makes_no_pair_twice() -> None:
    for operator in OPERATORS:
        for gold in GOLDS:
            pairs = list(made(operator, gold))
            assert pairs == list(made(operator, gold))
            assert len(set(pairs)) == len(pairs), operator.name


def test_no_pair_is_made_both_to_mean_the_same_and_to_mean_something_else() -> None:
    kept = {(operator.reads, pair) for operator in OPERATORS if operator.keeps for pair in pairs_of(operator)}
    changed = {(operator.reads, pair) for operator in OPERATORS if not operator.keeps for pair in pairs_of(operator)}
    assert kept & changed == set()


@pytest.mark.parametrize("word", ["florbled", "quizzically", "un", "sans", "barely", "notwithstanding", "whenever"])
@pytest.mark.parametrize(
    "form", ["{} 7", "7 {}", r"\text{{{}}} 7", r"7 \text{{ {}}}", "the {} is 7", "{}: 7", "7 {} apples"]
)
def test_a_word_that_is_not_known_decides(word: str, form: str) -> None:
    answer = form.format(word)
    assert equivalent("7", answer) is not True
    assert equivalent(answer, "7") is not True
    assert equivalent(answer, answer.replace("7", "8")) is not True
    assert equivalent(answer, answer) is True
