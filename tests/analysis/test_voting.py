# SPDX-License-Identifier: Apache-2.0
"""The majority vote: by meaning, by chance where tied, on a sample where there is much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reward_kit.analysis import load, majority_rate
from reward_kit.analysis.voting import collect_votes, is_mathematical
from tests.analysis.experiments import rows_of, simulated, table, table_of, write, write_run


def answered(split: str, *answers: tuple[str, bool | None], verifier: str | None = None) -> Any:
    rows = rows_of({"a": "".join({True: "1", False: "0", None: "."}[right] for _, right in answers)}, split=split)
    for row, (text, _) in zip(rows, answers, strict=True):
        row |= {"response": text, "verifier": verifier or split}
    return table_of(rows)


def groups(source: Any) -> list[tuple[int, float]]:
    (ballot,) = collect_votes(load(source)).ballots
    return sorted(zip(ballot.counts, ballot.correct, strict=True), reverse=True)


def test_answers_are_grouped_by_what_they_mean() -> None:
    source = answered(
        "math", (r"\boxed{1/2}", True), (r"So \boxed{0.5}", True), (r"\boxed{3}", False), ("The answer is 3.0", False),
        (r"\boxed{\frac{6}{2}}", False), (r"\boxed{7}", False),
    )  # fmt: skip
    assert groups(source) == [(3, 0.0), (2, 1.0), (1, 0.0)]


def test_elsewhere_texts_are_compared_without_space_and_reasoning() -> None:
    source = answered("chat", ("Yes,  it is.", True), ("<think>Hm.</think>Yes, it\nis.", True), ("It is.", True))
    source = source.set_column(source.column_names.index("ground_truth"), "ground_truth", [["yes"] * 3])
    assert groups(source) == [(2, 1.0), (1, 1.0)]


def test_tool_calls_are_the_answer_where_there_are_any() -> None:
    calls = ['[{"name":"f","arguments":{"a":1,"b":2}}]', '[{"name":"f","arguments":{"b":2,"a":1}}]', None]
    rows = rows_of({"a": "110"}, split="tool_calling", response="", tool_calls=lambda _, index, __: calls[index])
    assert groups(table_of(rows)) == [(2, 1.0), (1, 0.0)]


def test_an_answer_that_was_not_judged_has_no_vote() -> None:
    assert groups(answered("math", (r"\boxed{5}", None), (r"\boxed{5}", None), (r"\boxed{4}", True))) == [(1, 1.0)]


ANSWERS = (r"\boxed{2}", r"So it is \boxed{4/2}", r"\boxed{3}")


@pytest.mark.parametrize("split", ["aime", "math", None])
@pytest.mark.parametrize("verifier", ["math", "mine", None])
def test_the_vote_does_not_depend_on_the_door(tmp_path: Path, split: str | None, verifier: str | None) -> None:
    """A table of best-of-n names its verifier, a run directory does not: both used to be voted on by other rules."""
    rows = rows_of({"a": "001"}, split=split or "", response=lambda _, index, __: ANSWERS[index], verifier=verifier)
    run = write_run(
        tmp_path / "run", {"a": [0.0, 0.0, 1.0]}, assistant_response=lambda _, index: ANSWERS[index],
        ground_truth_for_eval="3", split=split,
    )  # fmt: skip
    for source in (table_of([row | {"ground_truth": "3"} for row in rows]), run):
        assert groups(source) == [(2, 0.0), (1, 1.0)]


@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        ("42", True), ("1/2", True), (r"\frac{3}{4}", True), ("x = 3", True), ("(0, 1)", True), (12, True),
        ("She has 3 apples and 4 more.\n#### 7", True), ("Paris", False), ("B", False), (None, False), (True, False),
        ("def f(x):\n    return 2", False), ('[{"name": "f", "arguments": {"a": 1}}]', False), ("", False),
        ("test $(cat out) = 42", False), ("assert f(2) == 4", False),
    ],
)  # fmt: skip
def test_answers_are_compared_as_mathematics_where_the_right_one_is(truth: object, expected: bool) -> None:
    assert is_mathematical(truth) is expected


def test_ties_are_drawn_by_lot() -> None:
    rate = majority_rate(table({"a": "10", "b": "110", "c": "000"}))
    assert rate is not None
    assert rate.value == pytest.approx((0.5 + 1 + 0) / 3)
    votes = collect_votes(load(table({"a": "10", "b": "110", "c": "000"})))
    at_three = votes.rate(3)
    assert at_three is not None
    assert (at_three.value, at_three.count) == (0.5, 2)


def test_without_responses_there_is_no_vote() -> None:
    bare = table({"a": "10"}).drop_columns(["response"])
    assert majority_rate(bare) is None
    assert majority_rate(table({"a": ".."})) is None


def test_a_large_experiment_is_sampled_the_same_way_each_time(tmp_path: Path) -> None:
    source = table(simulated(3, queries=400, size=4))
    path = write(tmp_path / "run.parquet", source, row_group_size=100)
    votes, again = collect_votes(load(path), limit=200), collect_votes(load(path), limit=200)
    assert votes.queries.tolist() == again.queries.tolist()
    assert (len(votes.queries), votes.whole) == (50, False)
    assert votes.ballots == again.ballots
    everything = collect_votes(load(path), limit=None)
    assert everything.whole
    assert len(everything.ballots) == 400
    sampled, whole = votes.rate(), everything.rate()
    assert sampled is not None
    assert whole is not None
    assert sampled.low <= whole.value <= sampled.high


def test_gigabytes_of_text_are_not_read_for_a_vote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_kit.analysis.texts._ENOUGH", 2_000)
    rows = rows_of(simulated(3, queries=60, size=2), response=lambda name, index, _: f"{name} {index} " * 20)
    experiment = load(write(tmp_path / "run.parquet", table_of(rows), row_group_size=7))
    votes = collect_votes(experiment)
    assert 0 < len(votes.queries) < 60
    assert not votes.whole
    read = experiment.texts.affordable("response")
    first = experiment.source_rows[experiment.starts[votes.queries]]
    assert all(any(start <= row and row + 2 <= end for start, end in merged(read)) for row in first)


def merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def test_a_vote_of_some_queries() -> None:
    votes = collect_votes(load(table({"a": "11", "b": "00", "c": "11"})))
    some = votes.rate(queries=np.array([0, 2]))
    assert some is not None
    assert (some.value, some.count) == (1.0, 2)


def test_a_hundred_different_answers_are_voted_on_at_once_or_not_at_all() -> None:
    rows = rows_of({"a": "1" + "0" * 99}, split="code", response=lambda _, index, __: f"answer {index}")
    votes = collect_votes(load(table_of(rows)))
    one, all_of_them = votes.rate(1), votes.rate(100)
    assert one is not None
    assert all_of_them is not None
    assert (one.value, all_of_them.value) == pytest.approx((0.01, 0.01))
    assert votes.rate(50) is None
