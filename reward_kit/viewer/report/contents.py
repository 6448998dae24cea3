# SPDX-License-Identifier: Apache-2.0
"""What a report holds of a run: the figures of `inspect`, and the texts of some samples."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from reward_kit.analysis.hardest import QueryLine
from reward_kit.analysis.judged_answers import JudgedAnswers
from reward_kit.analysis.loading import load
from reward_kit.analysis.present.conclusions import report_conclusion
from reward_kit.analysis.present.report_tables import report_tables
from reward_kit.analysis.present.text_table import TextTable
from reward_kit.analysis.present.wording import percent, score
from reward_kit.analysis.report import Report, analyse
from reward_kit.errors import RewardKitError
from reward_kit.statistics import Estimate
from reward_kit.storage.judged import JudgedAnswer, as_text
from reward_kit.storage.reviews import read_reviews, reviews_path
from reward_kit.storage.run_directory import unfinished
from reward_kit.viewer.report.drawing import charts, whisker
from reward_kit.viewer.report.plain_text import CutText, cut, limit_within, visible
from reward_kit.viewer.reviewing.figures import review_figures
from reward_kit.viewer.reviewing.records import JudgedRecords
from reward_kit.viewer.reviewing.wording import figure_lines, remarks
from reward_kit.viewer.sample_names import sample_names

__all__ = ["CandidateText", "FigureRow", "RunPart", "SampleText", "ShownTable", "run_part", "shown_table"]

_SEED = 0
_EXAMPLES = 10
"""Hardest samples, and as many contested ones."""
_TEXT_TABLES = ("Hardest queries", "Most contested queries")
"""Tables in whose place a report shows the samples themselves."""
_EXCERPT = 110
_INTERVAL = re.compile(r"(.*?) (\(.*\)(?: of [\d,]+)?)", re.DOTALL)
_SHARES = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure with its interval, in words and drawn."""

    name: str
    value: str
    interval: str
    drawn: Markup


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table, each cell with what is set smaller behind it: its interval."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[tuple[str, str], ...], ...]
    note: str
    prose: frozenset[int]


