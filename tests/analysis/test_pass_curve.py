# SPDX-License-Identifier: Apache-2.0
"""The curve against pass@k of each query; its points are few enough to read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.analysis import pass_curve
from reward_kit.statistics import PassAtK, ladder, pass_at_k
from tests.analysis.experiments import rows_of, simulated, table, table_of


@given(st.lists(st.text("10.", min_size=1, max_size=6), min_size=1, max_size=10))
def test_each_point_is_the_estimate_over_the_same_queries(queries: list[str]) -> None:
    curve = pass_curve(table({str(number): marks for number, marks in enumerate(queries)}))
    counts = [(marks.count("1") + marks.count("0"), marks.count("1")) for marks in queries]
    judged = [(n, c) for n, c in counts if n]
    last = curve[-1].k if curve else 0
    chosen = [(n, c) for n, c in judged if n >= last]
    passes = PassAtK(last)
    for n, c in chosen:
        passes.add(n, c)
    assert {point.k: point.pass_at_k for point in curve} == passes.estimates()
    assert [point.gain for point in curve] == [passes.gain(point.k, point.since) for point in curve]
    assert 2 * len(chosen) >= len(judged) >= 2 * sum(n > last for n, _ in judged), "it goes as far as half of them do"


def test_a_split_has_its_own_curve() -> None:
    mixed = table_of(rows_of({"a": "01"}) + rows_of({"b": "11"}, split="code"))
    assert [point.pass_at_k.value for point in pass_curve(mixed, split="math")] == [0.5, 1.0]
    assert [point.pass_at_k.value for point in pass_curve(mixed, split="code")] == [1.0, 1.0]
    with pytest.raises(ValueError, match="there are: math, code"):
        pass_curve(mixed, split="chat")


def test_a_hundred_candidates_are_told_in_few_points() -> None:
    assert ladder(16) == list(range(1, 17))
    ks = ladder(1_000)
    assert ks[:16] == list(range(1, 17))
    assert ks[-1] == 1_000
    assert len(ks) < 45
    assert ks == sorted(set(ks))
    assert ladder(0) == []


def test_a_point_says_since_when_it_gained() -> None:
    curve = pass_curve(table({"a": "1" + "0" * 39}))
    last = curve[-1]
    assert (last.k, last.pass_at_k.value) == (40, 1.0)
    assert last.gain.value == pytest.approx(1 - pass_at_k(40, 1, last.since))


def test_the_interval_of_a_gain_holds_the_truth() -> None:
    """Chances 0.2 and 0.7 in equal shares: the third candidate adds the mean of p(1 - p)²."""
    truth = (0.2 * 0.8**2 + 0.7 * 0.3**2) / 2
    held, trials = 0, 200
    for seed in range(trials):
        hard = simulated(seed, queries=40, size=8, rate=0.2, alike=1e-6)
        easy = simulated(seed + trials, queries=40, size=8, rate=0.7, alike=1e-6)
        gain = pass_curve(table(hard | {f"e{name}": marks for name, marks in easy.items()}))[2].gain
        held += gain.low <= truth <= gain.high
    assert held / trials >= 0.92
