# SPDX-License-Identifier: Apache-2.0
"""What reviews say of the verifier: the figures, the wrong verdicts, and cases made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.scoring.cases import read_cases
from reward_kit.storage.reviews import Review, Says, read_reviews, reviews_path
from reward_kit.utils.checksums import sealed_line
from reward_kit.viewer.reviewing.choosing import draw_next
from reward_kit.viewer.reviewing.deciding import Chosen, Tickets, make_decision
from reward_kit.viewer.reviewing.export import Exported, export_cases
from reward_kit.viewer.reviewing.figures import ReviewFigures, review_figures
from reward_kit.viewer.reviewing.records import JudgedRecords
from reward_kit.viewer.reviewing.wording import figure_lines, remarks
from tests.analysis.experiments import graded_rows, rows_of, table_of, write, write_run

QUERIES = {f"q{number}": "10" for number in range(10)}
WRONG = {("q0", 0), ("q1", 1), ("q2", 1)}
"""A pass that should fail, and two failures that should pass."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "one.parquet", table_of(rows_of(QUERIES, verification_reason="compared")))


def truth(key: tuple[str, int]) -> Says:
    return "wrong" if key in WRONG else "right"


def review_all(path: Path, reviewer: str = "ada") -> list[Review]:
    records = JudgedRecords(path)
    while (draw := draw_next(records, read_reviews(reviews_path(path)), reviewer, "random")) is not None:
        key = records.key(draw.row)
        make_decision(records, key, truth(key), "", reviewer, Chosen.by("random", draw))
    return read_reviews(reviews_path(path))


def browse(path: Path, key: tuple[str, int], says: Says, reviewer: str = "ada") -> Review:
    return make_decision(JudgedRecords(path), key, says, "a note", reviewer, Chosen())


def figures(path: Path) -> ReviewFigures:
    return review_figures(JudgedRecords(path), read_reviews(reviews_path(path)))


def test_reviewing_everything_gives_the_plain_shares(path: Path) -> None:
    before = path.read_bytes()
    review_all(path)
    found = figures(path)
    assert found.in_rates == found.records == found.population == 20
    for estimate, value in (
        (found.right, 17 / 20), (found.precision, 9 / 10), (found.recall, 9 / 11), (found.human_rate, 11 / 20),
        (found.kappa, (0.85 - 0.5) / 0.5),
    ):  # fmt: skip
        assert estimate is not None
        assert estimate.value == pytest.approx(value)
        assert estimate.low < value < estimate.high
    assert found.verifier_rate == 0.5
    assert {one.review.key for one in found.wrong} == WRONG
    assert path.read_bytes() == before


def test_what_was_picked_by_hand_is_listed_and_in_no_rate(path: Path) -> None:
    browse(path, ("q0", 0), "wrong")
    found = figures(path)
    assert (found.in_rates, found.right, found.precision) == (0, None, None)
    assert [one.review.key for one in found.wrong] == [("q0", 0)]
    assert any("no clear review is of a record" in remark for remark in remarks(found))


def test_a_second_thought_keeps_the_first_draw(path: Path) -> None:
    records = JudgedRecords(path)
    draw = draw_next(records, [], "ada", "random")
    assert draw is not None
    key = records.key(draw.row)
    make_decision(records, key, "wrong", "", "ada", Chosen.by("random", draw))
    browse(path, key, "right")
    found = figures(path)
    assert (found.decisions, found.in_rates, found.said["right"]) == (2, 1, 1)
    assert found.right is not None and found.right.value == 1
    assert found.chosen == {"random": 1, "disagreement": 0, "browsing": 0}


def test_a_record_that_was_browsed_and_then_drawn_counts_as_drawn(path: Path) -> None:
    records = JudgedRecords(path)
    draw = draw_next(records, [], "ada", "random")
    assert draw is not None
    key = records.key(draw.row)
    browse(path, key, "wrong")
    make_decision(records, key, "right", "", "ada", Chosen.by("random", draw))
    found = figures(path)
    assert (found.in_rates, found.chosen["random"], found.chosen["browsing"]) == (1, 1, 0)


def test_unclear_is_in_no_rate_and_told(path: Path) -> None:
    records = JudgedRecords(path)
    draw = draw_next(records, [], "ada", "random")
    assert draw is not None
    make_decision(records, records.key(draw.row), "unclear", "", "ada", Chosen.by("random", draw))
    found = figures(path)
    assert (found.unclear, found.in_rates) == (1, 0)


def rewrite(path: Path, **columns: object) -> None:
    """The same file with other verdicts or answers, as judging or generating again leaves it."""
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        if (row["query_id"], row["candidate_idx"]) in WRONG:
            row |= {name: value(row) if callable(value) else value for name, value in columns.items()}
    write(path, table_of(rows))


