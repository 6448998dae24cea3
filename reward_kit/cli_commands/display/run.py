# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a run: the plan, the progress, and the table in the end.

Progress goes to standard error, tables to standard output; with `--json` both go to standard error, and standard
output holds the JSON alone. Only what a terminal alone can show, and the table of a sweep, needs `rich`, which takes a
while to import.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_kit.cli_commands.output import (
    Line,
    echo,
    echo_lines,
    failure_lines,
    in_own_words,
    make_console,
    print_json,
    remarks,
)
from reward_kit.execution.progress import facts, of_expected, progress_line, stages
from reward_kit.execution.run_summary import (
    NO_PASSES,
    cost_in_words,
    has_passes,
    is_graded,
    many_failed,
    rests_on,
)

if TYPE_CHECKING:
    from rich.table import Table

    from reward_kit.config_models import PipelineConfig
    from reward_kit.execution.counters import RunCounters
    from reward_kit.execution.engine import Reporter
    from reward_kit.execution.plan import Plan
    from reward_kit.execution.result import RunResult

__all__ = ["Display", "judge_line", "plan_notes"]

_PLAIN_SECONDS = 5.0
"""How often a line of progress is printed when nobody watches a terminal."""
_LIVE_SECONDS = 0.2


class Display:
    """Shows a run, or a sweep of runs."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        """`quiet` shows nothing; `as_json` prints summaries on standard output."""
        self._quiet = quiet
        self._as_json = as_json
        self._places: dict[str, Path] = {}
        """The directory of each run as its config names it: what a person typed, and can type again."""

    def announce(self, label: str, config: PipelineConfig) -> None:
        """Print one line that says which run begins: label, model, n, output directory."""
        self._places[label] = Path(config.output.output_dir)
        model = config.generation.model_name or "no model is named (generation.model_name)"
        what = model if config.generation.enabled else "answers in the data"
        title = f"{label} · " if label else ""
        if not self._quiet:
            rest = f"· n={config.generation.n} · {config.output.output_dir}"
            echo_lines([Line(f"{title}{what}", rest)], err=True)

    def reporter(self) -> Reporter | None:
        """What shows progress, if anything does."""
        if self._quiet:
            return None
        return _LiveReporter() if sys.stderr.isatty() else _PlainReporter()

    def show_plans(self, plans: Sequence[tuple[str, Plan]]) -> None:
        """Print what would be done."""
        if self._as_json:
            _print([{"job": label, **plan.as_dict()} for label, plan in plans])
            return
        for label, plan in plans:
            self._table(label or "Plan: nothing was sent", _plan_lines(plan))
            for note in plan_notes(plan):
                echo(f"  {in_own_words(note)}")

    def show_results(self, results: Sequence[tuple[str, RunResult]]) -> None:
        """Print the figures and where the files are."""
        if self._as_json:
            _print([{"job": label, "status": result.status, **result.summary} for label, result in results])
        several = len(results) > 1
        for label, result in results:
            sentences = [*failure_lines(result.summary), *_finished_before(result), *remarks(result.summary)]
            self._say(*filter(None, [many_failed(result.summary)]))
            if several:
                self._table(label if sentences else "", [])
            else:
                self._table(_title(label, result), _result_lines(result))
                sentences += _files(result, self._places.get(label, result.output_dir))
            self._say(*(f"  {sentence}" for sentence in sentences))
        if several:
            self._show_sweep(results)

    def _show_sweep(self, results: Sequence[tuple[str, RunResult]]) -> None:
        if not self._quiet:
            make_console(stderr=self._as_json, highlight=False).print(_sweep_table(results))
        label, first = results[0]
        self._say(f"  To compare them: reward-kit inspect {self._places.get(label, first.output_dir).parent}")

    def show_resume(self, command: str) -> None:
        """Print the command that goes on where this one stopped."""
        if not self._quiet:
            echo(f"Run the same command again to go on; nothing is paid twice:\n  {command}", err=True)

    # What the command was called for goes to standard output, unless that is for JSON.

    def _table(self, title: str, lines: Sequence[Line]) -> None:
        if self._quiet:
            return
        if title:
            echo_lines([Line(title)], err=self._as_json)
        echo_lines(lines, indent=2, err=self._as_json)

    def _say(self, *sentences: str) -> None:
        for sentence in () if self._quiet else sentences:
            echo(sentence, err=self._as_json)


def _print(values: list[dict[str, Any]]) -> None:
    print_json(values[0] if len(values) == 1 else values)


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _PlainReporter:
    """A line now and then, for logs."""

    async def watch(self, counters: RunCounters) -> None:
        while True:
            await asyncio.sleep(_PLAIN_SECONDS)
            echo(progress_line(counters), err=True)


class _LiveReporter:
    """Two bars that move, for a terminal. The only part that needs `rich`, which takes a while to import."""

    async def watch(self, counters: RunCounters) -> None:
        from rich.live import Live

        with Live(console=make_console(stderr=True, highlight=False), auto_refresh=False, transient=True) as live:
            while True:
                live.update(_bars(counters), refresh=True)
                await asyncio.sleep(_LIVE_SECONDS)


def _bars(counters: RunCounters) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    for stage, done in stages(counters):
        bar = ProgressBar(total=counters.expected, completed=done, width=32, pulse=counters.expected is None)
        grid.add_row(f"{stage:>9}", bar, f"{done}{of_expected(counters.expected)}")
    grid.add_row("", "", " · ".join(facts(counters)))
    return grid


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def planned_cost(plan: Plan) -> str:
    """What a plan costs: at most where that is known, else about."""
    if plan.most_turns is not None:
        return "not known beforehand: an agent decides how often it asks"
    if plan.cost is None:
        return "price not known"
    return f"up to {plan.cost:.4f}" if plan.cost_is_bounded else f"about {plan.cost:.4f}; max_tokens bounds no answer"


def plan_notes(plan: Plan) -> list[str]:
    """What a plan says beside its figures: how rows are read, the first prompt, and what is missing."""
    read = [f"format {name}: {meaning}" for name, meaning in plan.dataset_format.items()]
    turns = plan.first_prompt or []
    shown = [f"first prompt, {turn['role']}: {_shortened(str(turn.get('content') or ''))}" for turn in turns]
    return [*read, *shown, *plan.remarks]


def _shortened(text: str, longest: int = 400) -> str:
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text):,} characters)"


def _plan_lines(plan: Plan) -> list[Line]:
    return [
        Line("rows", f"{plan.rows:,}"),
        Line("answers in the end", f"{plan.rollouts:,}"),
        Line("  already on disk", f"{plan.on_disk:,}"),
        Line("  in the cache", f"{plan.cached:,}"),
        Line("  to be generated", f"{plan.answers_to_generate:,}"),
        Line("requests", f"{plan.requests:,}"),
        *_batch_lines(plan),
        Line("to be scored", f"{plan.to_score:,}"),
        Line("prompt tokens", f"~ {plan.prompt_tokens:,}"),
        Line("answer tokens", f"up to {plan.completion_tokens:,}"),
        Line("cost", planned_cost(plan)),
    ]


def _batch_lines(plan: Plan) -> list[Line]:
    """What goes by batches: files, and what the same would cost online."""
    batch = plan.batch
    if batch is None:
        return []
    lines = [Line("  in files", f"{batch.files:,}", f"{batch.size / 1e6:.1f} MB, a batch each")]
    if batch.under_way:
        lines.append(Line("  under way already", f"{batch.under_way:,}"))
    if batch.too_large:
        lines.append(Line("  too large for a file", f"{batch.too_large:,}", "they will be failures"))
    if batch.online_cost is not None:
        lines.append(Line("  online", f"up to {batch.online_cost:.4f}", "for the same answers"))
    return lines


def _result_lines(result: RunResult) -> list[Line]:
    summary = result.summary
    if "judged" in summary:
        lines = [Line("judged", f"{summary['judged']:,} of {summary['records']:,}")]
    else:
        lines = [Line("rollouts", f"{summary.get('rollouts', result.counters.generated):,}")]
    lines.append(Line("failed", f"{summary.get('failed', result.counters.failed):,}"))
    if (mean := summary.get("mean_score")) is not None:
        lines.append(_with_interval("mean score", mean))
    if has_passes(summary):
        for k, found in _worth_showing(summary.get("pass_at_k", {})):
            note = "  ".join(part for part in (_threshold(summary), rests_on(found, summary)) if part)
            lines.append(_with_interval(f"pass@{k}", found, note))
    else:
        lines.append(Line("pass@k", "–", NO_PASSES))
    if summary.get("truncated"):
        share = 100 * summary["truncated"] / max(1, summary["records"])
        lines.append(Line("cut off", f"{summary['truncated']:,} ({share:.0f} %)", "at the limit of tokens"))
    lines += _effort(summary)
    if result.reason:
        lines.append(Line("ended early", in_own_words(result.reason)))
    return lines


def _threshold(summary: Mapping[str, Any]) -> str:
    """From which score on an answer passes, where that is not what every score says."""
    return f"score ≥ {summary['pass_threshold']:g}" if is_graded(summary) else ""


def _finished_before(result: RunResult) -> list[str]:
    done = result.counters.generated or result.counters.scored
    return [] if done or result.status != "finished" else ["Already complete; nothing to do."]


def _sweep_table(results: Sequence[tuple[str, RunResult]]) -> Table:
    """A line per run of a sweep."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for name in ("run", "judged", "failed", "cut off", "mean score", "pass@k", "cost"):
        table.add_column(name, justify="left" if name == "run" else "right", overflow="fold")
    for label, (_, result) in zip(_without_sections([label for label, _ in results]), results, strict=True):
        table.add_row(escape(label), *_sweep_row(result))
    return table


