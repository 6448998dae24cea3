# SPDX-License-Identifier: Apache-2.0
"""Reasoning is taken out of an answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reward_kit.answers.reasoning import split_reasoning, without_reasoning


def test_reasoning_is_cut_out() -> None:
    assert without_reasoning("<think>a</think>b<Reasoning x='1'>c</reasoning>d") == "bd"
    assert without_reasoning("b<think>c") == "b"
    assert without_reasoning("a</think>b") == "b"


def test_reasoning_is_told_apart() -> None:
    assert split_reasoning("<think>a</think>b") == ("a", "b")
    assert split_reasoning("b <thinking>c") == ("c", "b ")
    assert split_reasoning("a</think>b") == ("a", "b")
    assert split_reasoning("a <b> c") == ("", "a <b> c")
    assert split_reasoning("a</think>b<think>c</think>d") == ("ac", "bd")


PIECES = st.lists(st.sampled_from(["<think>", "</think>", "<reasoning x='1'>", "</Thought>", "a", "b ", "<", ">"]))


@given(PIECES)
def test_every_character_is_reasoning_answer_or_tag(pieces: list[str]) -> None:
    text = "".join(pieces)
    thought = split_reasoning(text)
    assert thought.answer == without_reasoning(text)
    tags = sum(len(piece) for piece in pieces if len(piece) > 2)
    assert len(thought.reasoning) + len(thought.answer) >= len(text) - tags
    assert "</think>" not in thought.answer
