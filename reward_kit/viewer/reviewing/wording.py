# SPDX-License-Identifier: Apache-2.0
"""What reviews found, in words: the same lines in the terminal, on the page and in a report."""

from __future__ import annotations

from collections.abc import Iterator

from reward_kit.analysis.present.wording import NOTHING, percent, score
from reward_kit.viewer.reviewing.figures import ReviewFigures

__all__ = ["figure_lines", "remarks"]

_FEW = 30
"""With fewer reviews in the rates the intervals are too wide to decide much."""


def figure_lines(found: ReviewFigures) -> list[tuple[str, str, str]]:
    """Each figure: its name, its value with the interval, and what it means."""
    lines = [("verdicts right, %", percent(found.right), f"of {_counted(found.in_rates)} of drawn records")]
    if found.verifier_rate is not None:
        lines += [
            ("precision, %", percent(found.precision), "of what the verifier passes, people pass"),
            ("recall, %", percent(found.recall), "of what people pass, the verifier passes"),
            ("kappa", _kappa(found), "agreement beyond chance: 1 is full, 0 is none"),
            ("people pass, %", percent(found.human_rate), f"the verifier passes {100 * found.verifier_rate:.1f}"),
        ]
    for pair in found.between:
        name = f"{pair.first} and {pair.second}"
        kappa = "" if pair.kappa is None else f", kappa {score(pair.kappa)}"
        records = f"{pair.common:,} common record{'' if pair.common == 1 else 's'}"
        lines.append((f"{name} agree, %", percent(pair.same), f"on {records}{kappa}"))
    return lines


def _kappa(found: ReviewFigures) -> str:
    return NOTHING if found.kappa is None else score(found.kappa)


def remarks(found: ReviewFigures) -> Iterator[str]:
    """What a reader should know before believing a figure."""
    if found.other_kind and found.verifier_rate is not None:
        said = "says" if found.other_kind == 1 else "say"
        yield (
            f"{_counted(found.other_kind)} {said} whether a score is right, because no threshold was shown beside it. "
            "That says nothing of pass or failure: not used. Review such records again with the threshold."
        )
    elif found.other_kind:
        yield f"{_reviews(found.other_kind)} of a pass or failure, and no threshold is given now: not used."
    if not found.in_rates and found.decisions:
        yield (
            "There are no rates: no clear review is of a record that was chosen at random. Draw some (`--draw "
            "random`, or `random` on the page's review bar)."
        )
    elif 0 < found.in_rates < _FEW:
        yield f"{_reviews(found.in_rates)} not much: look at the intervals, not at the values."
    if found.chosen.get("browsing"):
        yield f"{_reviews(found.chosen['browsing'])} of records that reviewers picked themselves: not used in rates."
    if found.outdated:
        were, are = ("was", "is") if found.mended == 1 else ("were", "are")
        mended = f" {found.mended:,} of them {were} wrong and {are} right now." if found.mended else ""
        yield (
            f"{_reviews(found.outdated)} of verdicts that have changed since: they count with what the reviewer said "
            f"of the answer.{mended} A reward that was improved with these cases looks better on them than on others: "
            "draw new ones before you trust it."
        )
    if found.not_used:
        yield f"{_reviews(found.not_used)} of answers that no longer exist or have changed: not used."


def _reviews(number: int) -> str:
    return f"{_counted(number)} {'is' if number == 1 else 'are'}"


def _counted(number: int) -> str:
    return f"{number:,} review{'' if number == 1 else 's'}"
