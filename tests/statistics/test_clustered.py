# SPDX-License-Identifier: Apache-2.0
"""The clustered mean: streamed as in one piece, wide enough for answers that resemble each other."""

from __future__ import annotations

import random
from fractions import Fraction
from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import (
    ClusteredMean,
    Estimate,
    clustered_standard_error,
    proportion_interval,
    student_t_quantile,
)

EXAMPLE = [[1.0, 1.0, 0.0, 1.0], [0.0] * 4, [1.0] * 4, [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]]
scores = st.lists(st.floats(-100, 100), max_size=6)


def streamed(clusters: list[list[float]]) -> ClusteredMean:
    mean = ClusteredMean()
    for cluster in clusters:
        mean.add(cluster)
    return mean


def estimate_of(clusters: list[list[float]]) -> Estimate:
    estimate = streamed(clusters).estimate()
    assert estimate is not None
    return estimate


def exact_variance(clusters: list[list[float]]) -> Fraction:
    """The squared standard error by its definition, without rounding."""
    exact = [[Fraction(score) for score in cluster] for cluster in clusters if cluster]
    count = sum(map(len, exact))
    mean = sum((sum(cluster, Fraction()) for cluster in exact), Fraction()) / count
    residuals = [sum((score - mean for score in cluster), Fraction()) for cluster in exact]
    squares = sum((residual * residual for residual in residuals), Fraction())
    return Fraction(len(exact), len(exact) - 1) * squares / count**2


@given(st.lists(scores, min_size=2, max_size=12).filter(lambda clusters: sum(map(bool, clusters)) > 1))
def test_streamed_equals_batch_equals_exact(clusters: list[list[float]]) -> None:
    mean = streamed(clusters)
    flat = [Fraction(score) for cluster in clusters for score in cluster]
    exact = sqrt(exact_variance(clusters))
    assert mean.mean == pytest.approx(float(sum(flat) / len(flat)), rel=1e-9, abs=1e-9)
    assert mean.standard_error == pytest.approx(exact, rel=1e-6, abs=2e-4)
    assert clustered_standard_error(clusters) == pytest.approx(exact, rel=1e-9, abs=1e-9)
    assert (mean.count, mean.clusters) == (len(flat), sum(map(bool, clusters)))


def test_an_example_worked_by_hand() -> None:
    """Residual sums 1, -2, 2, -1, 0: squares 10, over 20 scores, 5 clusters."""
    error = sqrt(5 / 4 * 10) / 20
    assert streamed(EXAMPLE).standard_error == pytest.approx(error, abs=1e-12)
    estimate = estimate_of(EXAMPLE)
    # Agreement is error² x 5 / (1/2 x 1/2) = 5/8; four of the clusters hold a pass, four a failure.
    worth = 5 / (5 / 8) ** (4**2 / (4**2 + (7 * 5 / 8) ** 2 + 0.4))
    assert (estimate.low, estimate.high) == pytest.approx(proportion_interval(0.5, worth))
    assert (estimate.value, estimate.count) == (0.5, 5)


def test_scores_that_nothing_bounds_have_students_interval() -> None:
    clusters = [[0.1, 0.3], [0.9, 1.7], [0.5, 0.5], [0.2, 0.9]]
    estimate, reach = estimate_of(clusters), student_t_quantile(0.975, 3) * clustered_standard_error(clusters)
    assert (estimate.low, estimate.high) == pytest.approx((estimate.value - reach, estimate.value + reach))


@given(st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=5), min_size=2, max_size=30))
def test_a_score_that_hardly_changes_hardly_changes_the_interval(clusters: list[list[float]]) -> None:
    """Also where it turns passes and failures into grades: there is one method, and it has no seam."""
    nudged = [[min(1.0, max(0.0, score + 1e-9 * (1 - 2 * score))) for score in clusters[0]], *clusters[1:]]
    before, after = estimate_of(clusters), estimate_of(nudged)
    assert (after.low, after.high) == pytest.approx((before.low, before.high), abs=2e-3)


