"""What a person sees of a run: the plan, the progress, and the table in the end.

Progress goes to standard error, tables to standard output; with `--json` both go to standard error, and standard
output holds the JSON alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from reward_kit.cli_commands.output import failure_lines, make_console, print_json, remarks
from reward_kit.config_models import PipelineConfig
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.local_engine import Reporter
from reward_kit.execution.plan import Plan
from reward_kit.execution.result import RunResult

__all__ = ["Display", "plan_notes"]

_PLAIN_SECONDS = 5.0
"""How often a line of progress is printed when nobody watches a terminal."""
_LIVE_SECONDS = 0.2
_ROUNDING = 1e-9


class Display:
    """Shows a run, or a sweep of runs."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        """`quiet` shows nothing; `as_json` prints summaries on standard output."""
        self._quiet = quiet
        self._as_json = as_json
        self._console = make_console(stderr=True, quiet=quiet, highlight=False)
        self._product = self._console if as_json else make_console(quiet=quiet, highlight=False)
        """Where tables are printed: what the command was called for."""

    def announce(self, label: str, config: PipelineConfig) -> None:
        """Say which run begins."""
        what = config.generation.model_name if config.generation.enabled else "answers in the data"
        title = f"{label} · " if label else ""
        rest = f" · n={config.generation.n} · {config.output.output_dir}"
        self._console.print(f"[bold]{escape(f'{title}{what}')}[/]{escape(rest)}")

    def reporter(self) -> Reporter | None:
        """What shows progress, if anything does."""
        if self._quiet:
            return None
        return _LiveReporter(self._console) if self._console.is_terminal else _PlainReporter(self._console)

    def show_plans(self, plans: Sequence[tuple[str, Plan]]) -> None:
        """Print what would be done."""
        if self._as_json:
            _print([{"job": label, **plan.as_dict()} for label, plan in plans])
            return
        for label, plan in plans:
            self._product.print(_plan_table(label or "Plan: nothing was sent", plan))
            for line in plan_notes(plan):
                self._product.print(f"  {line}", soft_wrap=True, markup=False)

    def show_results(self, results: Sequence[tuple[str, RunResult]]) -> None:
        """Print the figures and where the files are."""
        if self._as_json:
            _print([{"job": label, "status": result.status, **result.summary} for label, result in results])
        several = len(results) > 1
        for label, result in results:
            if not several:
                self._product.print(_result_table(label, result))
            told = [*failure_lines(result.summary), *_finished_before(result), *remarks(result.summary)]
            if several and told:
                self._product.print(label, style="bold", markup=False)
            for line in told:
                self._product.print(f"  {line}", soft_wrap=True, markup=False)
            if not several:
                self._product.print(_files(result), soft_wrap=True, markup=False)
        if several:
            self._product.print(_sweep_table(results))
            compared = f"reward-kit inspect {results[0][1].output_dir.parent}"
            self._product.print(f"  Compare them, paired: {compared}", soft_wrap=True, markup=False)

    def show_resume(self, command: str) -> None:
        """Print the command that goes on where this one stopped."""
        told = f"Run the same command again to go on; nothing is paid twice:\n  {command}"
        self._console.print(told, soft_wrap=True, markup=False)


def _print(values: list[dict[str, Any]]) -> None:
    print_json(values[0] if len(values) == 1 else values)


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _PlainReporter:
    """A line now and then, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def watch(self, counters: RunCounters) -> None:
        while True:
            await asyncio.sleep(_PLAIN_SECONDS)
            self._console.print(progress_line(counters), soft_wrap=True, markup=False)


class _LiveReporter:
    """Two bars that move, for a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def watch(self, counters: RunCounters) -> None:
        from rich.live import Live

        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(_bars(counters), refresh=True)
                await asyncio.sleep(_LIVE_SECONDS)


def progress_line(counters: RunCounters) -> str:
    """The run's state in one line."""
    parts = [f"{stage} {done}{_of(counters.expected)}" for stage, done in _stages(counters)]
    return " · ".join([*parts, *_facts(counters)])


