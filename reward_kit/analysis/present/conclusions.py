# SPDX-License-Identifier: Apache-2.0
"""What was found, in words: a sentence with its uncertainty, and what a reader should know before believing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from reward_kit.analysis.coverage import Coverage
from reward_kit.analysis.figures import RunFigures
from reward_kit.analysis.present.report_tables import figure_name, is_share, optimal_sentence
from reward_kit.analysis.present.wording import (
    amount,
    count,
    difference_parts,
    percent_range,
    plain_score,
    probability,
    score,
    share_range,
    signed_score,
)
from reward_kit.analysis.report import Report
from reward_kit.analysis.run_comparison import Difference, Pairing, RunComparison
from reward_kit.analysis.same_samples import SharedSamples
from reward_kit.statistics import Estimate

__all__ = ["comparison_conclusion", "report_conclusion", "rewards_in_words", "samples_in_words"]

_SURE = 0.05
"""A p below it: the interval leaves out zero, and one of the two is called better."""
_FEW_PAIRS = 3
_FEW_NAMES = 3
_TINY = 1e-4
_ENDS = "all wrong or all right"
_MANY = 0.01
"""The share of answers that were cut off, or have no verdict, from which on a reader is warned."""


def report_conclusion(report: Report) -> list[str]:
    """What one run found; the first sentence is the finding, the others say what it depends on."""
    return [_finding(report), *_more(report), *_warnings(report.coverage)]


def _finding(report: Report) -> str:
    overall, covered = report.overall, report.coverage
    if overall.mean is None:
        return f"Nothing was judged: all {count(covered.records)} answers failed. See what follows for why."
    rested = f"{_queries(overall)}, {_answers(covered)}."
    if report.score_spread is None and overall.rate is not None:
        return f"{_share_of(overall.rate)} of the answers are right: {rested}{_if_judged(overall)}"
    passing = "" if overall.rate is None else f" {_share_of(overall.rate)} of the answers pass.{_if_judged(overall)}"
    return f"The mean score is {_scored(overall.mean)}: {rested}{passing}"


def _queries(overall: RunFigures) -> str:
    judged = overall.queries if overall.mean is None else overall.mean.count
    whole = _plural(overall.queries, "query", "queries")
    return whole if judged == overall.queries else f"{count(judged)} of {whole}"


def _if_judged(overall: RunFigures) -> str:
    """What the share would be of all answers, where some have no verdict."""
    bounds = overall.bounds.get("rate")
    if bounds is None:
        return ""
    return f" Of all {count(overall.records)} it would be {share_range(*bounds)}, were those without a verdict {_ENDS}."


def _share_of(rate: Estimate) -> str:
    return f"{100 * rate.value:.1f} % (95 % interval {percent_range(rate, ' to ')} %)"


def _scored(mean: Estimate) -> str:
    if not isfinite(mean.low):
        return score(mean)
    return f"{plain_score(mean.value)} (95 % interval {plain_score(mean.low)} to {plain_score(mean.high)})"


def _answers(covered: Coverage) -> str:
    fewest, most = covered.candidates
    return f"{_plural(most, 'answer', 'answers')} each" if fewest == most else f"{fewest} to {most} answers each"


def _plural(number: int, one: str, several: str) -> str:
    return f"{count(number)} {one if number == 1 else several}"


def _more(report: Report) -> Iterator[str]:
    if len(report.curve) > 1:
        last = report.curve[-1]
        rests, whole = last.pass_at_k.count, report.overall.queries
        told = f"At least one of {last.k} answers is right for {_share_of(last.pass_at_k)}"
        if last.bounds is None or rests == whole:
            yield f"{told} of the queries."
        else:
            yield (
                f"{told} of the {_plural(rests, 'query', 'queries')} that have so many verdicts. Of all {count(whole)} "
                f"it would be {share_range(*last.bounds)}, were the answers that are missing {_ENDS}."
            )
        yield optimal_sentence(report.optimal)


def _warnings(covered: Coverage) -> Iterator[str]:
    unjudged = covered.records - covered.judged
    if unjudged >= _MANY * covered.records and covered.judged:
        kinds = ", ".join(f"{kind} {count(times)}" for kind, times in list(covered.failures.items())[:3])
        yield f"{_of(unjudged, covered.records)} answers have no verdict ({kinds}); they are not counted."
    cut = covered.finish_reasons.get("length", 0)
    if cut >= _MANY * covered.records and cut:
        yield f"{_of(cut, covered.records)} answers were cut off at the limit of tokens: raise max_tokens."


def _of(part: int, whole: int) -> str:
    return f"{count(part)} of {count(whole)} ({100 * part / whole:.1f} %)"


# ── two runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def comparison_conclusion(comparison: RunComparison) -> list[str]:
    """What was not compared and why; then which is better, by how much, and how sure that is."""
    pairings = comparison.pairings
    if len(pairings) > _FEW_PAIRS:
        return [*_left_out_of_many(pairings), _many(comparison)]
    several = len(pairings) > 1
    about_samples = [sentence for pairing in pairings for sentence in samples_in_words(pairing, several=several)]
    return [*about_samples, *(_paired(pairing) for pairing in pairings if _paired_at_all(pairing))]


def samples_in_words(pairing: Pairing, *, several: bool = False) -> list[str]:
    """What is to be known of the samples whose id both have; nothing where all of them are the same."""
    return list(_about_samples(pairing, f"{pairing.baseline} and {pairing.other}" if several else "both"))


def _about_samples(pairing: Pairing, both: str) -> Iterator[str]:
    samples = pairing.samples
    if samples.changed:
        are = "is" if samples.same == 1 else "are"
        yield (
            f"{count(samples.same)} of {_plural(samples.shared, 'sample', 'samples')} {are} the same in {both}; "
            f"{_changed(samples)}."
        )
    if samples.unchecked:
        yield (
            f"Of {_plural(samples.unchecked, 'sample', 'samples')} only the id could be compared: one of the files "
            "tells neither question nor ground truth, so nothing shows that they are the same."
        )
    if samples.asked_differently:
        were = "was" if samples.asked_differently == 1 else "were"
        yield (
            f"{count(samples.asked_differently)} of the {_plural(samples.same, 'sample', 'samples')} that are the same "
            f"{were} asked with another system prompt or with other tools."
        )
    if samples.columns_differ:
        yield (
            f"{count(samples.columns_differ)} of the {_plural(samples.same, 'sample', 'samples')} that are the same "
            f"differ in other columns ({_named(samples)}), which may describe the answers."
        )


def _changed(samples: SharedSamples) -> str:
    number = sum(samples.changed.values())
    kinds = ", ".join(f"{count(times)} {kind}" for kind, times in samples.changed.items())
    other = next(iter(samples.changed)) if len(samples.changed) == 1 else f"differ ({kinds})"
    other = other.replace("differ", "differs" if number == 1 else "differ")
    where = f" (they differ in {_named(samples)})" if "other columns" in samples.changed else ""
    has, left = ("has", "is") if number == 1 else ("have", "are")
    rest = "" if samples.same else ", so nothing can be compared"
    return f"{count(number)} {has} the same id but {other}{where} and {left} left out{rest}"


def _named(samples: SharedSamples) -> str:
    return ", ".join(map(repr, samples.columns))


def _left_out_of_many(pairings: Sequence[Pairing]) -> Iterator[str]:
    changed = [pairing for pairing in pairings if pairing.samples.changed]
    if changed:
        named = "; ".join(f"{pairing.other} ({_changed(pairing.samples)})" for pairing in changed)
        yield f"Not all samples are the same as in {pairings[0].baseline}: {named}."
    unchecked = [pairing.other for pairing in pairings if pairing.samples.unchecked]
    if unchecked:
        yield f"Of {', '.join(unchecked)} only ids could be compared, so nothing shows that the samples are the same."
    asked = [pairing.other for pairing in pairings if pairing.samples.asked_differently]
    if asked:
        yield f"With another system prompt or other tools than {pairings[0].baseline}: {', '.join(asked)}."


def _paired_at_all(pairing: Pairing) -> bool:
    """Whether something is left to be said, after it was said that no sample is the same."""
    return bool(pairing.samples.same or not pairing.samples.changed)


def rewards_in_words(pairing: Pairing) -> str:
    """That the two were judged by different rewards, and what that means; nothing where they were not."""
    names = pairing.judged_differently
    if not names:
        return ""
    shown = ", ".join(names[:_FEW_NAMES]) + (" …" if len(names) > _FEW_NAMES else "")
    return (
        f"{pairing.other} and {pairing.baseline} were judged by different rewards (they differ in: {shown}), so their "
        "figures do not say whose answers are to be preferred"
    )


def _many(comparison: RunComparison) -> str:
    baseline = comparison.pairings[0].baseline
    kinds: dict[str, list[tuple[float, str]]] = {}
    for pairing in comparison.pairings:
        found = pairing.difference(pairing.main_figure)
        if found is None:
            kinds.setdefault("without a query in common", []).append((0.0, pairing.other))
            continue
        better = f"{'better' if found.difference > 0 else 'worse'} than {baseline}"
        kind = better if found.p < _SURE else f"no clear difference from {baseline}"
        if pairing.judged_differently:
            kind = f"judged by another reward than {baseline}, so neither is to be preferred by its figures"
        kinds.setdefault(kind, []).append((-found.difference, f"{pairing.other} ({_change(found)})"))
    phrases = [f"{kind}: {', '.join(name for _, name in sorted(those))}" for kind, those in sorted(kinds.items())]
    sentence = "; ".join(phrases)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _change(found: Difference) -> str:
    if is_share(found.figure):
        return f"{difference_parts(found.difference, found.low, found.high)[0]} points"
    return signed_score(found.difference)


def _paired(pairing: Pairing) -> str:
    found = pairing.difference(pairing.main_figure)
    if found is None:
        return (
            f"{pairing.other} and {pairing.baseline} cannot be compared: they have no judged query in common (same "
            "split and id)."
        )
    change = _by_how_much(found)
    rested = f"on {_plural(found.queries, 'common query', 'common queries')}"
    if unjudged := pairing.samples.same - found.queries:
        rested += f" ({count(unjudged)} more without a verdict in one of them)"
    if pairing.judged_differently:
        return f"{rewards_in_words(pairing)}: {change}, {rested}."
    if found.p >= _SURE:
        same = (
            f"No difference was seen between {pairing.other} and {pairing.baseline}"
            if not (found.won or found.lost)
            else f"It is not clear whether {pairing.other} or {pairing.baseline} is better"
        )
        return f"{same}: {change}, {rested}. {_resolution(found)}"
    better = "better" if found.difference > 0 else "worse"
    return f"{pairing.other} is {better} than {pairing.baseline}: {change}, {rested}."


def _by_how_much(found: Difference) -> str:
    if is_share(found.figure):
        before, after = (f"{100 * value:.1f} %" for value in (found.baseline, found.other))
        change, ends = difference_parts(found.difference, found.low, found.high)
        change += " points"
    else:
        before, after = plain_score(found.baseline), plain_score(found.other)
        change, ends = signed_score(found.difference), (signed_score(found.low), signed_score(found.high))
    what = figure_name(found.figure).removesuffix(", %")
    chance = "p < 0.0001" if found.p < _TINY else f"p = {probability(found.p)}"
    return f"{what} {after} against {before}, {change} (95 % interval {' to '.join(ends)}), {chance}"


def _resolution(found: Difference) -> str:
    reach = (found.high - found.low) / 2
    least = f"{100 * reach:.1f} points" if is_share(found.figure) else amount(reach)
    return f"To see a difference of less than about {least}, more queries are needed."