def test_the_interval_of_graded_scores_holds_the_truth_about_as_often_as_it_says() -> None:
    draw, held, trials = random.Random(7), 0, 600
    for _ in range(trials):
        mean = ClusteredMean()
        for _ in range(30):
            level = draw.uniform(0.2, 0.8)
            mean.add([min(1.0, max(0.0, level + draw.uniform(-0.2, 0.2))) for _ in range(4)])
        estimate = mean.estimate()
        assert estimate is not None
        held += estimate.low <= 0.5 <= estimate.high
    assert 0.92 <= held / trials <= 0.985


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=20))
def test_clusters_of_one_are_independent_scores(values: list[float]) -> None:
    mean = sum(values) / len(values)
    plain = sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    assert streamed([[value] for value in values]).standard_error == pytest.approx(plain, rel=1e-6, abs=1e-4)


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=2, max_size=10))
def test_saying_each_answer_twice_adds_no_certainty(clusters: list[list[float]]) -> None:
    once, twice = streamed(clusters), streamed([cluster * 2 for cluster in clusters])
    assert twice.standard_error == pytest.approx(once.standard_error, rel=1e-6, abs=1e-6)


def test_a_large_common_part_does_not_drown_the_differences() -> None:
    clusters = [[1e9 + step, 1e9 + step / 2] for step in range(50)]
    assert streamed(clusters).standard_error == pytest.approx(sqrt(exact_variance(clusters)), rel=1e-6)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_when_all_answers_agree_the_interval_still_has_a_width(score: float) -> None:
    estimate = estimate_of([[score] * 4] * 10)
    assert (estimate.low, estimate.high) == proportion_interval(score, 10)
    assert estimate.value == score


def test_clusters_that_agree_on_the_mean_do_not_make_it_certain() -> None:
    """As if their answers were independent, at the most: no more than 21 trials, and a little less for doubt."""
    estimate = estimate_of([[1.0, 0.0, 0.0]] * 7)
    worth = 7 / (1 / 3) ** (7**2 / (7**2 + (7 / 3) ** 2 + 0.4))
    assert 7 < worth < 21
    assert (estimate.low, estimate.high) == pytest.approx(proportion_interval(1 / 3, worth))


def test_one_cluster_knows_nothing_of_the_others() -> None:
    passed = estimate_of([[1.0, 0.0, 1.0, 1.0]])
    assert (passed.low, passed.high) == proportion_interval(0.75, 1)
    graded = estimate_of([[0.3, 0.4]])
    assert graded.value == pytest.approx(0.35)
    assert (graded.low, graded.high) == pytest.approx(proportion_interval(0.35, 1))
    unbounded = estimate_of([[3.0, 4.0]])
    assert (unbounded.low, unbounded.high) == (-inf, inf)
    assert streamed([[0.3, 0.4]]).standard_error == clustered_standard_error([[0.3, 0.4]]) == inf


def test_graded_scores_that_agree_are_taken_at_their_word() -> None:
    estimate = estimate_of([[0.5, 0.5]] * 3)
    assert (estimate.value, estimate.low, estimate.high) == (0.5, 0.5, 0.5)


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), max_size=5), max_size=30))
def test_an_interval_of_passes_lies_between_nothing_and_everything(clusters: list[list[float]]) -> None:
    estimate = streamed(clusters).estimate()
    if estimate is None:
        assert not any(clusters)
    else:
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        assert estimate.low < estimate.high


def test_nothing_has_no_mean() -> None:
    assert streamed([[], []]).estimate() is None
    with pytest.raises(ValueError, match="no scores"):
        clustered_standard_error([[]])


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Answers share their sample's difficulty, and clusters differ in size: taken as independent they would not."""
    draw = random.Random(2)
    held = 0
    for _ in range(400):
        mean = ClusteredMean()
        for _ in range(25):
            difficulty = draw.choice([0.1, 0.5, 0.9])
            mean.add([float(draw.random() < difficulty) for _ in range(draw.choice([2, 4, 8]))])
        estimate = mean.estimate()
        assert estimate is not None
        held += estimate.low <= 0.5 <= estimate.high
    assert 0.91 <= held / 400 <= 0.98
