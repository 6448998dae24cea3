# SPDX-License-Identifier: Apache-2.0
"""Reviews as test cases of a reward: each clear decision, with all that the reward is handed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from reward_kit.scoring.cases import Case, case_of, is_of_reviews, write_cases
from reward_kit.storage.new_files import check_new_file
from reward_kit.storage.reviews import Review, last_words
from reward_kit.viewer.reviewing.records import JudgedRecords

__all__ = ["Exported", "export_cases"]

Only = Literal["all", "wrong"]


class Exported(NamedTuple):
    """What was written, and what was not."""

    cases: int
    disputed: int
    """Records that reviewers disagree on: nobody knows what to expect."""
    not_usable: int
    """Decisions on answers that are gone or others now."""
    of_scores: int
    """Decisions on scores that were shown without a threshold: they say nothing of pass or failure."""


def export_cases(records: JudgedRecords, reviews: Sequence[Review], path: Path, only: Only = "all") -> Exported:
    """Write the records that were reviewed, or those whose verdict was called wrong, as cases.

    The file may be an earlier one of these, and no other: see `check_new_file`.
    """
    check_new_file(path, "--export", "a file of cases", is_of_reviews, beside_a_run=False)
    by_record: dict[tuple[str, int], list[Review]] = {}
    words = [review for review in last_words(reviews).values() if only == "all" or review.says == "wrong"]
    for review in last_words(reviews).values():
        if review.human_passes is not None:
            by_record.setdefault(review.key, []).append(review)
    chosen = {key: said for key, said in by_record.items() if only == "all" or any(one.says == "wrong" for one in said)}
    disputed = {key for key, said in chosen.items() if len({one.human_passes for one in said}) > 1}
    usable = [key for key in _with_their_answers(records, chosen) if key not in disputed]
    rollouts = records.rollouts(usable)
    cases: list[Case] = []
    for key in usable:
        review = chosen[key][-1]
        rollout = rollouts.get(key)
        if rollout is None:
            continue
        cases.append(
            case_of(
                rollout,
                "pass" if review.human_passes else "fail",
                threshold=_threshold(records, review, rollout.sample.split),
                note=review.note,
                was={"score": review.score, "passed": review.passed, "reason": review.reason},
                reviewer=review.reviewer,
            )
        )
    write_cases(path, cases)
    of_scores = {review.key for review in words if review.says != "unclear"} - chosen.keys()
    return Exported(len(cases), len(disputed), len(chosen) - len(disputed) - len(cases), len(of_scores))


def _with_their_answers(records: JudgedRecords, chosen: dict[tuple[str, int], list[Review]]) -> list[tuple[str, int]]:
    """Those whose answer is still the one that was looked at."""
    keys = list(chosen)
    found = [(key, row) for key, row in zip(keys, records.rows(keys), strict=True) if row is not None]
    verdicts = records.verdicts([row for _, row in found])
    return [
        key for (key, _), now in zip(found, verdicts, strict=True) if now.answer_digest == chosen[key][-1].answer_digest
    ]


def _threshold(records: JudgedRecords, review: Review, split: str | None) -> float | None:
    """The score from which on an answer passes, where it is not the usual one: that of now, else the reviewer's."""
    has_one = records.answers.has_passes or review.threshold is None
    limit = records.thresholds.of(split) if has_one else review.threshold
    return None if limit == 1.0 else limit