def _without_sections(labels: Sequence[str]) -> list[str]:
    """`a.b=1,c.d=2` as `b=1,d=2`, where no two settings end in the same name: a narrow table must tell runs apart."""
    parts = [[part.partition("=") for part in label.split(",")] for label in labels]
    keys = {key for label in parts for key, _, _ in label}
    if len({key.rpartition(".")[2] for key in keys}) < len(keys):
        return list(labels)
    return [",".join(f"{key.rpartition('.')[2]}{sign}{value}" for key, sign, value in label) for label in parts]


def _sweep_row(result: RunResult) -> list[str]:
    summary = result.summary
    known = summary.get("pass_at_k", {}) if has_passes(summary) else {}
    k, estimate = [("", None), *_worth_showing(known)][-1]
    return [
        f"{summary['judged']:,} of {summary['records']:,}" if "judged" in summary else result.status,
        f"{summary.get('failed', result.counters.failed):,}",
        f"{summary.get('truncated', 0):,}",
        _short(summary.get("mean_score")),
        f"{k}: {_short(estimate)}{_of_some(estimate, summary)}" if estimate is not None else "–",
        "–" if summary.get("cost") is None else cost_in_words(summary),
    ]


def _of_some(estimate: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    return f" {rests}" if (rests := rests_on(estimate, summary)) else ""


def _short(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "–"
    low, high = estimate["low"], estimate["high"]
    known = low is not None and isfinite(low)
    return f"{estimate['value']:.3f}" + (f" ({low:.3f}–{high:.3f})" if known else "")


def _effort(summary: Mapping[str, Any]) -> list[Line]:
    entry = summary["this_entry"]
    lines = []
    if "prompt_tokens" in summary:  # not so where the run was interrupted and its files were not read
        lines.append(Line("tokens", f"{summary['prompt_tokens']:,} in, {summary['completion_tokens']:,} out"))
    if entry["completion_tokens"] and entry["tokens_per_second"]:
        lines.append(Line("tokens/s", f"{entry['tokens_per_second']:.1f}"))
    if summary.get("cost"):
        lines.append(Line("cost", cost_in_words(summary)))
    if entry.get("judge"):
        lines.append(judge_line(entry["judge"]))
    if summary.get("cached"):
        lines.append(Line("from the cache", f"{summary['cached']:,}"))
    if summary.get("skipped_rows"):
        lines.append(Line("rows skipped", f"{summary['skipped_rows']:,}"))
    lines.append(Line("time", f"{entry['seconds']:.1f} s"))
    return lines


def judge_line(use: Mapping[str, Any]) -> Line:
    """What the judge was asked since the run was entered, and what that cost."""
    cached = f", {use['cached']:,} from the cache" if use["cached"] else ""
    tokens = f"{use['prompt_tokens']:,} tokens in, {use['completion_tokens']:,} out"
    cost = f"cost {cost_in_words(use)}" if use["cost"] else ""
    return Line("judge", f"{use['replies']:,} replies{cached}, {tokens}", cost)


def _worth_showing(pass_at_k: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """All of them while they are few, else the powers of two and the last."""
    few = 8
    last = max((int(k) for k in pass_at_k), default=0)
    shown = [k for k in pass_at_k if last <= few or int(k) & (int(k) - 1) == 0 or int(k) == last]
    return [(k, pass_at_k[k]) for k in shown if pass_at_k[k] is not None]


def _with_interval(label: str, estimate: Mapping[str, Any], note: str = "") -> Line:
    if estimate["low"] is None or not isfinite(estimate["low"]):
        interval = "one sample has no interval"
    else:
        interval = f"95 % {estimate['low']:.3f} … {estimate['high']:.3f}"
    return Line(label, f"{estimate['value']:.3f}", "  ".join(part for part in (interval, note) if part))


def _title(label: str, result: RunResult) -> str:
    return " · ".join(part for part in (label, "" if result.status == "finished" else result.status) if part)


def _files(result: RunResult, place: Path) -> list[str]:
    """The files of a run, in the directory as it is shown."""
    paths = (result.results_path, result.rollouts_path, result.output_dir / "summary.json")
    return [str(place / path.name) for path in paths if path.exists()]
