# SPDX-License-Identifier: Apache-2.0
"""Tokens, money and failures are summed in one way, for lines of rollouts and of results."""

from __future__ import annotations

from typing import Any

from reward_kit.execution.totals import Totals

USAGE = {"prompt_tokens": 3, "completion_tokens": 4}


def totals_of(*lines: dict[str, Any]) -> Totals:
    totals = Totals()
    for line in lines:
        totals.add({"cost": None, **line})
    return totals


def test_what_came_from_the_cache_was_paid_for_before() -> None:
    totals = totals_of({"usage": USAGE, "cost": 0.5}, {"usage": USAGE, "cost": 0.0, "cached": True})
    assert totals.spending() == {**USAGE, "cost": 0.5} and totals.cached == 1


def test_a_sum_with_an_unknown_part_is_unknown_and_nothing_used_costs_nothing() -> None:
    assert totals_of({"usage": USAGE, "cost": 1.0}, {"usage": USAGE}).spending()["cost"] is None
    assert totals_of({"usage": USAGE, "cost": 1.0}, {"usage": None}).spending()["cost"] == 1.0


def test_failures_are_counted_by_kind_with_the_first_message_of_each() -> None:
    first = {"stage": "score", "type": "A", "message": "one"}
    totals = totals_of(
        {"failure": {"stage": "generate", "type": "B", "message": "b"}},
        {"failure": first},
        {"failure": {**first, "message": "two"}},
        {},
    )
    assert totals.failed == 3
    assert totals.failures() == {
        "failures_by_kind": {"score: A": 2, "generate: B": 1},
        "failure_examples": {"score: A": "one", "generate: B": "b"},
    }
