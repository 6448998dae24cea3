# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a shell evaluation: its phases, their progress, and the figures in the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from reward_kit.cli_commands.display.run import Display
from reward_kit.cli_commands.output import (
    echo_failing,
    failure_lines,
    in_own_words,
    make_console,
    print_json,
    same_command,
)
from reward_kit.execution.engine import Reporter
from reward_kit.execution.plan import Plan
from reward_kit.execution.result import RunResult
from reward_kit.execution.run_summary import cost_in_words, many_failed
from reward_kit.execution.shell import COMMANDS, ShellEvaluation

__all__ = ["ShellDisplay"]


class ShellDisplay:
    """Shows the phases of one evaluation."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        """`quiet` shows nothing; `as_json` prints the summary on standard output."""
        self._as_json = as_json
        self._display = Display(quiet=quiet, as_json=as_json)
        self._console = make_console(stderr=True, quiet=quiet, highlight=False)
        self._figures = make_console(stderr=as_json, quiet=quiet, highlight=False)
        """What the command was called for goes to standard output, unless that is for JSON."""
        self._place: Path | None = None
        """The output directory as it was typed."""

    def announce(self, phase: str, evaluation: ShellEvaluation) -> None:
        """Print one line that says which phase begins, with the model and the sandbox that it uses."""
        self._place = evaluation.output_dir
        generation = evaluation.config.generation
        model = f"{generation.model_name} · n={generation.n}"
        sandbox = f"sandbox {evaluation.config.sandbox.backend}"
        what = {"both": f"{model} · {sandbox}", "inference": model}.get(
            phase, f"{sandbox} · {evaluation.commands_shown}"
        )
        self._console.print(f"[bold]{phase}[/] · {escape(f'{what} · {evaluation.output_dir}')}", soft_wrap=True)

    def reporter(self) -> Reporter | None:
        """What shows progress, if anything does."""
        return self._display.reporter()

    def show_plan(self, plan: Plan) -> None:
        """Print what would be done."""
        self._display.show_plans([("", plan)])

    def show(self, result: RunResult) -> None:
        """Print the figures, where the files are, and how to go on where it stopped."""
        if self._as_json:
            print_json({"status": result.status, **result.summary})
        if (first := many_failed(result.summary)) is not None:
            self._figures.print(first, soft_wrap=True, markup=False)
        if result.status == "finished":
            self._figures.print(_table(result.summary))
            for line in failure_lines(result.summary):
                self._figures.print(f"  {line}", soft_wrap=True, markup=False)
            names = (COMMANDS, "results.jsonl", "summary.json")
            place = self._place or result.output_dir
            files = [place / name for name in names if (result.output_dir / name).exists()]
            self._figures.print("\n".join(f"  {path}" for path in files), soft_wrap=True, markup=False)
        if result.reason and result.status in {"stopped", "detached", "failing"}:
            self._figures.print(f"  ended early: {in_own_words(result.reason)}", soft_wrap=True, markup=False)
        echo_failing(result, when=self._console.quiet)
        if result.status != "finished":
            again = "Run the same command again to go on; what is done is not done again:"
            self._console.print(f"{again}\n  {same_command()}", soft_wrap=True, markup=False)
        elif result.summary.get("infrastructure_errors"):
            again = "To run only what could not be run:"
            self._console.print(f"{again}\n  {same_command('--retry-failed')}", soft_wrap=True, markup=False)


def _table(summary: Mapping[str, Any]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    if inference := summary.get("inference"):
        table.add_row("commands", f"{inference['commands']:,} of {inference['records']:,} answers")
    if "judged" in summary:
        table.add_row("executed", f"{summary['judged']:,} of {summary['records']:,}")
        for label, name in (("success", "success_rate"), ("  command ran", "command_success_rate"),
                            ("  condition held", "test_pass_rate")):  # fmt: skip
            table.add_row(label, _rate(summary, name))
        for k, found in summary["pass_at_k"].items():
            if k != "1":
                table.add_row(
                    f"pass@{k}",
                    f"{found['value']:.3f}  [dim]95 % {found['low']:.3f} … {found['high']:.3f}, of "
                    f"{found['samples']:,} tasks[/]",
                )
        table.add_row("infrastructure errors", f"{summary['infrastructure_errors']:,}")
    if summary.get("completion_tokens"):
        table.add_row("tokens", f"{summary['prompt_tokens']:,} in, {summary['completion_tokens']:,} out")
    if summary.get("cost"):
        table.add_row("cost", cost_in_words(summary))
    table.add_row("time", f"{summary['total_seconds']:.1f} s")
    return table


def _rate(summary: Mapping[str, Any], name: str) -> str:
    if summary[name] is None:
        return "-"
    low, high = summary[f"{name}_interval"]
    return f"{summary[name]:.3f}  [dim]95 % {low:.3f} … {high:.3f}[/]"