def _stages(counters: RunCounters) -> list[tuple[str, int]]:
    stages = []
    if counters.phase != "execution":
        stages.append(("generated", counters.found_rollouts + counters.generated))
    if counters.phase != "inference":
        stages.append(("scored", counters.found_results + counters.scored))
    return stages


def _facts(counters: RunCounters) -> list[str]:
    seconds = max(counters.seconds, 1e-9)
    done = counters.generated if counters.phase == "inference" else counters.scored
    facts = [f"{done / seconds:.1f}/s"]
    if counters.completion_tokens:
        facts.append(f"{counters.completion_tokens / seconds:.0f} tokens/s")
    if counters.cached:
        facts.append(f"{counters.cached} cached")
    if counters.cost:
        facts.append(f"cost {counters.cost:.4f}")
    if counters.judged:
        facts.append(f"mean {counters.score_sum / counters.judged:.3f}")
    failed = max(counters.failed, counters.generation_failures)
    if failed:
        facts.append(f"{failed} failed")
    if counters.stopping:
        facts.append("stopping: finishing what is in flight")
    elif (eta := _eta(counters, done / seconds)) is not None:
        facts.append(f"{eta} left")
    return facts


def _eta(counters: RunCounters, rate: float) -> str | None:
    if counters.expected is None or rate <= 0:
        return None
    _, done = _stages(counters)[-1]
    seconds = int(max(0, counters.expected - done) / rate)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _of(expected: int | None) -> str:
    return f"/{expected}" if expected is not None else ""


def _bars(counters: RunCounters) -> Table:
    from rich.progress_bar import ProgressBar

    grid = Table.grid(padding=(0, 1))
    for stage, done in _stages(counters):
        bar = ProgressBar(total=counters.expected, completed=done, width=32, pulse=counters.expected is None)
        grid.add_row(f"{stage:>9}", bar, f"{done}{_of(counters.expected)}")
    grid.add_row("", "", " · ".join(_facts(counters)))
    return grid


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def cost_in_words(plan: Plan) -> str:
    """What a plan costs: at most where that is known, else about."""
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


def _plan_table(title: str, plan: Plan) -> Table:
    table = _two_columns(title)
    table.add_row("rows", f"{plan.rows:,}")
    table.add_row("answers in the end", f"{plan.rollouts:,}")
    table.add_row("  already on disk", f"{plan.on_disk:,}")
    table.add_row("  in the cache", f"{plan.cached:,}")
    table.add_row("  to be generated", f"{plan.answers_to_generate:,}")
    table.add_row("requests", f"{plan.requests:,}")
    table.add_row("to be scored", f"{plan.to_score:,}")
    table.add_row("prompt tokens", f"~ {plan.prompt_tokens:,}")
    table.add_row("answer tokens", f"up to {plan.completion_tokens:,}")
    table.add_row("cost", cost_in_words(plan))
    return table


def _result_table(label: str, result: RunResult) -> Table:
    summary = result.summary
    title = " · ".join(part for part in (label, result.status if result.status != "finished" else "") if part)
    table = _two_columns(title or None)
    if "judged" in summary:
        table.add_row("judged", f"{summary['judged']:,} of {summary['records']:,}")
    else:
        table.add_row("rollouts", f"{summary.get('rollouts', result.counters.generated):,}")
    table.add_row("failed", f"{summary.get('failed', result.counters.failed):,}")
    if summary.get("mean_score") is not None:
        table.add_row("mean score", _with_interval(summary["mean_score"]))
    for k, estimate in _worth_showing(summary.get("pass_at_k", {})):
        table.add_row(f"pass@{k}", _with_interval(estimate) + _threshold(summary))
    if summary.get("truncated"):
        share = 100 * summary["truncated"] / max(1, summary["records"])
        table.add_row("cut off", f"{summary['truncated']:,} ({share:.0f} %)  [dim]at the limit of tokens[/]")
    for row in _effort(summary):
        table.add_row(*row)
    if result.reason:
        table.add_row("ended early", escape(result.reason))
    return table


