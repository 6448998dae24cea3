"""A report as tables, in the order a person asks: what is it, how good is it, how should I choose, what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reward_kit.analysis.hardest import QueryLine
from reward_kit.analysis.optimal_n import OptimalN
from reward_kit.analysis.present.wording import NOTHING, amount, count, difference, percent, probability
from reward_kit.analysis.report import Report, SplitFigures
from reward_kit.analysis.run_comparison import Difference, Pairing, RunComparison, SideBySide
from reward_kit.analysis.texts import one_line

__all__ = ["CURVE_TITLE", "TextTable", "comparison_tables", "optimal_sentence", "report_tables"]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A titled table. Without headers it is a list of names and what they are."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """A sentence under the table."""
    prose: tuple[int, ...] = ()
    """Columns of running text: cut to the terminal's width, and aligned to the left."""


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


def report_tables(report: Report) -> list[TextTable]:
    """Every table of a report; those that would be empty are left out."""
    tables = [
        _metadata(report.metadata),
        _coverage(report),
        _rates(report),
        _picking(report),
        _candidates(report),
        _curve(report),
        _choosing(report),
        _named_counts("Not judged", report.coverage.failures, report.coverage.records),
        _named_counts("How answers ended", report.coverage.finish_reasons, report.coverage.records),
        _spending(report),
        _queries("Hardest queries", report.hardest, _never(report)),
        _queries("Most contested queries", report.contested),
    ]
    return [table for table in tables if table.rows]


def _metadata(metadata: Mapping[str, str]) -> TextTable:
    told = {key for key, value in metadata.items() if value}
    keys = [key for key in _FIRST_KEYS if key in told] + sorted(told - {*_FIRST_KEYS})
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


def _rates(report: Report) -> TextTable:
    headers = ("split", "queries", "records", "judged", "verified, %") + ("cost",) * (report.overall.cost is not None)
    rows = tuple(_rate_row(figures)[: len(headers)] for figures in (*report.splits, report.overall))
    note = "In parentheses: 95 % intervals over queries, since the candidates of one query are not independent."
    return TextTable("Verification rate", headers, rows, note)


def _rate_row(figures: SplitFigures) -> tuple[str, ...]:
    numbers = (figures.queries, figures.records, figures.judged)
    spent = NOTHING if figures.cost is None else amount(figures.cost)
    return (figures.split, *map(count, numbers), percent(figures.rate), spent)


def _picking(report: Report) -> TextTable:
    """Which way of picking one candidate is how good, between the first and what an oracle would pick."""
    ways = {
        "first": [figures.first for figures in (*report.splits, report.overall)],
        "majority": [figures.majority for figures in (*report.splits, report.overall)],
        "best by score": [figures.best_by_score for figures in (*report.splits, report.overall)],
        "any (oracle)": [figures.any for figures in (*report.splits, report.overall)],
    }
    known = {way: rates for way, rates in ways.items() if any(rate is not None for rate in rates)}
    splits = [figures.split for figures in (*report.splits, report.overall)]
    rows = tuple(
        (split, *(percent(rates[line]) for rates in known.values())) for line, split in enumerate(splits) if known
    )
    return TextTable("Queries right when one candidate is picked, %", ("split", *known), rows, " ".join(report.notes))


def _candidates(report: Report) -> TextTable:
    shown = report.candidates if len(report.candidates) > 1 else ()
    rows = tuple((str(one.index), count(one.judged), percent(one.rate)) for one in shown[:_CANDIDATES_SHOWN])
    left = len(shown) - len(rows)
    note = f"{left} more are in --format json." if left else ""
    return TextTable("By candidate index: does the first win?", ("candidate", "judged", "verified, %"), rows, note)


