# SPDX-License-Identifier: Apache-2.0
"""Quantiles against the cases that have a closed form."""

from __future__ import annotations

from math import pi, sqrt, tan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import normal_quantile, student_t_quantile

probabilities = st.floats(0.0005, 0.9995)


@given(probabilities)
def test_one_degree_of_freedom_is_the_cauchy_distribution(probability: float) -> None:
    assert student_t_quantile(probability, 1) == pytest.approx(tan(pi * (probability - 0.5)), rel=1e-9, abs=1e-12)


@given(probabilities)
def test_two_degrees_of_freedom(probability: float) -> None:
    expected = (2 * probability - 1) / sqrt(2 * probability * (1 - probability))
    assert student_t_quantile(probability, 2) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(3, 3.182446305284), (4, 2.776445105198), (9, 2.262157162741), (30, 2.042272456301), (100, 1.983971518449)],
)
def test_the_values_of_the_tables(degrees: int, expected: float) -> None:
    assert student_t_quantile(0.975, degrees) == pytest.approx(expected, rel=1e-9)


@given(probabilities)
def test_many_degrees_of_freedom_are_nearly_the_normal_distribution(probability: float) -> None:
    z = normal_quantile(probability)
    first_correction = (z**3 + z) / 4 / 200_000
    assert student_t_quantile(probability, 200_000) == pytest.approx(z + first_correction, abs=1e-7)


@given(probabilities, st.integers(1, 500))
def test_it_is_symmetric_and_has_heavier_tails_than_the_normal(probability: float, degrees: int) -> None:
    value = student_t_quantile(probability, degrees)
    assert value == pytest.approx(-student_t_quantile(1 - probability, degrees), rel=1e-6, abs=1e-9)
    assert abs(value) >= abs(normal_quantile(probability)) - 1e-9


@pytest.mark.parametrize(("probability", "degrees"), [(0.0, 3), (1.0, 3), (0.5, 0), (float("nan"), 3)])
def test_what_has_no_quantile_is_refused(probability: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="t quantile"):
        student_t_quantile(probability, degrees)


def test_the_normal_quantile_everybody_knows() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054, abs=1e-14)
    assert normal_quantile(0.5) == 0.0
