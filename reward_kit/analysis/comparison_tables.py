"""A comparison as tables: side by side, then each pair on its common queries."""

from __future__ import annotations

from collections.abc import Sequence

from reward_kit.analysis.comparison import Comparison, Difference, Pairing, SideBySide
from reward_kit.analysis.tables import Table
from reward_kit.analysis.wording import NOTHING, count, difference, percent, probability

__all__ = ["comparison_tables"]

_WORDS = {"rate": "verified"}


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Every table of a comparison."""
    tables = [_side_by_side(comparison.experiments)]
    for pairing in comparison.pairings:
        tables += _pairing(pairing, several=len(comparison.pairings) > 1)
    return tables


def _side_by_side(lines: Sequence[SideBySide]) -> Table:
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
    return Table("Side by side", headers, rows, note, prose=(0, 1))


def _pairing(pairing: Pairing, *, several: bool) -> list[Table]:
    title = f"{pairing.other} against {pairing.baseline}, %"
    if not pairing.common:
        told = "No overlap: they have no judged query in common (same split and id), so nothing can be compared."
        return [Table(title, (), ((told,),), prose=(0,))]
    headers = ("split", "figure", "before", "after", "difference", "won", "lost", "p")
    note = (
        f"{count(pairing.common)} common queries; {count(pairing.only_baseline)} only in the first, "
        f"{count(pairing.only_other)} only in the second. "
        "95 % intervals and p over queries, paired, from one test: p is below 0.05 where the interval leaves out 0"
        + (", not corrected for comparing several." if several else ".")
    )
    differences = Table(title, headers, tuple(map(_difference_row, pairing.differences)), note, prose=(0, 1))
    return [differences, *_flips(pairing)]


def _difference_row(found: Difference) -> tuple[str, ...]:
    return (
        found.split,
        _WORDS.get(found.figure, found.figure),
        f"{100 * found.baseline:.1f}",
        f"{100 * found.other:.1f}",
        difference(found.difference, found.low, found.high),
        count(found.won),
        count(found.lost),
        probability(found.p),
    )


def _flips(pairing: Pairing) -> list[Table]:
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
    return [Table("Queries that flipped", ("", "query", "split", "right", "asks"), rows, note, prose=(0, 1, 2, 4))]