def test_verdicts_that_changed_count_with_what_was_said_of_the_answer(path: Path) -> None:
    review_all(path)
    rewrite(path, is_verified=lambda row: not row["is_verified"], score=lambda row: 1 - row["score"])
    found = figures(path)
    assert (found.outdated, found.mended, found.wrong) == (3, 3, ())
    assert found.right is not None and found.right.value == 1
    assert any("3 reviews are of verdicts that have changed since" in remark for remark in remarks(found))


def test_one_review_is_spoken_of_as_one(path: Path) -> None:
    make_decision(JudgedRecords(path), ("q0", 0), "wrong", "", "ada", Chosen("random", 1 / 20, 20))
    rewrite(path, is_verified=lambda row: not row["is_verified"], score=lambda row: 1 - row["score"])
    found = figures(path)
    told = " ".join([*remarks(found), *(note for _, _, note in figure_lines(found))])
    assert "1 of them was wrong and is right now." in told
    assert "1 review is not much" in told and "of 1 review of drawn records" in told


def test_another_answer_in_its_place_is_not_the_one_that_was_looked_at(path: Path) -> None:
    review_all(path)
    rewrite(path, response="something else")
    found = figures(path)
    assert (found.not_used, found.in_rates, found.wrong) == (3, 17, ())


def test_two_reviewers_are_compared_on_what_both_saw(path: Path) -> None:
    for number in range(10):
        browse(path, (f"q{number}", 0), "right" if number else "wrong")
        browse(path, (f"q{number}", 0), "right", reviewer="bob")
        browse(path, (f"q{number}", 1), "right", reviewer="bob")
    (pair,) = figures(path).between
    assert (pair.first, pair.second, pair.common) == ("ada", "bob", 10)
    assert pair.same is not None and pair.same.value == pytest.approx(0.9)
    assert any(line[0] == "ada and bob agree, %" for line in figure_lines(figures(path)))


def test_graded_scores_that_nobody_said_pass_have_a_share_of_right_verdicts(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"a": [0.3], "b": [0.8]}, assistant_response="x")
    records = JudgedRecords(run)
    for says in ("right", "wrong"):
        draw = draw_next(records, read_reviews(run / "reviews.jsonl"), "ada", "random")
        assert draw is not None
        make_decision(records, records.key(draw.row), "right" if says == "right" else "wrong", "", "ada",
                      Chosen.by("random", draw))  # fmt: skip
    found = figures(run)
    assert found.right is not None and found.right.value == 0.5
    assert (found.precision, found.verifier_rate) == (None, None)


def graded(tmp_path: Path) -> Path:
    """Scores over the whole range."""
    rows = graded_rows({f"q{n}": [n / 10] for n in range(10)}, response="x")
    return write(tmp_path / "run.parquet", table_of(rows))


def say_of_all(path: Path, reviewer: str, says: dict[str, Says], threshold: float | None) -> list[Review]:
    """What a reviewer says of all records, drawn one after the other; kept in memory."""
    records, said = JudgedRecords(path, pass_threshold=threshold), list[Review]()
    while (draw := draw_next(records, said, reviewer, "random")) is not None:
        (name, index), (verdict,) = records.key(draw.row), records.verdicts([draw.row])
        said.append(
            Review(
                id=name, response_index=index, says=says.get(name, "right"), note="", reviewer=reviewer, at="",
                score=verdict.score, passed=verdict.passed, reason="", results_digest=records.results_digest,
                answer_digest=verdict.answer_digest, chosen="random", probability=draw.probability, pool=draw.pool,
                threshold=records.threshold_shown(draw.row),
            )
        )  # fmt: skip
    return said


ANSWERS = st.dictionaries(st.sampled_from([f"q{n}" for n in range(10)]), st.sampled_from(["right", "wrong", "unclear"]))


@settings(max_examples=20)
@given(alone=ANSWERS, beside=ANSWERS, shown=st.sampled_from([0.25, 0.55]), now=st.sampled_from([0.25, 0.55, 0.95]))
def test_reviews_of_a_score_enter_no_rate_of_passes(
    alone: dict[str, Says], beside: dict[str, Says], shown: float, now: float
) -> None:
    """Whatever was said without a threshold, the rates are those of the reviews that were made beside one."""
    with TemporaryDirectory() as folder:
        path = graded(Path(folder))
        only = say_of_all(path, "ada", beside, shown)
        both = only + say_of_all(path, "bob", alone, None)
        records = JudgedRecords(path, pass_threshold=now)
        mixed, clear = review_figures(records, both), review_figures(records, only)
        cases = [export_cases(records, reviews, Path(folder) / "cases.jsonl") for reviews in (both, only)]
    for name in ("right", "precision", "recall", "kappa", "human_rate", "in_rates", "wrong"):
        assert getattr(mixed, name) == getattr(clear, name), name
    assert (mixed.other_kind, clear.other_kind) == (10, 0)
    assert any(line.startswith("10 reviews say whether a score is right") for line in remarks(mixed))
    assert [found.cases for found in cases] == [10 - sum(says == "unclear" for says in beside.values())] * 2


