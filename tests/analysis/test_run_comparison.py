# SPDX-License-Identifier: Apache-2.0
"""Two experiments on the same queries: what differs, how sure that is, and nothing said where nothing can be."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.analysis import Difference, Pairing, analyse, compare
from reward_kit.statistics import pass_at_k
from tests.analysis.experiments import rows_of, simulated, table, table_of, write


def pairing(baseline: pa.Table, other: pa.Table) -> Pairing:
    (found,) = compare(baseline, other).pairings
    return found


def difference(found: Pairing, figure: str, split: str = "all") -> Difference:
    (one,) = [one for one in found.differences if (one.figure, one.split) == (figure, split)]
    return one


BEFORE = {"a": "1000", "b": "1111", "c": "0000", "d": "11..", "only": "1"}
AFTER = {"c": "0011", "b": "1110", "a": "1000", "d": "0000", "new": "0"}


def test_queries_are_paired_by_id_wherever_they_stand() -> None:
    found = pairing(table(BEFORE), table(AFTER))
    assert (found.common, found.only_baseline, found.only_other) == (4, 1, 1)
    rate = difference(found, "rate")
    assert (rate.baseline, rate.other) == ((0.25 + 1 + 0 + 1) / 4, (0.25 + 0.75 + 0.5 + 0) / 4)
    assert rate.difference == pytest.approx(-0.1875)
    assert (rate.won, rate.lost) == (1, 2)
    assert rate.p > 0.5
    first = difference(found, "first")
    assert (first.queries, first.difference, first.won, first.lost) == (4, -0.25, 0, 1)


def test_the_same_id_in_another_split_is_another_query() -> None:
    found = pairing(table_of(rows_of({"a": "1"})), table_of(rows_of({"a": "1"}, split="code")))
    assert found.common == 0


def test_queries_of_no_split_are_paired_by_id_alone() -> None:
    run = table({"a": "1", "b": "0"}).drop_columns(["split"])
    experiment = table_of(rows_of({"b": "1"}, split="code") + rows_of({"a": "1", "c": "0"}))
    assert pairing(run, experiment).common == pairing(experiment, run).common == 2
    assert difference(pairing(run, experiment), "rate").difference == pytest.approx(0.5)
    twice = table_of(rows_of({"a": "1"}) + rows_of({"a": "0"}, split="code"))
    assert pairing(run, twice).common == 0, "which of the two is meant nobody knows"


def test_no_overlap_leaves_nothing_to_say() -> None:
    found = pairing(table({"a": "10"}), table({"b": "01"}))
    assert (found.common, found.differences, found.flips) == (0, (), ())
    unjudged = pairing(table({"a": "10"}), table({"a": ".."}))
    assert (unjudged.common, unjudged.differences) == (0, ())


def test_each_split_has_its_own_differences() -> None:
    before = table_of(rows_of({"a": "00", "b": "10"}) + rows_of({"a": "11"}, split="code"))
    after = table_of(rows_of({"a": "11"}, split="code") + rows_of({"a": "11", "b": "10"}))
    found = pairing(before, after)
    assert {one.split for one in found.differences} == {"all", "math", "code"}
    assert (difference(found, "rate", "math").won, difference(found, "rate", "code").won) == (1, 0)
    code = difference(found, "rate", "code")
    assert code.difference == 0
    assert code.low < 0 < code.high


def test_oracles_are_compared_at_a_number_of_candidates_both_have() -> None:
    """Eight candidates find more than two: comparing whether any was right would reward asking more often."""
    before, after = {str(number): "10" for number in range(20)}, {str(number): "10" * 4 for number in range(20)}
    found = pairing(table(before), table(after))
    oracle = difference(found, "pass@2")
    assert oracle.baseline == 1.0
    assert oracle.other == pytest.approx(pass_at_k(8, 4, 2))


def test_queries_that_crossed_the_half_flipped() -> None:
    found = pairing(table(BEFORE), table(AFTER | {"c": "0111"}))
    assert (found.gained, found.lost) == (1, 1)
    assert [(flip.query_id, flip.gained, flip.baseline, flip.other) for flip in found.flips] == [
        ("d", False, "2/2", "0/4"),
        ("c", True, "0/4", "3/4"),
    ]
    assert found.flips[0].excerpt == "What is d?"


def test_experiments_stand_side_by_side(tmp_path: Path) -> None:
    baseline = write(tmp_path / "base.parquet", table_of(rows_of(BEFORE, model="small")))
    other = write(tmp_path / "new.parquet", table_of(rows_of(AFTER), model="large"))
    lines = compare(baseline, other, table(AFTER)).experiments
    assert [(line.name, line.models, line.candidates) for line in lines] == [
        ("base.parquet", ("small",), 4), ("new.parquet", ("large",), 4), ("table", (), 4),
    ]  # fmt: skip
    assert len(compare(baseline, other, table(AFTER)).pairings) == 2
    with pytest.raises(ValueError, match="two or more"):
        compare(baseline)


def test_an_experiment_does_not_differ_from_itself() -> None:
    source = table(simulated(5, queries=30, missing=0.05))
    for one in pairing(source, source).differences:
        assert (one.difference, one.won, one.lost, one.p) == (0, 0, 0, 1.0)
        assert one.low < 0 < one.high


def test_turning_it_round_turns_the_sign() -> None:
    before, after = table(simulated(1)), table(simulated(2, rate=0.6))
    there, back = difference(pairing(before, after), "rate"), difference(pairing(after, before), "rate")
    assert there.difference == pytest.approx(-back.difference)
    assert (there.won, there.lost, there.p) == (back.lost, back.won, back.p)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=0.01)


# ── one test ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(st.text("01", min_size=1, max_size=8), st.text("01", min_size=1, max_size=8)), min_size=1))
def test_no_row_says_two_things(queries: list[tuple[str, str]]) -> None:
    """Whatever the figure: the interval holds the difference, and leaves out zero exactly when p is below 0.05."""
    before = {str(number): marks for number, (marks, _) in enumerate(queries)}
    after = {str(number): marks for number, (_, marks) in enumerate(queries)}
    for one in pairing(table(before), table(after)).differences:
        assert one.low <= one.difference <= one.high
        assert (one.p < 0.05) == (not one.low <= 0 <= one.high)


def test_one_small_difference_among_many_queries_that_agree_is_told_as_small() -> None:
    """Eleven of twelve queries are alike; it used to be -16 to +15 points."""
    before = {str(number): "11111111" for number in range(12)}
    one = difference(pairing(table(before), table(before | {"3": "11111110"})), "rate")
    assert one.difference == pytest.approx(-1 / 96)
    assert -0.08 < one.low < one.difference < one.high < 0.07


def test_the_same_figure_has_the_same_interval_everywhere() -> None:
    source = table(simulated(3, queries=40, size=8, rate=0.9, alike=0.3))
    report, (line, _) = analyse(source), compare(source, source).experiments
    assert report.overall.any == report.curve[-1].pass_at_k == line.any
    assert report.overall.first == report.candidates[0].rate == line.first
    one = report.curve[0].pass_at_k
    assert report.overall.rate == line.rate
    assert report.overall.rate is not None
    assert (one.low, one.high) == pytest.approx((report.overall.rate.low, report.overall.rate.high))
