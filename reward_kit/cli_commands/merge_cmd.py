# SPDX-License-Identifier: Apache-2.0
"""`reward-kit merge`: one run directory out of several that were worked on in different places."""

from __future__ import annotations

from pathlib import Path

import click

from reward_kit.cli_commands.options import NamedPath, reading_own_files
from reward_kit.cli_commands.output import echo, print_json

__all__ = ["merge"]


@click.command()
@click.argument("runs", nargs=-1, required=True, type=NamedPath(path_type=Path))
@click.option(
    "-o",
    "--output-dir",
    type=NamedPath(path_type=Path, file_okay=False),
    required=True,
    help="The directory for the merged run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def merge(runs: tuple[Path, ...], output_dir: Path, as_json: bool, verbose: bool) -> None:
    """Join the results of runs that were spread over machines, such as the shards of `reward-kit shell`.

    RUNS are output directories (or the results.jsonl in them). Parts of different runs are refused. You can merge
    again, also with one more part: every item is kept once, and a verdict replaces a failure.

    \b
    reward-kit shell --phase execution --commands-file commands.jsonl --shard 1/2 --output-dir part1
    reward-kit shell --phase execution --commands-file commands.jsonl --shard 2/2 --output-dir part2
    reward-kit merge part1 part2 --output-dir whole
    """
    from reward_kit.execution.merge import merge_runs
    from reward_kit.storage.run_directory import unfinished

    with reading_own_files(*runs):
        for warning in filter(None, map(unfinished, runs)):
            echo(warning, err=True)
        summary = merge_runs([run.parent if run.is_file() else run for run in runs], output_dir)
    if as_json:
        print_json(summary)
        return
    judged, records = summary.get("judged", 0), summary.get("records", 0)
    echo(f"{len(runs)} runs → {output_dir}: {judged:,} of {records:,} judged", err=True)