def test_the_threshold_that_was_shown_is_kept_with_the_review(tmp_path: Path) -> None:
    path = graded(tmp_path)
    for threshold, reviewer in ((0.55, "ada"), (None, "bob")):
        make_decision(JudgedRecords(path, pass_threshold=threshold), ("q3", 0), "right", "", reviewer, Chosen())
    reviews = read_reviews(reviews_path(path))
    assert [(one.reviewer, one.threshold, one.passed) for one in reviews] == [("ada", 0.55, False), ("bob", None, None)]
    told = export_cases(JudgedRecords(path), reviews, tmp_path / "cases.jsonl")
    assert told == Exported(1, 0, 0, 0), "that of one reviewer says what to expect"
    assert [case.threshold for case in read_cases(tmp_path / "cases.jsonl")] == [0.55]


def test_reviews_of_scores_alone_make_no_case(tmp_path: Path) -> None:
    path = graded(tmp_path)
    reviews = say_of_all(path, "bob", {"q3": "wrong"}, None)
    records = JudgedRecords(path, pass_threshold=0.9)
    found = review_figures(records, reviews)
    assert (found.right, found.precision, found.recall, found.kappa, found.wrong) == (None, None, None, None, ())
    assert export_cases(records, reviews, tmp_path / "c.jsonl") == Exported(0, 0, 0, 10)


def test_a_file_of_before_is_read(path: Path) -> None:
    browse(path, ("q0", 0), "right")
    file = reviews_path(path)
    line = orjson.loads(file.read_bytes())
    del line["threshold"], line["check"]
    file.write_bytes(sealed_line(orjson.dumps(line) + b"\n"))
    assert [one.threshold for one in read_reviews(file)] == [None]


def test_cases_hold_what_the_reward_is_handed(path: Path, tmp_path: Path) -> None:
    review_all(path)
    told = export_cases(JudgedRecords(path), read_reviews(reviews_path(path)), tmp_path / "cases.jsonl")
    assert told == Exported(20, 0, 0, 0)
    cases = {
        (case.rollout.sample.id, case.rollout.response_index): case for case in read_cases(tmp_path / "cases.jsonl")
    }
    assert {key for key, case in cases.items() if case.expect == "pass"} == {
        *((name, 0) for name in QUERIES if name != "q0"), ("q1", 1), ("q2", 1),
    }  # fmt: skip
    case = cases["q0", 0]
    assert [message.role for message in case.rollout.messages] == ["user", "assistant"]
    assert (case.rollout.sample.ground_truth, case.rollout.sample.split) == ("4", "math")
    assert case.was == {"score": 1.0, "passed": True, "reason": "compared"}


def test_only_the_wrong_ones_become_cases_where_that_is_asked_for(path: Path, tmp_path: Path) -> None:
    review_all(path)
    browse(path, ("q0", 0), "right", reviewer="bob")  # they disagree on it
    reviews = read_reviews(reviews_path(path))
    told = export_cases(JudgedRecords(path), reviews, tmp_path / "cases.jsonl", "wrong")
    assert told == Exported(2, 1, 0, 0)


def test_a_table_shows_from_which_score_on_answers_pass(tmp_path: Path) -> None:
    rows = rows_of({"a": "110"}, score=lambda name, index, verdict: (0.9, 0.5, 0.4)[index])
    rows += rows_of({"b": "10"}, split="code", score=lambda name, index, verdict: (1.0, 0.9)[index])
    path = write(tmp_path / "one.parquet", table_of(rows))
    records = JudgedRecords(path)
    assert (records.thresholds.of("math"), records.thresholds.of("code")) == (0.5, 1.0)
    browse(path, ("a", 1), "right")
    export_cases(records, read_reviews(reviews_path(path)), tmp_path / "cases.jsonl")
    assert read_cases(tmp_path / "cases.jsonl")[0].threshold == 0.5


def test_a_ticket_binds_the_record_to_its_draw() -> None:
    tickets, chosen = Tickets(), Chosen("random", 0.25, 4)
    ticket = tickets.issue("run", "ada", ("q0", 0), chosen)
    assert tickets.read(ticket, "run", "ada", ("q0", 0)) == chosen
    assert tickets.read(ticket, "run", "ada", ("q1", 0)) is None
    assert tickets.read(ticket, "run", "bob", ("q0", 0)) is None
    assert tickets.read(ticket, "other", "ada", ("q0", 0)) is None
    assert Tickets().read(ticket, "run", "ada", ("q0", 0)) is None
    for broken in ("", ".", "é", ticket[:-3], "A" + ticket, ticket.replace(".", "")):
        assert tickets.read(broken, "run", "ada", ("q0", 0)) is None, broken


def test_a_damaged_digest_is_never_taken_for_the_same_answer(path: Path) -> None:
    review = browse(path, ("q3", 0), "right")
    other = replace(review, answer_digest="another")
    found = review_figures(JudgedRecords(path), [other])
    assert found.not_used == 1
