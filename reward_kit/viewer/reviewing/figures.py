# SPDX-License-Identifier: Apache-2.0
"""What reviews say of the verifier: precision, recall, agreement; and which verdicts are wrong.

    a person says `right` of a pass, or `wrong` of a failure   ──▶   the answer passes, by that person
    held against the verdict that stands in the results now    ──▶   one of four cells, with the draw's weight

Where no threshold was shown beside a graded score, a person said whether the *score* is right, and nothing of pass or
failure. Such reviews count only where still nobody says which scores pass, and only in the share of right verdicts.

So a review keeps its worth when the reward is mended and the run judged again: it is about the answer, and the answer
is the same. Where the answer is another, the review is not used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, NamedTuple

from reward_kit.statistics import Estimate
from reward_kit.statistics.weighted import DrawnItem, agreement_beyond_chance, draw_weights, weighted_rate
from reward_kit.storage.reviews import Review, last_words
from reward_kit.viewer.reviewing.records import JudgedRecords, PresentVerdict

__all__ = ["ReviewFigures", "ReviewedRecord", "TwoReviewers", "review_figures"]


@dataclass(frozen=True, slots=True)
class ReviewedRecord:
    """A reviewer's last word on a record, beside what the results say now."""

    review: Review
    row: int
    now: PresentVerdict
    outdated: bool
    """The verdict has changed since."""

    @property
    def is_right(self) -> bool | None:
        """Whether the present verdict is right, by the reviewer; None where that is not known."""
        if self.is_of_other_kind or self.review.says == "unclear":
            return None
        if self.now.passed is not None:
            return self.review.human_passes is self.now.passed
        return None if self.outdated or self.now.score is None else self.review.says == "right"

    @property
    def is_of_other_kind(self) -> bool:
        """Whether it was said of a score, and the verdict is a pass or failure now; or the other way round."""
        return (self.review.passed is None) is not (self.now.passed is None)


@dataclass(frozen=True, slots=True)
class TwoReviewers:
    """How far two reviewers agree on the records that both looked at."""

    first: str
    second: str
    common: int
    same: Estimate | None
    """The share of records of which both say the same."""
    kappa: Estimate | None


