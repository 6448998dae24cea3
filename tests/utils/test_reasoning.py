"""Reasoning is taken out of an answer."""

from __future__ import annotations

from reward_kit.utils.reasoning import without_reasoning


def test_reasoning_is_cut_out() -> None:
    assert without_reasoning("<think>a</think>b<Reasoning x='1'>c</reasoning>d") == "bd"
    assert without_reasoning("b<think>c") == "b"
    assert without_reasoning("a</think>b") == "b"
