# SPDX-License-Identifier: Apache-2.0
"""Which states are the same: by value, or by likeness as the authors of GiGPO compute it, at a bounded cost."""

from __future__ import annotations

import logging
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.agent import anchor_states
from reward_kit.agent.anchor_states import StateGroups


def numbers(states: list[Any], similarity: float | None = None) -> list[int]:
    groups = StateGroups(similarity)
    return [groups.number("p", state) for state in states]


@pytest.mark.parametrize(
    "same",
    [
        [1, 1.0, True],
        [[1, [2]], (1, (2,)), [True, [2.0]]],
        [{"a": 1, "b": [2]}, {"b": (2,), "a": 1.0}],
        [np.array([[1, 2], [3, 4]]), np.array([1, 2, 3, 4]), [1, 2, 3, 4]],
        [float("nan"), float("nan")],
        [{1, 2}, frozenset([2, 1])],
    ],
)
def test_states_are_equal_by_value(same: list[Any]) -> None:
    assert numbers(same) == [0] * len(same)


@pytest.mark.parametrize(
    "apart", [["1", 1], [[1, 2], [2, 1]], [[], {}], [{"a": 1}, [("a", 1)]], [{"a": 1}, {"a": 2}], ["A", "a"]]
)
def test_other_states_are_not(apart: list[Any]) -> None:
    assert numbers(apart) == [0, 1]


def test_a_state_that_nobody_knows_is_alone() -> None:
    assert numbers(["A", None, None, "A"]) == [0, 1, 2, 0]


def test_the_same_state_of_another_prompt_is_another() -> None:
    groups = StateGroups()
    assert [groups.number(prompt, "A") for prompt in "pqp"] == [0, 1, 0]


class Opaque:
    __hash__ = None  # type: ignore[assignment]  # as objects with an __eq__ of their own have


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(TypeError, match=r"A state of type 'Opaque' cannot be compared\. Make it text"):
        numbers([{"board": Opaque()}])
    with pytest.raises(TypeError, match="similarity compares texts, and a state is 3"):
        numbers(["A", 3], similarity=0.9)
    with pytest.raises(ValueError, match=r"similarity is 1\.5; expected"):
        StateGroups(1.5)


def greedily(states: list[str], similarity: float) -> list[int]:
    """As the authors do it: every text against the first of every cluster."""
    firsts: list[str] = []
    found = []
    for state in states:
        for number, first in enumerate(firsts):
            if SequenceMatcher(None, state, first).ratio() >= similarity:
                found.append(number)
                break
        else:
            found.append(len(firsts))
            firsts.append(state)
    return found


texts = st.text("ab c", max_size=12) | st.text("xyzuvw", min_size=195, max_size=220)
"""Short ones; and some of 200 letters, from which on `difflib` looks away from frequent letters."""


@given(st.lists(texts, max_size=25), st.sampled_from([0.1, 0.5, 0.8, 0.95, 1.0]))
def test_similar_texts_join_the_first_group_that_is_like_them(states: list[str], similarity: float) -> None:
    assert numbers(states, similarity) == greedily(states, similarity)


def test_a_text_is_compared_with_a_bounded_number_of_groups(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compared = 0

    def counted(*_: object) -> bool:
        nonlocal compared
        compared += 1
        return False

    monkeypatch.setattr(anchor_states, "MOST_COMPARED", 5)
    monkeypatch.setattr(anchor_states._First, "is_like", counted)
    states = [f"state {number}" for number in range(40)]
    with caplog.at_level(logging.WARNING):
        assert numbers([*states, *states], similarity=0.9) == [*range(40), *range(40)]
    assert compared == 0 + 1 + 2 + 3 + 4 + 5 * 35
    assert [record.message for record in caplog.records] == [
        "GiGPO by similarity: a prompt has more than 5 groups of similar states. "
        "Others join only states that are equal to them."
    ]


def test_a_long_text_joins_only_its_equals(caplog: pytest.LogCaptureFixture) -> None:
    long = "x" * (anchor_states.LONGEST_COMPARED + 1)
    with caplog.at_level(logging.WARNING):
        assert numbers([long, long + "x", long], similarity=0.5) == [0, 1, 0]
    assert "a state has 4,001 characters" in caplog.text