def _curve(report: Report) -> TextTable:
    if report.optimal is None:
        return TextTable(CURVE_TITLE, (), ())
    unit, scale = _UNITS[report.optimal.unit]
    rows = tuple(
        (
            str(point.k),
            percent(point.pass_at_k),
            percent(point.gain) if point.since else NOTHING,
            percent(point.pass_hat_k),
            amount(step.verified_per_unit * scale),
            amount(step.added_per_unit.value * scale),
        )
        for point, step in zip(report.curve, report.optimal.steps, strict=True)
    )
    headers = ("k", "pass@k, %", "gain, points", "all k right, %", f"right {unit}", "added")
    last = report.curve[-1]
    rest = f" k = {last.k} rests on the {count(last.pass_at_k.count)} queries with as many judged candidates."
    partly = last.pass_at_k.count < report.coverage.queries_judged
    return TextTable(CURVE_TITLE, headers, rows, optimal_sentence(report.optimal) + (rest if partly else ""))


def _choosing(report: Report) -> TextTable:
    """What k candidates are worth to somebody who cannot tell which is right."""
    ways = {
        "majority of k": [point.majority for point in report.choosing],
        "best-scored of k": [point.best_by_score for point in report.choosing],
    }
    known = {way: found for way, found in ways.items() if any(found) and len(report.choosing) > 1}
    rows = tuple(
        (str(point.k), *(percent(found[line]) for found in known.values()))
        for line, point in enumerate(report.choosing)
        if known
    )
    return TextTable("Queries right when one of k is picked, %", ("k", *known), rows)


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
    return f"Optimal N: {optimal.n}{doubt}. The next candidate brings less than {bar}, which is what it must to pay."


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


def _queries(title: str, lines: Sequence[QueryLine], note: str = "") -> TextTable:
    rows = tuple((line.query_id, line.split, f"{line.verified}/{line.judged}", line.excerpt) for line in lines)
    return TextTable(title, ("query", "split", "right", "asks"), rows, note, prose=(0, 1, 3))


# ── several runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


_FIGURES = {"rate": "verified"}


def comparison_tables(comparison: RunComparison) -> list[TextTable]:
    """Every table of a comparison."""
    tables = [_side_by_side(comparison.experiments)]
    for pairing in comparison.pairings:
        tables += _pairing(pairing, several=len(comparison.pairings) > 1)
    return tables


def _side_by_side(lines: Sequence[SideBySide]) -> TextTable:
    headers = ("experiment", "model", "N", "queries", "verified, %", "first, %", "any, %")
    rows = tuple(
        (
            line.name,
            ", ".join(line.models) or NOTHING,
            str(line.candidates),
            count(line.queries),
            *map(percent, (line.rate, line.first, line.any)),
        )
        for line in lines
    )
    note = "Each over its own queries, so these rates are not to be subtracted: below they are paired."
    return TextTable("Side by side", headers, rows, note, prose=(0, 1))


def _pairing(pairing: Pairing, *, several: bool) -> list[TextTable]:
    title = f"{pairing.other} against {pairing.baseline}, %"
    if not pairing.common:
        told = "No overlap: they have no judged query in common (same split and id), so nothing can be compared."
        return [TextTable(title, (), ((told,),), prose=(0,))]
    headers = ("split", "figure", "before", "after", "difference", "won", "lost", "p")
    note = (
        f"{count(pairing.common)} common queries; {count(pairing.only_baseline)} only in the first, "
        f"{count(pairing.only_other)} only in the second. "
        "95 % intervals and p over queries, paired, from one test: p is below 0.05 where the interval leaves out 0"
        + (", not corrected for comparing several." if several else ".")
    )
    differences = TextTable(title, headers, tuple(map(_difference_row, pairing.differences)), note, prose=(0, 1))
    return [differences, *_flips(pairing)]


def _difference_row(found: Difference) -> tuple[str, ...]:
    return (
        found.split,
        _FIGURES.get(found.figure, found.figure),
        f"{100 * found.baseline:.1f}",
        f"{100 * found.other:.1f}",
        difference(found.difference, found.low, found.high),
        count(found.won),
        count(found.lost),
        probability(found.p),
    )


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
    return [TextTable("Queries that flipped", ("", "query", "split", "right", "asks"), rows, note, prose=(0, 1, 2, 4))]