def _threshold(summary: dict[str, Any]) -> str:
    """From which score on an answer passes, where that is not what every score says."""
    graded = (
        summary["mean_score"] is not None and abs(summary["mean_score"]["value"] - summary["pass_rate"]) > _ROUNDING
    )
    return f"  [dim]score ≥ {summary['pass_threshold']:g}[/]" if graded else ""


def _finished_before(result: RunResult) -> list[str]:
    done = result.counters.generated or result.counters.scored
    return [] if done or result.status != "finished" else ["Nothing was owed: this run was finished before."]


def _sweep_table(results: Sequence[tuple[str, RunResult]]) -> Table:
    """A line per run of a sweep."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for name in ("run", "judged", "failed", "cut off", "mean score", "pass@k", "cost"):
        table.add_column(name, justify="left" if name == "run" else "right")
    for label, result in results:
        table.add_row(escape(label), *_sweep_row(result))
    return table


def _sweep_row(result: RunResult) -> list[str]:
    summary = result.summary
    k, estimate = [("", None), *_worth_showing(summary.get("pass_at_k", {}))][-1]
    cost = summary.get("cost")
    return [
        f"{summary['judged']:,} of {summary['records']:,}" if "judged" in summary else result.status,
        f"{summary.get('failed', result.counters.failed):,}",
        f"{summary.get('truncated', 0):,}",
        _short(summary.get("mean_score")),
        f"{k}: {_short(estimate)}" if estimate is not None else "–",
        "–" if cost is None else f"{cost:.4f}",
    ]


def _short(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "–"
    low, high = estimate["low"], estimate["high"]
    known = low is not None and isfinite(low)
    return f"{estimate['value']:.3f}" + (f" ({low:.3f}–{high:.3f})" if known else "")


def _effort(summary: dict[str, Any]) -> list[tuple[str, str]]:
    entry = summary["this_entry"]
    rows = []
    if "prompt_tokens" in summary:  # not so where the run was interrupted and its files were not read
        rows.append(("tokens", f"{summary['prompt_tokens']:,} in, {summary['completion_tokens']:,} out"))
    if entry["completion_tokens"] and entry["tokens_per_second"]:
        rows.append(("tokens/s", f"{entry['tokens_per_second']:.1f}"))
    if summary.get("cost"):
        rows.append(("cost", f"{summary['cost']:.4f}"))
    if summary.get("cached"):
        rows.append(("from the cache", f"{summary['cached']:,}"))
    if summary.get("skipped_rows"):
        rows.append(("rows skipped", f"{summary['skipped_rows']:,}"))
    rows.append(("time", f"{entry['seconds']:.1f} s"))
    return rows


def _worth_showing(pass_at_k: dict[str, Any]) -> list[tuple[str, Any]]:
    """All of them while they are few, else the powers of two and the last."""
    few = 8
    last = max((int(k) for k in pass_at_k), default=0)
    shown = [k for k in pass_at_k if last <= few or int(k) & (int(k) - 1) == 0 or int(k) == last]
    return [(k, pass_at_k[k]) for k in shown if pass_at_k[k] is not None]


def _with_interval(estimate: dict[str, Any]) -> str:
    if estimate["low"] is None or not isfinite(estimate["low"]):
        return f"{estimate['value']:.3f}  [dim]one sample has no interval[/]"
    return f"{estimate['value']:.3f}  [dim]95 % {estimate['low']:.3f} … {estimate['high']:.3f}[/]"


def _two_columns(title: str | None) -> Table:
    table = Table(title=title and escape(title), show_header=False, title_justify="left", box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    return table


def _files(result: RunResult) -> str:
    made = [path for path in (result.results_path, result.rollouts_path) if path.exists()]
    made += [path for path in (result.output_dir / "summary.json",) if path.exists()]
    return "\n".join(f"  {path}" for path in made)
