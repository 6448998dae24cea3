# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings of the mathematics rewards are true."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["math", "list_comparison_math_reward", "multiple_choice_math_reward", "accuracy"])
def test_examples_are_true(name: str) -> None:
    results = doctest.testmod(importlib.import_module(f"reward_kit.rewards.{name}"))
    assert results.attempted and not results.failed
