# SPDX-License-Identifier: Apache-2.0
"""What the docstrings of these rewards show is true, and they say what a reader needs to know."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

MODULES = ["bfcl_reward", "composite", "function_calling", "group", "json_schema", "judge", "lean_prover"]
INNER = ["_judging.asking", "_judging.pairings", "_tool_calls.matching"]


def rewards() -> Iterator[tuple[str, Any]]:
    for name in MODULES:
        module = importlib.import_module(f"reward_kit.rewards.{name}")
        for public in vars(module)["__all__"]:
            if hasattr(vars(module)[public], "_reward_function_mode"):
                yield public, vars(module)[public]


@pytest.mark.parametrize("name", [*MODULES, *INNER])
def test_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"reward_kit.rewards.{name}"))
    assert result.attempted and not result.failed


@pytest.mark.parametrize(("name", "reward"), list(rewards()))
def test_every_reward_tells_its_metrics_its_cost_and_its_blind_spots(name: str, reward: Any) -> None:
    text = inspect.getdoc(reward) or ""
    for label in ("\nMetrics: ", "\nCost: ", "\nDoes not detect: ", "\n>>> "):
        assert label in text, f"{name} lacks {label!r}"