@dataclass(frozen=True, slots=True)
class ReviewFigures:
    """Everything that reviews say."""

    decisions: int
    records: int
    """Different records that were looked at."""
    reviewers: tuple[str, ...]
    said: dict[str, int]
    """Last words by what they say: right, wrong, unclear."""
    chosen: dict[str, int]
    """Records by how they were chosen: random, disagreement, browsing."""
    in_rates: int
    """Last words that the rates rest on: drawn by lot, clear, and of the answer that is there."""
    population: int
    """Judged records in all."""
    right: Estimate | None
    """The share of verdicts that are right."""
    precision: Estimate | None
    """Of answers that the verifier passes, those that people pass, too."""
    recall: Estimate | None
    """Of answers that people pass, those that the verifier passes, too."""
    kappa: Estimate | None
    """Agreement of people and verifier beyond chance (Cohen)."""
    human_rate: Estimate | None
    """The share of answers that people would pass."""
    verifier_rate: float | None
    """The share of answers that the verifier passes, of all that it judged."""
    unclear: int
    outdated: int
    """Last words on verdicts that have changed since. They count with what was said of the answer."""
    mended: int
    """Of these, verdicts that were wrong and are right now."""
    not_used: int
    """Last words on answers that are gone, or are others now."""
    other_kind: int
    """Last words on a score without a threshold where there is one now, or the other way round: in no rate."""
    between: tuple[TwoReviewers, ...]
    wrong: tuple[ReviewedRecord, ...]
    """The verdicts that are wrong now, by the last word of some reviewer; newest first."""

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values, for JSON."""
        plain = asdict(self)
        plain["wrong"] = [
            {**asdict(one.review), "score_now": one.now.score, "passed_now": one.now.passed} for one in self.wrong
        ]
        return plain


class _Drawn(NamedTuple):
    record: ReviewedRecord
    weight: float


def review_figures(records: JudgedRecords, reviews: Sequence[Review]) -> ReviewFigures:
    """Hold what was said against the results as they are now."""
    last = last_words(reviews)
    present = _present(records, list(last.values()))
    weights = _weights(records, reviews)
    drawn = [_Drawn(record, weights[word]) for word, record in present.items() if word in weights and _is_clear(record)]
    judged = int(records.judged.sum())
    passes = records.answers.has_passes
    return ReviewFigures(
        decisions=len(reviews),
        records=len({review.key for review in last.values()}),
        reviewers=tuple(sorted({review.reviewer for review in last.values()})),
        said={says: sum(review.says == says for review in last.values()) for says in ("right", "wrong", "unclear")},
        chosen=_chosen(reviews),
        in_rates=len(drawn),
        population=judged,
        **_rates(records, drawn),
        verifier_rate=float(records.answers.verified.sum()) / judged if passes and judged else None,
        unclear=sum(review.says == "unclear" for review in last.values()),
        outdated=sum(record.outdated for record in present.values()),
        mended=sum(record.outdated and record.review.says == "wrong" and bool(record.is_right)
                   for record in present.values()),
        not_used=len(last) - len(present),
        other_kind=sum(record.is_of_other_kind for record in present.values()),
        between=tuple(_between(list(present.values()))),
        wrong=tuple(sorted((one for one in present.values() if one.is_right is False),
                           key=lambda one: one.review.at, reverse=True)),
    )  # fmt: skip


def _is_clear(record: ReviewedRecord) -> bool:
    return record.is_right is not None


def _chosen(reviews: Sequence[Review]) -> dict[str, int]:
    """How each record was chosen: as it was drawn, where it was; later decisions on it do not change that."""
    found: dict[tuple[str, str, int], str] = {}
    for review in reviews:
        place = (review.reviewer, *review.key)
        if place not in found or found[place] == "browsing":
            found[place] = review.chosen
    counts = Counter(found.values())
    return {choice: counts[choice] for choice in ("random", "disagreement", "browsing")}


def _present(records: JudgedRecords, last: Sequence[Review]) -> dict[tuple[str, str, int], ReviewedRecord]:
    """Each last word beside the verdict that stands there now, where its answer is still there."""
    rows = records.rows([review.key for review in last])
    pairs = [(review, row) for review, row in zip(last, rows, strict=True) if row is not None and records.judged[row]]
    verdicts = records.verdicts([row for _, row in pairs])
    return {
        (review.reviewer, *review.key): ReviewedRecord(review, row, now, _is_outdated(review, now))
        for (review, row), now in zip(pairs, verdicts, strict=True)
        if review.answer_digest == now.answer_digest
    }


def _is_outdated(review: Review, now: PresentVerdict) -> bool:
    if review.passed is None or now.passed is None:
        return review.score != now.score
    return review.passed is not now.passed


def _weights(records: JudgedRecords, reviews: Sequence[Review]) -> dict[tuple[str, str, int], float]:
    """The weight of each record that a reviewer drew, by the first time it was drawn."""
    population = int(records.judged.sum())
    drawn: defaultdict[str, dict[tuple[str, int], tuple[float, int]]] = defaultdict(dict)
    for review in reviews:
        if review.probability is not None and review.pool is not None:
            drawn[review.reviewer].setdefault(review.key, (review.probability, review.pool))
    return {
        (reviewer, *key): weight
        for reviewer, draws in drawn.items()
        for key, weight in zip(draws, draw_weights(list(draws.values()), population), strict=True)
    }


def _rates(records: JudgedRecords, drawn: Sequence[_Drawn]) -> dict[str, Any]:
    clusters = [int(records.answers.query_of_row[one.record.row]) for one in drawn]
    right = weighted_rate(
        (cluster, one.weight, bool(one.record.is_right)) for cluster, one in zip(clusters, drawn, strict=True)
    )
    items = [
        DrawnItem(cluster, one.weight, passed, passed is bool(one.record.is_right))
        for cluster, one in zip(clusters, drawn, strict=True)
        if (passed := one.record.now.passed) is not None
    ]
    return {
        "right": right,
        "precision": weighted_rate((item.cluster, item.weight, item.second) for item in items if item.first),
        "recall": weighted_rate((item.cluster, item.weight, item.first) for item in items if item.second),
        "kappa": agreement_beyond_chance(items),
        "human_rate": weighted_rate((item.cluster, item.weight, item.second) for item in items),
    }


def _between(present: Sequence[ReviewedRecord]) -> Iterator[TwoReviewers]:
    """Each pair of reviewers on their common records, however these were chosen: each counts once."""
    by_reviewer: defaultdict[str, dict[int, bool]] = defaultdict(dict)
    for one in present:
        if (right := one.is_right) is not None:
            passed = one.now.passed
            by_reviewer[one.review.reviewer][one.row] = right if passed is None else passed is right
    for first, second in combinations(sorted(by_reviewer), 2):
        mine, theirs = by_reviewer[first], by_reviewer[second]
        common = sorted(mine.keys() & theirs.keys())
        if common:
            same = weighted_rate((row, 1.0, mine[row] is theirs[row]) for row in common)
            kappa = agreement_beyond_chance(DrawnItem(row, 1.0, mine[row], theirs[row]) for row in common)
            yield TwoReviewers(first, second, len(common), same, kappa)
