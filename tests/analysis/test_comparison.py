"""Two experiments on the same queries: what differs, how sure that is, and nothing said where nothing can be."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reward_kit.analysis import Difference, Pairing, compare, paired_bootstrap
from reward_kit.statistics import mcnemar, paired_difference_interval, pass_at_k
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
    assert (rate.won, rate.lost, rate.p) == (1, 2, 1.0)
    first = difference(found, "first")
    assert (first.queries, first.difference, first.won, first.lost) == (4, -0.25, 0, 1)


def test_the_same_id_in_another_split_is_another_query() -> None:
    found = pairing(table_of(rows_of({"a": "1"})), table_of(rows_of({"a": "1"}, split="code")))
    assert found.common == 0


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


# ── the bootstrap ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_agrees_with_resampling_query_by_query() -> None:
    """An implementation of its own: the queries and the two imagined ones are drawn one by one."""
    draw = random.Random(1)
    changes = [draw.choice([-0.5, -0.25, 0, 0, 0, 0.25, 0.5, 1]) for _ in range(60)]
    doubt = ((sum(change * change for change in changes) + 1) / (sum(change != 0 for change in changes) + 1)) ** 0.5
    pool = [*changes, doubt, -doubt]
    means = sorted(sum(draw.choices(pool, k=len(pool))) / len(pool) for _ in range(4_000))
    assert paired_bootstrap(np.array(changes)) == pytest.approx((means[100], means[3_900]), abs=0.012)


def test_it_agrees_with_the_formula_where_there_are_many_queries() -> None:
    changes = np.random.default_rng(0).choice([-1.0, 0.0, 0.0, 0.5, 1.0], 5_000)
    squares, differing = float(changes @ changes), int(np.count_nonzero(changes))
    formula = paired_difference_interval(changes.sum(), squares, samples=5_000, differing=differing)
    assert paired_bootstrap(changes) == pytest.approx(formula, abs=0.002)


def test_many_distinct_differences_are_no_trouble() -> None:
    changes = np.random.default_rng(0).uniform(-0.2, 0.3, 3_000)
    low, high = paired_bootstrap(changes)
    reach = 1.96 * changes.std() / 3_000**0.5
    assert (low, high) == pytest.approx((changes.mean() - reach, changes.mean() + reach), abs=0.002)


def test_it_holds_the_truth_at_least_as_often_as_it_says() -> None:
    """Few queries, few of which differ: where a plain bootstrap would say "no difference" and be sure of it."""
    rng, held, trials = np.random.default_rng(4), 0, 400
    for _ in range(trials):
        changes = rng.choice([-1.0, 0.0, 1.0], 30, p=[0.02, 0.93, 0.05])
        low, high = paired_bootstrap(changes, resamples=1_000)
        held += low <= 0.03 <= high
    assert held / trials >= 0.93


@pytest.mark.parametrize(("won", "lost"), [*product((0, 1, 5, 15), repeat=2)])
def test_single_answers_are_tested_by_mcnemar(won: int, lost: int) -> None:
    before = {f"w{i}": "0" for i in range(won)} | {f"l{i}": "1" for i in range(lost)} | {"t": "1"}
    after = {f"w{i}": "1" for i in range(won)} | {f"l{i}": "0" for i in range(lost)} | {"t": "1"}
    one = difference(pairing(table(before), table(after)), "rate")
    assert (one.won, one.lost, one.p, one.mid_p) == tuple(mcnemar(won, lost))
