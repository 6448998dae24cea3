# SPDX-License-Identifier: Apache-2.0
"""A report as tables, in the order a person asks: what is it, how good is it, how should I choose, what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reward_kit.analysis.figures import RunFigures
from reward_kit.analysis.hardest import QueryLine
from reward_kit.analysis.optimal_n import OptimalN
from reward_kit.analysis.present.episode_tables import episode_tables
from reward_kit.analysis.present.text_table import TextTable
from reward_kit.analysis.present.wording import (
    NOTHING,
    amount,
    count,
    difference,
    percent,
    plain_score,
    probability,
    score,
    score_difference,
)
from reward_kit.analysis.report import NO_PASSES, Report
from reward_kit.analysis.run_comparison import Difference, Pairing, RunComparison, SideBySide
from reward_kit.analysis.scores import Bin, ScoreSpread
from reward_kit.analysis.texts import one_line
from reward_kit.statistics import Estimate, Interval

__all__ = [
    "CURVE_TITLE",
    "comparison_tables",
    "curve_population",
    "figure_name",
    "is_share",
    "optimal_sentence",
    "report_tables",
]


CURVE_TITLE = "What k candidates are worth"
"""The table a drawing of the curve belongs under."""

_LONG = 200
"""Metadata longer than this, or with parts of its own (a whole configuration, say), is named, not shown."""
_FIRST_KEYS = (
    "model", "generated_at", "num_candidates", "temperature", "splits", "total_records", "config_file", "notes",
)  # fmt: skip
_MEASURES = {
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "answer tokens",
    "latency_ms": "latency, ms",
    "cost": "cost",
}
_UNITS = {"cost": ("per cost", 1.0), "completion_tokens": ("per M tokens", 1e6), "candidates": ("per answer", 1.0)}
"""How what is bought for a unit of cost is worded, and how many of the unit that means."""
_CANDIDATES_SHOWN = 16
_PARTS_SHOWN = 20
_COLUMNS_SHOWN = 4
_FEW_KS = 8
_WERE = "were all answers without a verdict wrong, or all right"
_BAR = 24
"""Characters of the longest bar."""


def report_tables(report: Report, *, full: bool = True) -> list[TextTable]:
    """The tables of a report, what was found before what it was found in; empty ones are left out.

    Without `full`, those that a reader needs to judge the result.
    """
    passes = report.overall.rate is not None
    tables = [_scores(report), *episode_tables(report.episodes, full=full), _picking(report), _curve(report, full=full)]
    tables += [_named_counts("Not judged", report.coverage.failures, report.coverage.records)]
    if full:
        tables += [
            _choosing(report),
            _candidates(report),
            _metrics(report),
            _spread(report.score_spread),
            _named_counts("How answers ended", report.coverage.finish_reasons, report.coverage.records),
            _spending(report),
            _queries("Hardest queries", report.hardest, _never(report), passes=passes),
            _queries("Most contested queries", report.contested, passes=passes),
            _coverage(report),
            _metadata(report.metadata),
        ]
    elif report.overall.metrics or report.score_spread is not None:
        tables[1:1] = [_metrics(report), _spread(report.score_spread)]
    return [table for table in tables if table.rows]


def _metadata(metadata: Mapping[str, str]) -> TextTable:
    given = {key for key, value in metadata.items() if value}
    keys = [key for key in _FIRST_KEYS if key in given] + sorted(given - {*_FIRST_KEYS})
    plain = [key for key in keys if key in _FIRST_KEYS or _is_plain(metadata[key])]
    rows = [(key, one_line(metadata[key], _LONG)) for key in plain]
    if rest := [key for key in keys if key not in plain]:
        rows.append(("also noted", f"{', '.join(rest)} (--format json shows them)"))
    return TextTable("", (), tuple(rows), prose=(1,))


def _is_plain(value: str) -> bool:
    return len(value) <= _LONG and not value.startswith(("{", "["))


def _coverage(report: Report) -> TextTable:
    covered = report.coverage
    fewest, most = covered.candidates
    rows = [
        ("records", f"{count(covered.records)} of {count(covered.queries)} queries"),
        ("candidates", str(most) if fewest == most else f"{fewest} to {most} a query"),
        ("judged", f"{count(covered.judged)} ({_share(covered.judged, covered.records)})"),
        (
            "complete queries",
            f"{count(covered.complete_queries)} ({_share(covered.complete_queries, covered.queries)})",
        ),
    ]
    if report.overall.cost is not None:
        rows.append(("cost", amount(report.overall.cost)))
    return TextTable("", (), tuple(rows))


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else NOTHING


def _scores(report: Report) -> TextTable:
    """How good the answers are, part by part."""
    overall = report.overall
    shows = {
        "mean score": report.score_spread is not None or overall.rate is None,
        "verified, %": overall.rate is not None,
        "of all, %": "rate" in overall.bounds,
        "cut off": bool(overall.truncated),
        "cost": overall.cost is not None,
    }
    headers = (report.grouped_by, "queries", "answers", "judged", *(name for name, shown in shows.items() if shown))
    rows = tuple(_score_row(figures, shows) for figures in (*report.splits[:_PARTS_SHOWN], overall))
    left = len(report.splits) - _PARTS_SHOWN
    note = "In parentheses: 95 % intervals over queries, since the answers to one query are not independent."
    if shows["of all, %"]:
        note += f" Of all: {_WERE}."
    more = f" {left} more are in --format json." if left > 0 else ""
    why = f" {NO_PASSES}" if NO_PASSES in report.notes else ""
    rests = _resting([(one.queries, [one.mean, one.rate]) for one in (*report.splits[:_PARTS_SHOWN], overall)])
    title = "Mean score" if overall.rate is None else "Verification rate"
    return TextTable(title, headers, rows, note + rests + more + why)


def _range(bounds: Interval | None) -> str:
    return NOTHING if bounds is None else f"{100 * bounds.low:.1f}–{100 * bounds.high:.1f}"


def _resting(figures: Iterable[tuple[int, Sequence[Estimate | None]]]) -> str:
    """What `57.1 (52–61) of 98` means, where some figure says so."""
    partly = any(one is not None and one.count != queries for queries, found in figures for one in found)
    return " `of` a number: the figure rests on so many queries." if partly else ""


def _score_row(figures: RunFigures, shows: Mapping[str, bool]) -> tuple[str, ...]:
    cells = {
        "mean score": score(figures.mean, figures.queries),
        "verified, %": percent(figures.rate, figures.queries),
        "of all, %": _range(figures.bounds.get("rate")),
        "cut off": count(figures.truncated),
        "cost": NOTHING if figures.cost is None else amount(figures.cost),
    }
    numbers = map(count, (figures.queries, figures.records, figures.judged))
    return (figures.split, *numbers, *(cell for name, cell in cells.items() if shows[name]))


def _metrics(report: Report) -> TextTable:
    parts = (*report.splits[:_COLUMNS_SHOWN], report.overall)
    rows = tuple(
        (name, *(score(part.metrics.get(name), part.queries) for part in parts)) for name in report.overall.metrics
    )
    rests = _resting([(part.queries, list(part.metrics.values())) for part in parts]).strip()
    return TextTable("Metrics", ("mean of", *(part.split for part in parts)), rows, rests)


def _spread(spread: ScoreSpread | None) -> TextTable:
    """How graded scores are spread, as a table that is a picture, too."""
    if spread is None:
        return TextTable("", (), ())
    most = max(held.count for held in spread.bins)
    rows = tuple(
        (_bin_name(held), count(held.count), _share(held.count, spread.count), "█" * round(_BAR * held.count / most))
        for held in spread.bins
    )
    note = (
        f"Median {amount(spread.median)}, middle half {amount(spread.p25)} to {amount(spread.p75)}, "
        f"standard deviation {amount(spread.deviation)}."
    )
    return TextTable("How scores are spread", ("score", "answers", "share", ""), rows, note, prose=(3,))


def _bin_name(held: Bin) -> str:
    return amount(held.low) if held.low == held.high else f"{amount(held.low)} to {amount(held.high)}"


def _picking(report: Report) -> TextTable:
    """Which way of picking one candidate is how good, between the first and what an oracle would pick."""
    parts = (*report.splits[:_PARTS_SHOWN], report.overall)
    ways = {
        "first": [figures.first for figures in parts],
        "majority": [figures.majority for figures in parts],
        "best by score": [figures.best_by_score for figures in parts],
        "any (oracle)": [figures.any for figures in parts],
    }
    known = {way: rates for way, rates in ways.items() if any(rate is not None for rate in rates)}
    rows = tuple(
        (part.split, *(percent(rates[line], part.queries) for rates in known.values()))
        for line, part in enumerate(parts)
        if known
    )
    if report.coverage.candidates[1] == 1:  # there is nothing to pick from
        rows = ()
    headers = (report.grouped_by, *known)
    rests = _resting([(part.queries, [rates[line] for rates in known.values()]) for line, part in enumerate(parts)])
    return TextTable("Queries right when one candidate is picked, %", headers, rows, " ".join(report.notes) + rests)


def _candidates(report: Report) -> TextTable:
    shown = report.candidates if len(report.candidates) > 1 else ()
    rows = tuple((str(one.index), count(one.judged), percent(one.rate)) for one in shown[:_CANDIDATES_SHOWN])
    left = len(shown) - len(rows)
    note = f"{left} more are in --format json." if left else ""
    return TextTable("By candidate index: does the first win?", ("candidate", "judged", "verified, %"), rows, note)


def _curve(report: Report, *, full: bool) -> TextTable:
    if report.optimal is None or len(report.curve) == 1:
        return TextTable(CURVE_TITLE, (), ())
    unit, scale = _UNITS[report.optimal.unit]
    lacks = report.curve[-1].bounds is not None
    rows = tuple(
        (
            str(point.k),
            percent(point.pass_at_k),
            *([_range(point.bounds)] if lacks else []),
            percent(point.gain) if point.since else NOTHING,
            percent(point.pass_hat_k),
            amount(step.verified_per_unit * scale),
            amount(step.added_per_unit.value * scale),
        )
        for point, step in zip(report.curve, report.optimal.steps, strict=True)
        if full or _is_worth_a_line(point.k, report)
    )
    of_all = ("of all, %",) if lacks else ()
    headers = ("k", "pass@k, %", *of_all, "gain, points", "all k right, %", f"right {unit}", "added")
    return TextTable(CURVE_TITLE, headers, rows, optimal_sentence(report.optimal) + curve_population(report))


def curve_population(report: Report) -> str:
    """On which queries the curve rests, where not on all, and what `of all` means."""
    last, whole = report.curve[-1], report.overall.queries
    if last.bounds is None:
        return ""
    rests = f"{count(last.pass_at_k.count)} of {count(whole)} queries, those with at least {last.k} judged candidates"
    return f" Every k rests on {rests}. Of all: {_WERE}."


def _is_worth_a_line(k: int, report: Report) -> bool:
    """Every k while there are few; else the powers of two, the last, and the optimal one."""
    last, best = report.curve[-1].k, report.optimal.n if report.optimal is not None else 0
    return last <= _FEW_KS or not k & (k - 1) or k in (last, best)


def _choosing(report: Report) -> TextTable:
    """What k candidates are worth to somebody who cannot tell which is right."""
    whole = report.overall.queries
    ways = {
        "majority of k": [point.majority for point in report.choosing],
        "best-scored of k": [point.best_by_score for point in report.choosing],
    }
    known = {way: found for way, found in ways.items() if any(found) and len(report.choosing) > 1}
    rows = tuple(
        (str(point.k), *(percent(found[line], whole) for found in known.values()))
        for line, point in enumerate(report.choosing)
        if known
    )
    rests = _resting([(whole, found) for found in known.values()]).strip()
    return TextTable("Queries right when one of k is picked, %", ("k", *known), rows, rests)


def optimal_sentence(optimal: OptimalN | None) -> str:
    """Where another candidate stops paying, in words."""
    if optimal is None:
        return ""
    if not optimal.steps[-1].verified_per_unit:
        return "Optimal N: not known. No candidate was verified, so none has paid yet."
    doubt = "" if optimal.low == optimal.high else f" ({optimal.low} to {optimal.high}, by the gains' intervals)"
    bar = f"{100 * optimal.bar:.1f} points of pass@k"
    if not optimal.reached:
        return f"Optimal N: at least {optimal.n}{doubt}: the last candidate tried still brings its {bar}."
    return (
        f"Optimal N: {optimal.n}{doubt}. One more would add less than {bar}, the least at which it is worth its cost."
    )


def _named_counts(title: str, counts: Mapping[str, int], whole: int) -> TextTable:
    rows = tuple((name, count(number), _share(number, whole)) for name, number in counts.items())
    return TextTable(title, ("kind", "records", "share"), rows)


def _spending(report: Report) -> TextTable:
    rows = tuple(
        (
            _MEASURES[name],
            *map(amount, (found.mean, found.p50, found.p90, found.p99, found.largest)),
            NOTHING if name == "latency_ms" else amount(found.total),  # answers are waited for side by side
        )
        for name, found in report.spending.items()
    )
    return TextTable("A request takes", ("", "mean", "median", "90 %", "99 %", "most", "in all"), rows)


def _never(report: Report) -> str:
    if not report.never_verified:
        return ""
    judged = count(report.coverage.queries_judged)
    return f"{count(report.never_verified)} of {judged} judged queries have no verified candidate."


def _queries(title: str, lines: Sequence[QueryLine], note: str = "", *, passes: bool) -> TextTable:
    rows = tuple((line.query_id, line.split, _right(line, passes=passes), line.excerpt) for line in lines)
    return TextTable(title, ("query", "split", "right" if passes else "score", "asks"), rows, note, prose=(0, 1, 3))


def _right(line: QueryLine, *, passes: bool) -> str:
    return f"{line.verified}/{line.judged}" if passes or line.mean_score is None else amount(line.mean_score)


# ── several runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


_PAIRED = ("part", "figure", "before", "after", "difference", "won", "lost", "p")
_ONE_TEST = "95 % intervals and p over queries, paired, from one test: p is below 0.05 where the interval leaves out 0"
_UNCORRECTED = ", not corrected for comparing several."


def comparison_tables(comparison: RunComparison, *, full: bool = True) -> list[TextTable]:
    """The tables of a comparison; without `full`, several pairs share one, with a line each."""
    several = len(comparison.pairings) > 1
    tables = [_side_by_side(comparison.experiments)]
    if several and not full:
        return [*tables, _each_against(comparison)]
    for pairing in comparison.pairings:
        tables += _pairing(pairing, several=several)
    return tables


def _side_by_side(lines: Sequence[SideBySide]) -> TextTable:
    graded = any(line.graded for line in lines)
    passes = any(line.rate is not None for line in lines)
    shows = {
        "mean score": graded or not passes,
        "verified, %": passes,
        "first, %": passes,
        "any, %": passes and any(line.candidates > 1 for line in lines),
        "failed": any(line.failed for line in lines),
        "cut off": any(line.truncated for line in lines),
        "cost": any(line.cost for line in lines),
    }
    headers = ("run", "model", "N", "queries", *(name for name, shown in shows.items() if shown))
    rows = tuple(_run_row(line, shows) for line in lines)
    note = "The rows may use different queries; see the paired comparison below."
    note += _resting([(line.queries, [line.mean, line.rate, line.first, line.any]) for line in lines])
    return TextTable("Side by side", headers, rows, note, prose=(0, 1))


def _run_row(line: SideBySide, shows: Mapping[str, bool]) -> tuple[str, ...]:
    cells = {
        "mean score": score(line.mean, line.queries),
        "verified, %": percent(line.rate, line.queries),
        "first, %": percent(line.first, line.queries),
        "any, %": percent(line.any, line.queries),
        "failed": count(line.failed),
        "cut off": count(line.truncated),
        "cost": NOTHING if line.cost is None else amount(line.cost),
    }
    models = ", ".join(line.models) or NOTHING
    shown = (cell for name, cell in cells.items() if shows[name])
    return (line.name, models, str(line.candidates), count(line.queries), *shown)


def _each_against(comparison: RunComparison) -> TextTable:
    found = [(pairing, pairing.difference(pairing.main_figure)) for pairing in comparison.pairings]
    rows = tuple(
        (pairing.other, *_difference_row(one)[1:]) if one else (pairing.other, "nothing in common", *("",) * 6)
        for pairing, one in found
    )
    note = f"On the queries that each has in common with {comparison.pairings[0].baseline}. {_ONE_TEST}{_UNCORRECTED}"
    title = f"Each against {comparison.pairings[0].baseline}"
    return TextTable(title, ("run", *_PAIRED[1:]), rows, note, prose=(0, 1))


def _pairing(pairing: Pairing, *, several: bool) -> list[TextTable]:
    title = f"{pairing.other} against {pairing.baseline}"
    if not pairing.common:
        sentence = "No overlap: they have no judged query in common (same split and id), so nothing can be compared."
        if pairing.samples.changed and not pairing.samples.same:
            sentence = "No sample is the same in both, so nothing can be compared."
        return [TextTable(title, (), ((sentence,),), prose=(0,))]
    note = f"{_population(pairing)}. {_ONE_TEST}{_UNCORRECTED if several else '.'}"
    differences = TextTable(title, _PAIRED, tuple(map(_difference_row, pairing.differences)), note, prose=(0, 1))
    return [differences, *_flips(pairing)]


def _population(pairing: Pairing) -> str:
    """On which queries the figures rest, and which others there are."""
    changed = sum(pairing.samples.changed.values())
    unjudged = pairing.samples.same - pairing.common
    parts = [
        f"{count(pairing.common)} common queries",
        f"{count(pairing.only_baseline)} only in the first, {count(pairing.only_other)} only in the second",
        *([f"{count(changed)} not the same in both"] if changed else []),
        *([f"{count(unjudged)} without a verdict in one of them"] if unjudged else []),
    ]
    return "; ".join(parts)


def _difference_row(found: Difference) -> tuple[str, ...]:
    if is_share(found.figure):
        before, after = (f"{100 * value:.1f}" for value in (found.baseline, found.other))
        change = difference(found.difference, found.low, found.high)
    else:
        before, after = plain_score(found.baseline), plain_score(found.other)
        change = score_difference(found.difference, found.low, found.high)
    counts = (count(found.won), count(found.lost))
    return (found.split, figure_name(found.figure), before, after, change, *counts, probability(found.p))


def is_share(figure: str) -> bool:
    """Whether a figure is a share of answers or queries, told in per cent."""
    return figure in ("rate", "first") or figure.startswith("pass@")


def figure_name(figure: str) -> str:
    """What people call a figure."""
    known = {"rate": "verified, %", "first": "first, %", "score": "mean score"}
    return known.get(figure) or (f"{figure}, %" if is_share(figure) else figure.removeprefix("metric "))


def _flips(pairing: Pairing) -> list[TextTable]:
    if not pairing.flips:
        return []
    rows = tuple(
        (
            "gained" if flip.gained else "lost",
            flip.query_id,
            flip.split,
            f"{flip.baseline} → {flip.other}",
            flip.excerpt,
        )
        for flip in pairing.flips
    )
    note = (
        f"{count(pairing.gained)} queries went from mostly wrong to mostly right, {count(pairing.lost)} the other way."
    )
    if not pairing.has_passes:
        headers = ("", "query", "split", "mean score", "asks")
        return [TextTable("Queries that changed most", headers, rows, prose=(0, 1, 2, 4))]
    return [TextTable("Queries that flipped", ("", "query", "split", "right", "asks"), rows, note, prose=(0, 1, 2, 4))]
