# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a best-of-N experiment: the plan, the progress, and the figures of each split."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from rich.markup import escape
from rich.table import Table

from reward_kit.cli_commands.display.run import Display, judge_line, plan_notes
from reward_kit.cli_commands.output import failure_lines, in_own_words, make_console, print_json, remarks, same_command
from reward_kit.execution.best_of_n import ExperimentResult
from reward_kit.execution.best_of_n.experiment import ExperimentConfig
from reward_kit.execution.engine import Reporter
from reward_kit.execution.plan import Plan
from reward_kit.execution.result import RunResult
from reward_kit.execution.run_summary import cost_in_words, many_failed

__all__ = ["ExperimentDisplay"]

_ALL = "all"
_LOG_WIDTH = 120


class ExperimentDisplay:
    """What a person sees of `best-of-n`: a line at the start, live progress, and the figures in the end."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        """`quiet` shows nothing; `as_json` prints the summary on standard output."""
        self._as_json = as_json
        self._display = Display(quiet=quiet, as_json=as_json)
        self._console = make_console(stderr=True, quiet=quiet, highlight=False)
        self._figures = make_console(stderr=as_json, quiet=quiet, highlight=False)
        """What the command was called for goes to standard output, unless that is for JSON."""
        if not self._figures.is_terminal:  # a log is as wide as its lines
            self._figures.width = max(self._figures.width, _LOG_WIDTH)

    def announce(self, experiment: ExperimentConfig) -> None:
        """Print one line that says which experiment begins: model, candidates, verifiers, output file."""
        verifiers = ", ".join(f"{split} by {who.name}" for split, who in experiment.verifier_of.items())
        who = f"{experiment.run.generation.model_name} · n={experiment.run.generation.n}"
        if experiment.response_column is not None:
            who = f"answers in the column {experiment.response_column!r}, no model"
        what = f"{who} · {verifiers} · {experiment.parquet}"
        self._console.print(f"[bold]best-of-n[/] · {escape(what)}", soft_wrap=True)

    def reporter(self) -> Reporter | None:
        """What shows progress, if anything does."""
        return self._display.reporter()

    def show_plan(self, plans: Mapping[str, Plan]) -> None:
        """Print what would be done, by split and in total."""
        whole = _total(plans)
        if self._as_json:
            splits = {split: plan.as_dict() for split, plan in plans.items()}
            print_json({**whole.as_dict(), "splits": splits})
            return
        titles = "queries", "candidates", "on disk", "cached", "calls", "tokens in", "tokens out", "cost"
        table = _table("Plan: nothing was sent", *titles)
        for split, plan in {**plans, _ALL: whole}.items():
            table.add_row(
                escape(split), f"{plan.rows:,}", f"{plan.rollouts:,}", f"{plan.on_disk:,}", f"{plan.cached:,}",
                f"{plan.requests:,}", f"~ {plan.prompt_tokens:,}", f"≤ {plan.completion_tokens:,}",
                "not known" if plan.cost is None else f"{'≤' if plan.cost_is_bounded else '~'} {plan.cost:.4f}",
            )  # fmt: skip
        self._figures.print(table)
        for line in dict.fromkeys(note for plan in plans.values() for note in plan_notes(plan)):
            self._figures.print(f"  {in_own_words(line)}", soft_wrap=True, markup=False)
        if whole.cost is None:
            self._figures.print("The model's price is not known: add it to `prices`, or name a --prices file.")

    def show(self, result: ExperimentResult) -> None:
        """Print the figures of each split, where the files are, and how to go on where it stopped."""
        run = result.run
        if self._as_json:
            print_json({"status": run.status, "output": str(result.parquet or ""), **run.summary})
        for sentence in filter(None, [many_failed(run.summary)]):
            self._figures.print(sentence, soft_wrap=True, markup=False)
        if "splits" in run.summary:
            self._figures.print(_table_of_figures(run.summary))
            for line in failure_lines(run.summary):
                self._figures.print(f"  not verified: {line}", soft_wrap=True, markup=False)
            self._show_judge(run.summary["this_entry"].get("judge"))
            if run.summary.get("skipped_rows"):
                self._figures.print(f"  rows left out: {run.summary['skipped_rows']:,}")
        if run.status == "finished" and not (run.counters.generated or run.counters.scored):
            self._figures.print("  Already complete; nothing to do.")
        for remark in remarks(run.summary):
            self._figures.print(f"  {remark}", soft_wrap=True, markup=False)
        if result.parquet is not None:
            self._figures.print(f"  {result.parquet}\n  {run.output_dir}", soft_wrap=True, markup=False)
        self._show_how_it_ended(run)

    def _show_how_it_ended(self, run: RunResult) -> None:
        if run.reason and run.status in {"stopped", "detached", "failing"}:
            self._figures.print(f"  ended early: {in_own_words(run.reason)}", soft_wrap=True, markup=False)
        if run.status != "finished":
            again = "Run the same command again to go on; nothing is paid twice:"
            self._console.print(f"{again}\n  {same_command()}", soft_wrap=True, markup=False)

    def _show_judge(self, use: Mapping[str, Any] | None) -> None:
        if use is not None:
            label, used, cost = judge_line(use)
            self._figures.print(f"  {label}: {used}  {cost}".rstrip(), soft_wrap=True, markup=False)


def _table_of_figures(summary: Mapping[str, Any]) -> Table:
    last = max((int(k) for k in summary["pass_at_k"]), default=1)
    rates = ["1"] if last == 1 else ["1", str(last)]
    titles = ["verified", *(f"pass@{k}" for k in rates[1:])]
    with_intervals = [title for name in titles for title in (name, "[dim]95 %[/]")]
    table = _table(None, "queries", "candidates", *with_intervals, "failed", "tokens out", "cost")
    splits: Mapping[str, Any] = summary["splits"]
    for split, figures in {**splits, _ALL: summary}.items() if len(splits) > 1 else splits.items():
        estimates = [cell for k in rates for cell in _estimate(figures["pass_at_k"].get(k), figures)]
        table.add_row(
            escape(split), f"{figures['samples']:,}", f"{figures['records']:,}", *estimates, f"{figures['failed']:,}",
            f"{figures['completion_tokens']:,}", cost_in_words(figures),
        )  # fmt: skip
    return table


def _estimate(estimate: Mapping[str, Any] | None, figures: Mapping[str, Any]) -> tuple[str, str]:
    """A rate and its interval, in percent; and on how many queries it rests, where that is not on all."""
    if estimate is None:
        return "-", ""
    low, high = estimate["low"], estimate["high"]
    interval = "" if low is None or not isfinite(low) else f"[dim]{100 * low:.1f} … {100 * high:.1f}[/]"
    rests = estimate["samples"]
    return f"{100 * estimate['value']:.1f} %{'' if rests == figures['samples'] else f' of {rests:,}'}", interval


def _table(title: str | None, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1))
    table.add_column("split", style="bold", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _total(plans: Mapping[str, Plan]) -> Plan:
    whole = Plan()
    for plan in plans.values():
        for name, value in plan.as_dict().items():
            if isinstance(value, int) and not isinstance(value, bool):
                setattr(whole, name, whole.__dict__[name] + value)
    costs = [plan.cost for plan in plans.values()]
    whole.cost_is_bounded = all(plan.cost_is_bounded for plan in plans.values())
    whole.cost = None if None in costs else sum(cost for cost in costs if cost is not None)
    return whole
