# SPDX-License-Identifier: Apache-2.0
"""A corner of `benchmarks/coverage.py`, with a fixed seed: intervals must hold the truth as often as they say."""

from __future__ import annotations

from math import sqrt

import pytest

from benchmarks.coverage import ENOUGH, HIGH, LEAST, LOW, Setting, measured, measured_from_pools

SIMULATIONS = 400
NOISE = 3.5 * sqrt(0.95 * 0.05 / SIMULATIONS)
"""What so few simulations may be off by, once in the hundreds of settings."""


@pytest.mark.parametrize("queries", [20, 50])
def test_intervals_hold_the_truth_as_often_as_they_say(queries: int) -> None:
    found = [*measured((queries,), SIMULATIONS)]
    shown = [setting for setting in found if setting.showing >= ENOUGH]
    assert [setting for setting in found if setting.held < LEAST - NOISE / 2] == []
    assert [setting for setting in shown if setting.held < LOW - NOISE] == []
    assert [setting for setting in shown if setting.held > HIGH + NOISE / 2] == []
    assert sum(setting.held for setting in shown) / len(shown) == pytest.approx(0.952, abs=0.008)


FEW = 100


@pytest.fixture(scope="module")
def pooled() -> list[Setting]:
    return [*measured_from_pools((50,), FEW)]


@pytest.mark.parametrize("kind", ["best", "majority", "graded difference"])
def test_intervals_of_single_answers_hold_the_truth_about_as_often(kind: str, pooled: list[Setting]) -> None:
    """A few simulations: what is far off is seen, and on average they are not."""
    found = [setting for setting in pooled if setting.figure.startswith(kind) and setting.showing >= ENOUGH]
    noise = 4 * sqrt(0.95 * 0.05 / FEW)
    assert [setting for setting in found if setting.held < LOW - noise] == []
    assert sum(setting.held for setting in found) / len(found) == pytest.approx(0.955, abs=0.02)