@dataclass(frozen=True, slots=True)
class CandidateText:
    """An answer with its verdict."""

    index: int
    state: str
    """`pass`, `fail` or `none`."""
    verdict: str
    score: str
    answer: CutText
    reasoning: CutText
    reason: CutText
    calls: CutText
    metrics: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class SampleText:
    """A sample with its candidates."""

    name: str
    split: str
    excerpt: str
    passed: str
    states: str
    """All states of its candidates, for the filter."""
    prompt: tuple[tuple[str, CutText], ...]
    truth: CutText
    candidates: tuple[CandidateText, ...]


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run, as a report tells of it."""

    name: str
    facts: tuple[tuple[str, str], ...]
    conclusion: tuple[str, ...]
    figures: tuple[FigureRow, ...]
    charts: tuple[Markup, ...]
    tables: tuple[ShownTable, ...]
    reviews: tuple[tuple[str, str, str], ...]
    review_notes: tuple[str, ...]
    hardest: tuple[SampleText, ...]
    contested: tuple[SampleText, ...]
    samples: tuple[SampleText, ...]
    chosen: str
    """Which samples these are, in a sentence."""
    config: str
    report: Report
    answers: JudgedAnswers


def run_part(path: Path, name: str | None, *, most: int, budget: int, pass_threshold: float | None) -> RunPart:
    """Everything of one run: at most `most` records, whose texts have about `budget` characters."""
    answers = load(path, name=name, pass_threshold=pass_threshold)
    report = analyse(answers, examples=_EXAMPLES)
    picked, chosen = _pick(answers, most)
    hardest, contested = (_places(answers, lines) for lines in (report.hardest, report.contested))
    hardest = [place for place in hardest if place not in contested]  # shown once, where its answers differ
    entries = _read(answers, [*hardest, *contested, *picked])
    writer = _Writer(answers, entries, budget)
    reviews, notes = _reviews(path, answers)
    return RunPart(
        name=visible(report.name),
        facts=_facts(path, report),
        conclusion=tuple(map(visible, [*report_conclusion(report), *filter(None, [_left_unfinished(path)])])),
        figures=tuple(_figures(report)),
        charts=tuple(charts([report])),
        tables=tuple(shown_table(table) for table in report_tables(report) if table.title not in _TEXT_TABLES),
        reviews=reviews,
        review_notes=notes,
        hardest=tuple(map(writer.sample, hardest)),
        contested=tuple(map(writer.sample, contested)),
        samples=tuple(map(writer.sample, picked)),
        chosen=chosen,
        config=_config(path),
        report=report,
        answers=answers,
    )


def _left_unfinished(path: Path) -> str | None:
    return unfinished(path) if path.is_dir() else None


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _facts(path: Path, report: Report) -> tuple[tuple[str, str], ...]:
    covered = report.coverage
    least, most = covered.candidates
    facts = {
        "models": ", ".join(covered.models),
        "samples": f"{covered.queries:,}",
        "answers": f"{covered.records:,}",
        "per sample": str(most) if least == most else f"{least} to {most}",
        "judged": f"{covered.judged:,}",
        "source": path.name or str(path),
    }
    return tuple((name, visible(value)) for name, value in facts.items() if value)


def _figures(report: Report) -> Iterable[FigureRow]:
    overall = report.overall
    shares = {
        "verified": overall.rate, "first right": overall.first, "majority right": overall.majority,
        "best-scored right": overall.best_by_score, "any right": overall.any,
    }  # fmt: skip
    if report.coverage.candidates[1] == 1:
        shares = {"verified": overall.rate}
    elif overall.best_by_score == overall.any:  # the scores say no more than the verdicts
        del shares["best-scored right"]
    if overall.mean is not None and (report.score_spread is not None or overall.rate is None):
        yield _figure("mean score", overall.mean, score(overall.mean, overall.queries), _span(report))
    for name, found in shares.items():
        if found is not None:
            yield _figure(f"{name}, %", found, percent(found, overall.queries), _SHARES)
    for k, found in overall.pass_at_k.items():
        if k > 1:
            yield _figure(f"pass@{k}, %", found, percent(found, overall.queries), _SHARES)


def _span(report: Report) -> tuple[float, float]:
    """From where to where a line of scores goes: 0 to 1, or as far as the scores go."""
    spread = report.score_spread
    if spread is None:
        return _SHARES
    low, high = spread.bins[0].low, spread.bins[-1].high
    return (min(0.0, low), max(1.0, high)) if low > -1 and high <= 1 else (low, high)


def _figure(name: str, found: Estimate, text: str, span: tuple[float, float]) -> FigureRow:
    value, interval = _apart(text)
    return FigureRow(name, value, interval, whisker(found, *span))


def _apart(cell: str) -> tuple[str, str]:
    """A cell as its value and its interval, `57.1 (52–61)`, with the queries it rests on where these are told."""
    found = _INTERVAL.fullmatch(cell)
    return (found[1], found[2]) if found else (cell, "")


def shown_table(table: TextTable) -> ShownTable:
    """A table of the terminal, cell by cell the same."""
    rows = tuple(
        tuple(
            _apart(visible(cell)) if column not in table.prose else (visible(cell), "")
            for column, cell in enumerate(row)
        )
        for row in table.rows
    )
    return ShownTable(visible(table.title), table.headers, rows, visible(table.note), frozenset(table.prose))


def _reviews(path: Path, answers: JudgedAnswers) -> tuple[tuple[tuple[str, str, str], ...], tuple[str, ...]]:
    """What people said of the verdicts, where somebody did."""
    try:
        reviews = read_reviews(reviews_path(path))
        if not reviews:
            return (), ()
        found = review_figures(JudgedRecords(path, answers=answers), reviews)
    except RewardKitError as error:
        return (), (f"The reviews cannot be read: {visible(str(error))}",)
    return tuple(figure_lines(found)), tuple(map(visible, remarks(found)))


def _config(path: Path) -> str:
    place = (path if path.is_dir() else path.parent) / "config.yaml"
    if path.suffix == ".parquet" or not place.is_file():
        return ""
    return cut(place.read_bytes().decode("utf-8", "replace"), 20_000).text


# ── samples ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pick(answers: JudgedAnswers, most: int) -> tuple[list[int], str]:
    """Whole samples, drawn by lot where not all can be shown; in their own order."""
    whole = f"All {answers.records:,} records of {answers.queries:,} samples."
    if answers.records <= most:
        return list(range(answers.queries)), whole
    order = list(range(answers.queries))
    random.Random(_SEED).shuffle(order)
    picked, records = [], 0
    for query in order:
        size = int(answers.sizes[query])
        if records + size <= most:
            picked.append(query)
            records += size
        if records >= most:
            break
    remark = (
        f"{records:,} of {answers.records:,} records: {len(picked):,} of {answers.queries:,} samples, drawn at random "
        f"(seed {_SEED}). The figures are of all."
    )
    return sorted(picked), remark


def _places(answers: JudgedAnswers, lines: Sequence[QueryLine]) -> list[int]:
    """Which samples these lines are about."""
    found: list[int] = []
    for line in lines:
        same_id = pc.indices_nonzero(pc.equal(answers.query_ids, pa.scalar(line.query_id, answers.query_ids.type)))
        places = [int(query) for query in same_id.to_numpy()]
        found += [query for query in places if answers.query_name(query)[0] == line.split]
    return found


def _read(answers: JudgedAnswers, queries: Iterable[int]) -> dict[int, list[JudgedAnswer]]:
    """What was asked and answered, read from the files once."""
    wanted = sorted(set(queries))
    rows = [row for query in wanted for row in range(*answers.rows_of(query).indices(answers.records))]
    if not rows:
        return {}
    lines = answers.texts.whole(answers.source_rows[np.asarray(rows, dtype=np.int64)])
    entries = iter([JudgedAnswer(line) for line in lines])
    return {query: [next(entries) for _ in range(int(answers.sizes[query]))] for query in wanted}


class _Writer:
    """Writes samples with texts that are cut alike."""

    def __init__(self, answers: JudgedAnswers, entries: Mapping[int, list[JudgedAnswer]], budget: int) -> None:
        self._answers = answers
        self._entries = entries
        self._names = sample_names(answers)
        self._limit = limit_within(_texts(entries), budget)

    def sample(self, query: int) -> SampleText:
        entries, answers = self._entries[query], self._answers
        rows = answers.rows_of(query)
        candidates = tuple(
            self._candidate(row, one) for row, one in zip(range(rows.start, rows.stop), entries, strict=True)
        )
        first = entries[0]
        return SampleText(
            name=visible(str(self._names[query].as_py())),
            split=visible(answers.query_name(query)[0]) if answers.has_splits else "",
            excerpt=visible(" ".join(first.query[: 4 * _EXCERPT].split())[:_EXCERPT]),
            passed=self._passed(query, candidates),
            states=" ".join(sorted({candidate.state for candidate in candidates})),
            prompt=tuple(
                (visible(str(turn.get("role", ""))), cut(as_text(turn.get("content")), self._limit))
                for turn in first.asked
            ),
            truth=cut(as_text(first.ground_truth), self._limit),
            candidates=candidates,
        )

    def _passed(self, query: int, candidates: Sequence[CandidateText]) -> str:
        if not self._answers.has_passes:
            return ""
        return f"{int(self._answers.verified[query])}/{int(self._answers.judged[query])}"

    def _candidate(self, row: int, entry: JudgedAnswer) -> CandidateText:
        value, verdict = self._answers.scores[row], int(self._answers.verdict[row])
        state = {1: "pass", 0: "fail"}.get(verdict, "none") if self._answers.has_passes or verdict < 0 else "none"
        word = {"pass": "pass", "fail": "fail"}.get(state, "no verdict" if verdict < 0 else "score")
        limit = self._limit
        return CandidateText(
            index=int(self._answers.candidate[row]),
            state=state,
            verdict=word,
            score="" if np.isnan(value) else f"{float(value):.4g}",
            answer=cut(_answer(entry), limit),
            reasoning=cut(entry.reasoning or "", limit),
            reason=cut(entry.reason or entry.error or "", limit),
            calls=cut(as_text(list(entry.tool_calls)) if entry.tool_calls else "", limit),
            metrics=tuple(_metric(name, held) for name, held in entry.metrics.items()),
        )


def _answer(entry: JudgedAnswer) -> str:
    """The answer; of an episode, all that was said after the prompt."""
    if len(entry.turns) > 1:
        said = (f"[{turn.get('role', '')}] {as_text(turn.get('content'))}" for turn in entry.turns)
        return "\n\n".join(said)
    return entry.response


def _metric(name: str, held: Any) -> tuple[str, str, str]:
    fields = held if isinstance(held, Mapping) else {"score": held}
    value = fields.get("score")
    shown = f"{value:.4g}" if isinstance(value, int | float) else "–"
    return visible(name), shown, visible(as_text(fields.get("reason")))[:300]


def _texts(entries: Mapping[int, list[JudgedAnswer]]) -> Iterable[str]:
    for group in entries.values():
        yield from (as_text(turn.get("content")) for turn in group[0].asked)
        for one in group:
            yield from (_answer(one), one.reasoning or "", one.reason or one.error or "")
